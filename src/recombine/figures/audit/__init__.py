"""Figures of an audit: estimates with intervals, probes by layer, and a map of the combinations in a user's data.

Names come from the user's data, so they are shortened and made printable before they are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.figures.audit.combination_map import Combinations as Combinations, audit_map_info as audit_map_info
    from recombine.figures.audit.combination_map_drawing import draw_audit_map as draw_audit_map
    from recombine.figures.audit.intervals import (
        IntervalRow as IntervalRow,
        draw_intervals as draw_intervals,
        intervals_info as intervals_info,
    )
    from recombine.figures.audit.layers import (
        LayerRow as LayerRow,
        audit_layers_info as audit_layers_info,
        draw_audit_layers as draw_audit_layers,
    )
