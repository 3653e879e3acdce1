"""The index of a store: one row per run, kept beside the store, so that 10,000 runs are listed without reading them.

`store.index` is the `Index` of a store. The index is never the truth: it is made from the runs, checked against the folder
at each use, and may be deleted at any time.

Example:
    ```python
    store = rc.load_store("runs")
    store.index.frame(where="width >= 128 and family = 'scan'", sort="-score_held_out", columns=("run", "width"))
    store.index.frame(group="width", columns="score_held_out")  # mean, interval and number of runs of each width
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.store.index.index import Changes as Changes, Index as Index
