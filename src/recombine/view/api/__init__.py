"""The JSON API of the viewer, one file per page. Each function answers one path with plain values."""
