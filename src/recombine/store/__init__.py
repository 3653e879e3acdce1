"""The store: a folder of runs with their weights, curves and measurements.

`Store(path)` opens a store for writing and creates it where there is none. `load_store(path)` opens an existing store for
reading. Runs come back as `StoredRun`, tables as pandas DataFrames. `store.index` filters, sorts and groups runs, and
`compare` compares two groups of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.store.comparison import Comparison as Comparison, Side as Side, compare as compare, side as side
    from recombine.store.index import Index as Index
    from recombine.store.selection import Selection as Selection
    from recombine.store.store import Store as Store, load_store as load_store
    from recombine.store.stored_run import StoredRun as StoredRun
