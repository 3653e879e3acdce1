"""Figures of an audit: estimates with intervals, probes by layer, and a map of the combinations in a user's data.

Names come from the user's data, so they are shortened and made printable before they are drawn.
"""
