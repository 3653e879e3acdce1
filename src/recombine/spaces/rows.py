"""Vectorised work on rows: keys, sets, hashes and connected groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int, UInt64

from recombine.errors import BadInput
from recombine.spaces.base import Space

if TYPE_CHECKING:
    from scipy import sparse

Rows = Int[np.ndarray, "n slots"]

SMALL = 50_000
"""Spaces up to this size are listed and permuted. Larger ones are drawn from, and repeats are dropped."""


def checked_rows(space: Space, rows: np.ndarray) -> Rows:
    """The rows as int32. BadInput if one is not a combination of the space."""
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] != space.slots or not np.issubdtype(rows.dtype, np.integer):
        raise BadInput(
            f"Combinations must be rows of {space.slots} whole numbers, got {rows.dtype} of shape {rows.shape}.",
            fix="make rows with space.row(constituents)",
        )
    inside = space.contains(rows)
    if not inside.all():
        raise BadInput(f"The row {rows[~inside][0].tolist()} is not a combination of {space!r}.")
    return np.ascontiguousarray(rows, dtype=np.int32)


def row_keys(rows: Rows) -> np.ndarray:
    """Each row as one opaque value that NumPy can sort and search."""
    # Clipped, not wrapped: 2**32 must not become constituent 0.
    narrow = np.ascontiguousarray(np.clip(rows, -1, np.iinfo(np.int32).max), dtype=np.int32)
    return narrow.view(np.dtype((np.void, narrow.dtype.itemsize * narrow.shape[1]))).ravel()


def first_of_each(rows: Rows) -> Int[np.ndarray, "m slots"]:
    """The rows without repeats, in the order of their first occurrence."""
    _, first = np.unique(row_keys(rows), return_index=True)
    return rows[np.sort(first)]


def lookup(keys: np.ndarray, rows: Rows) -> Int[np.ndarray, " n"]:
    """The index of each row in sorted, distinct `row_keys`; -1 where it is not among them."""
    if not len(keys):
        return np.full(len(rows), -1)
    wanted = row_keys(rows)
    nearest = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[nearest] == wanted, nearest, -1)


def membership(rows: Rows, width: int) -> sparse.csr_array:
    """The indicator vectors of combinations, as a sparse matrix with one row per combination."""
    from scipy import sparse  # Not at the top: planning needs this file, and seldom SciPy.

    used = np.asarray(rows) < width
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    parts = np.asarray(rows)[used]
    return sparse.csr_array((np.ones(len(parts), np.int64), parts, starts), shape=(len(rows), width))


class RowSet:
    """A set of combinations with a vectorised lookup. Its memory is proportional to its length."""

    def __init__(self, rows: Rows) -> None:
        self._keys = np.unique(row_keys(rows))

    def __len__(self) -> int:
        return len(self._keys)

    def contains(self, rows: Rows) -> Bool[np.ndarray, " n"]:
        """Which of these rows are in the set."""
        return lookup(self._keys, rows) >= 0


def mixed(values: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014), a bijection: every input bit affects every output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def row_hash(rows: Rows, seed: int) -> UInt64[np.ndarray, " n"]:
    """A 64-bit hash of each row, the same in every process and on every machine."""
    step = np.uint64(0x9E3779B97F4A7C15)
    state = mixed(np.full(len(rows), seed % 2**64, np.uint64) + step)
    for column in np.asarray(rows).T:
        state = mixed((state ^ column.astype(np.uint64)) + step)
    return state


def groups(rows: Rows, width: int) -> int:
    """The number of connected groups of constituents. A constituent that is in no row is a group by itself."""
    from scipy import sparse
    from scipy.sparse import csgraph

    # Links from the first constituent of a row to the others connect the same groups as links between all pairs.
    links = [np.empty(0, np.int64)]
    links += [np.unique(rows[:, 0].astype(np.int64) * (width + 1) + other) for other in rows.T[1:]]
    first, other = np.divmod(np.unique(np.concatenate(links)), width + 1)
    real = other < width
    edges = sparse.coo_array((np.ones(real.sum()), (first[real], other[real])), shape=(width, width))
    return int(csgraph.connected_components(edges, directed=False)[0])
