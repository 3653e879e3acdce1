"""Many combinations at once: keys, sets, hashes and connected groups of rows, without Python loops over rows."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int, UInt64
from scipy import sparse
from scipy.sparse import csgraph

Rows = Int[np.ndarray, "n slots"]


def row_keys(rows: Rows) -> np.ndarray:
    """Rows as one opaque value each, so that numpy can sort and look them up."""
    # Clipped, not wrapped: 2**32 is no constituent, and must not pass for constituent 0.
    narrow = np.ascontiguousarray(np.clip(rows, -1, np.iinfo(np.int32).max), dtype=np.int32)
    return narrow.view(np.dtype((np.void, narrow.dtype.itemsize * narrow.shape[1]))).ravel()


def first_of_each(rows: Rows) -> Int[np.ndarray, "m slots"]:
    """The rows without repeats, in the order in which they came first."""
    _, first = np.unique(row_keys(rows), return_index=True)
    return rows[np.sort(first)]


class RowSet:
    """A set of combinations that answers for many at once. Costs memory by its length."""

    def __init__(self, rows: Rows) -> None:
        self._keys = np.unique(row_keys(rows))

    def __len__(self) -> int:
        return len(self._keys)

    def contains(self, rows: Rows) -> Bool[np.ndarray, " n"]:
        """Which of these rows are in the set."""
        if not len(self):
            return np.zeros(len(rows), bool)
        wanted = row_keys(rows)
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self) - 1)
        return self._keys[places] == wanted


def _mix(values: UInt64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
    """The step of splitmix64 (Steele, Lea and Flood 2014): every input bit moves every output bit."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def row_hash(rows: Rows, seed: int) -> UInt64[np.ndarray, " n"]:
    """A number of 64 bits for each row, the same in every process and on every machine."""
    state = _mix(np.full(len(rows), seed % 2**64, np.uint64))
    for column in np.asarray(rows).T:
        state = _mix(state ^ column.astype(np.uint64))
    return state


def groups(rows: Rows, width: int) -> int:
    """How many connected groups the constituents form; one that is in no row is a group of its own."""
    # Links from a row's first part to its others connect as links between all its pairs would.
    links = [np.empty(0, np.int64)]
    links += [np.unique(rows[:, 0].astype(np.int64) * (width + 1) + other) for other in rows.T[1:]]
    first, other = np.divmod(np.unique(np.concatenate(links)), width + 1)
    real = other < width
    edges = sparse.coo_array((np.ones(real.sum()), (first[real], other[real])), shape=(width, width))
    return int(csgraph.connected_components(edges, directed=False)[0])
