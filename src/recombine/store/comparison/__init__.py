"""Comparing two runs, two groups of runs, or two stores: settings that differ, scores, combinations that flipped.

Example:
    ```python
    store = rc.load_store("runs")
    found = compare(side(store, "width = 64"), side(store, "width = 128"), score="score_held_out", margin=0.05)
    found.difference  # the second minus the first, paired by seeds and shared settings, with its 95 % interval
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.store.comparison.flips import FlippedCombination as FlippedCombination
    from recombine.store.comparison.paired import (
        Comparison as Comparison,
        DifferentSetting as DifferentSetting,
        compare as compare,
    )
    from recombine.store.comparison.sides import Side as Side, side as side
