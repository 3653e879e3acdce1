"""Regions: named sets of combinations to evaluate on."""

from __future__ import annotations

import functools
import hashlib
from typing import Literal

import jax
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from recombine.errors import BadInput
from recombine.supports.base import Support
from recombine.supports.drawing import SMALL, distinct_rows, seed_key, shuffled
from recombine.supports.listed import Listed
from recombine.supports.rows import RowSet, row_hash

Region = Literal[
    "trained", "held_out", "rest", "all_pairs_met", "some_pairs_unmet", "part_unseen", "more_parts"
]
"""`held_out` is the reserved common test where the support reserves one, and else everything not trained on.
`rest` is what is neither trained on nor held out. The next three cut `held_out` by coverage. `more_parts` is what is
held out and has more constituents than any combination that is trained on."""

Side = Literal["validation", "test"]
"""Held-out combinations are cut in two by a hash, so that nothing tuned on one side is scored on it."""

STRATA: tuple[Region, ...] = ("all_pairs_met", "some_pairs_unmet", "part_unseen")

VALIDATION_SHARE = 0.25

BLOCK = 2**22
"""How many pairs of combinations are compared at a time."""

CUT = int(VALIDATION_SHARE * 2**64)
"""Combinations whose hash lies below this are for validation."""


def stratum(rows: Int[np.ndarray, "n slots"], moment: Float[np.ndarray, "width width"]) -> np.ndarray:
    """The coverage stratum of each combination: have all its pairs met in training, and all its parts occurred?"""
    width = len(moment)
    # One more row and column for the pad, which has met everything.
    met = np.pad(moment > 0, ((0, 1), (0, 1)), constant_values=True)
    rows = np.minimum(rows, width)
    seen = met[rows, rows].all(axis=1)
    pairs = met[rows[:, :, None], rows[:, None, :]].all(axis=(1, 2))
    return np.where(~seen, "part_unseen", np.where(pairs, "all_pairs_met", "some_pairs_unmet"))


def distance(
    rows: Int[np.ndarray, "n slots"], support_rows: Int[np.ndarray, "m slots"], width: int
) -> Int[np.ndarray, " n"]:
    """By how many constituents each combination differs from the nearest trained one: added, dropped or replaced.

    That is the larger number of constituents of the two, less those that they share. `width` is that of the space.
    """
    if not len(support_rows):
        raise BadInput("There is no trained combination to measure a distance to.")
    trained = _holding(support_rows, width)
    lengths = np.diff(trained.indptr)
    found = []
    block = max(1, BLOCK // len(support_rows))
    for start in range(0, len(rows), block):
        asked = _holding(rows[start : start + block], width)
        own = np.diff(asked.indptr)
        # Sparse: only pairs that share a constituent stand in it. All others differ by the longer of the two.
        shared = (asked @ trained.T).tocoo()
        nearest = np.maximum(own, lengths.min())
        np.minimum.at(nearest, shared.row, np.maximum(own[shared.row], lengths[shared.col]) - shared.data)
        found.append(nearest)
    return np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)


def _holding(rows: Int[np.ndarray, "n slots"], width: int) -> sparse.csr_array:
    """Which constituents each combination holds, as a sparse matrix."""
    used = np.asarray(rows) < width
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    parts = np.asarray(rows)[used]
    return sparse.csr_array((np.ones(len(parts), np.int64), parts, starts), shape=(len(rows), width))


def side(rows: Int[np.ndarray, "n slots"], seed: int, cut: int = CUT) -> np.ndarray:
    """`validation` or `test` for each combination, by a keyed hash of the combination."""
    return np.where(row_hash(rows, seed) < np.uint64(cut), "validation", "test")


class Regions:
    """The regions of one drawn support."""

    def __init__(self, support: Support, seed: int) -> None:
        self.support = support
        self.seed = seed

    @functools.cached_property
    def moment(self) -> Float[np.ndarray, "width width"]:
        """E[z z'] of the support: who occurred, and who met whom."""
        return self.support.second_moment()

    @functools.cached_property
    def _cut(self) -> int:
        """Where the hash cuts the held-out combinations in two. Moved where a side of a small set would be empty."""
        space, reserved = self.support.space, self.support.reserved
        if not len(reserved) and space.size > SMALL:
            return CUT
        rows = reserved if len(reserved) else space.enumerate()
        hashes = np.sort(row_hash(rows[self.contains("held_out", rows)], self.seed))
        return CUT if len(hashes) < 2 else int(min(max(CUT, int(hashes[0]) + 1), int(hashes[-1])))

    @functools.cached_property
    def _reserved(self) -> RowSet:
        return RowSet(self.support.reserved)

    def contains(self, region: Region, rows: Int[np.ndarray, "n slots"]) -> Bool[np.ndarray, " n"]:
        """Which combinations of the space belong to a region."""
        trained = self.support.contains(rows)
        if region == "trained":
            return trained
        held_out = self._reserved.contains(rows) if len(self._reserved) else ~trained
        if region == "held_out":
            return held_out
        if region == "rest":
            return ~trained & ~held_out
        if region == "more_parts":
            return held_out & ((rows < self.support.space.width).sum(axis=1) > self.support.most_parts)
        return held_out & (stratum(rows, self.moment) == region)

    def rows(self, region: Region, number: int, which: Side | None = None) -> Int[np.ndarray, "n slots"]:
        """Up to `number` different combinations of a region, in random order; all of them if there are fewer."""

        def keep(rows: np.ndarray) -> np.ndarray:
            wanted = self.contains(region, rows)
            return wanted if which is None else wanted & (side(rows, self.seed, self._cut) == which)

        salt = int.from_bytes(hashlib.blake2b(region.encode(), digest_size=4).digest(), "little")
        key = jax.random.fold_in(seed_key(self.seed), salt)
        listed = self._listed(region)
        if listed is None:
            return distinct_rows(self.support.space, key, number, keep)
        listed = shuffled(listed, key)
        return listed[keep(listed)][:number]

    def _listed(self, region: Region) -> Int[np.ndarray, "n slots"] | None:
        """A list that holds the whole region, if there is one: chance would never meet a short list in a search."""
        if region == "trained":
            return self.support.rows if isinstance(self.support, Listed) else None
        if len(self._reserved):
            return None if region == "rest" else self.support.reserved
        return self.support.reserved if self._surely_empty(region) else None

    def _surely_empty(self, region: Region) -> bool:
        """Whether no combination can be in a region, so that none need be searched for (nothing is reserved)."""
        # Only these two need the moment, which is as large as all pairs of constituents.
        if region == "part_unseen":
            return bool((np.diag(self.moment) > 0).all())
        if region == "some_pairs_unmet":
            return bool(((self.moment > 0) | (self.support.space.second_moment() == 0)).all())
        if region == "more_parts":
            return self.support.most_parts >= self.support.space.slots
        return region == "rest"

    def require(self, region: Region, number: int, which: Side | None = None) -> Int[np.ndarray, "n slots"]:
        """As `rows`, but at least one."""
        rows = self.rows(region, number, which)
        if not len(rows):
            where = region if which is None else f"{region} ({which} side)"
            raise BadInput(
                f"No combination was found in the region {where}.",
                fix="train on fewer combinations, or hold out more",
            )
        return rows
