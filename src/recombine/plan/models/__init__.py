"""Model files of other tools: PICT, ACTS and CTWedge, read as a plan's space and constraints.

`read_model` is the way in. `source` has the text with its lines and columns, `rules` parses the constraints of all three
formats and writes them in the planner's own language, and each format is one file.
"""

from __future__ import annotations

from recombine.plan.models.read import read_model as read_model
