"""Regions: named sets of combinations to evaluate on."""

from __future__ import annotations

import functools
import hashlib
from typing import Literal

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.errors import BadInput
from recombine.spaces.rows import SMALL, Rows, RowSet, membership, row_hash
from recombine.supports import Listed, Support
from recombine.supports.listed.drawing import distinct_rows, seed_key, shuffled

Region = Literal["trained", "held_out", "rest", "all_pairs_met", "some_pairs_unmet", "part_unseen", "more_parts"]
"""`held_out` is the reserved common test where the support reserves one, and everything not trained on otherwise.
`rest` is neither trained on nor held out. The next three divide `held_out` by coverage. `more_parts` is held out and has
more constituents than any training combination."""

Side = Literal["validation", "test"]
"""A hash divides the held-out combinations in two, so that nothing is tuned and scored on the same combinations."""

STRATA: tuple[Region, ...] = ("all_pairs_met", "some_pairs_unmet", "part_unseen")

VALIDATION_SHARE = 0.25

BLOCK = 2**22
"""The number of pairs of combinations compared at a time."""

CUT = int(VALIDATION_SHARE * 2**64)
"""Combinations whose hash is below this are for validation."""


def stratum(rows: Rows, moment: Float[np.ndarray, "width width"]) -> np.ndarray:
    """The coverage stratum of each combination, from E[z z'] of the support.

    `part_unseen` where a constituent never occurs in training, `all_pairs_met` where all pairs of constituents do,
    `some_pairs_unmet` otherwise.
    """
    width = len(moment)
    # One more row and column for the pad, which counts as seen with everything.
    met = np.pad(moment > 0, ((0, 1), (0, 1)), constant_values=True)
    rows = np.minimum(rows, width)
    seen = met[rows, rows].all(axis=1)
    pairs = met[rows[:, :, None], rows[:, None, :]].all(axis=(1, 2))
    return np.where(~seen, "part_unseen", np.where(pairs, "all_pairs_met", "some_pairs_unmet"))


def distance(rows: Rows, support_rows: Int[np.ndarray, "m slots"], width: int) -> Int[np.ndarray, " n"]:
    """The number of constituents by which each combination differs from the nearest training combination.

    An added, a dropped and a replaced constituent count as one each: the distance is the larger number of constituents
    of the two, minus the number that they share.
    """
    if not len(support_rows):
        raise BadInput("A distance needs at least one training combination.")
    trained = membership(support_rows, width)
    lengths = np.diff(trained.indptr)
    distances = []
    block = max(1, BLOCK // len(support_rows))
    for start in range(0, len(rows), block):
        asked = membership(rows[start : start + block], width)
        own = np.diff(asked.indptr)
        # Sparse: it holds only pairs that share a constituent. All other pairs differ by the longer of the two.
        shared = (asked @ trained.T).tocoo()
        nearest = np.maximum(own, lengths.min())
        np.minimum.at(nearest, shared.row, np.maximum(own[shared.row], lengths[shared.col]) - shared.data)
        distances.append(nearest)
    return np.concatenate([np.empty(0, np.int64), *distances]).astype(np.int64)


def side(rows: Rows, seed: int, cut: int = CUT) -> np.ndarray:
    """`validation` or `test` for each combination, by a keyed hash of the combination."""
    return np.where(row_hash(rows, seed) < np.uint64(cut), "validation", "test")


class Regions:
    """The regions of one drawn support: named sets of combinations to evaluate on.

    Args:
        support: The drawn support.
        seed: Decides the order of the combinations and which side of a region each is on.

    Example:
        ```python
        regions = Regions(Random(number=40).draw(space, seed=0), seed=0)
        regions.rows("held_out", 100)  # up to 100 combinations that training never sees
        ```
    """

    def __init__(self, support: Support, seed: int) -> None:
        self.support = support
        self.seed = seed

    @functools.cached_property
    def moment(self) -> Float[np.ndarray, "width width"]:
        """Which constituents and which pairs occur in training, by positive entries; E[z z'] for most supports."""
        return self.support.parts_met()

    @functools.cached_property
    def _cut(self) -> int:
        """The hash value that divides validation from test. It moves where one side of a small set would be empty."""
        space, reserved = self.support.space, self.support.reserved
        if not len(reserved) and space.size > SMALL:
            return CUT
        rows = reserved if len(reserved) else space.enumerate()
        hashes = np.sort(row_hash(rows[self.contains("held_out", rows)], self.seed))
        return CUT if len(hashes) < 2 else int(min(max(CUT, int(hashes[0]) + 1), int(hashes[-1])))

    @functools.cached_property
    def _reserved(self) -> RowSet:
        return RowSet(self.support.reserved)

    def contains(self, region: Region, rows: Rows) -> Bool[np.ndarray, " n"]:
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

    def rows(self, region: Region, number: int, which: Side | None = None) -> Rows:
        """Draw different combinations of a region, in random order.

        Args:
            region: The region's name.
            number: The most combinations to return. All of them come back where the region has fewer.
            which: Only those on the validation side or on the test side; both sides by default.
        """

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

    def _listed(self, region: Region) -> Rows | None:
        """A list that contains the whole region, if there is one. A random search would hardly find a short list."""
        if region == "trained":
            return self.support.rows if isinstance(self.support, Listed) else None
        if len(self._reserved):
            return None if region == "rest" else self.support.reserved
        return self.support.reserved if self._surely_empty(region) else None

    def _surely_empty(self, region: Region) -> bool:
        """Whether a region is empty for certain, so that no search is needed (where nothing is reserved)."""
        # Only these two need the moment, whose size is the number of constituents squared.
        if region == "part_unseen":
            return bool((np.diag(self.moment) > 0).all())
        if region == "some_pairs_unmet":
            return bool(((self.moment > 0) | (self.support.space.second_moment() == 0)).all())
        if region == "more_parts":
            return self.support.most_parts >= self.support.space.slots
        return region == "rest"

    def require(self, region: Region, number: int, which: Side | None = None) -> Rows:
        """As `rows`, but raise BadInput where the region is empty."""
        rows = self.rows(region, number, which)
        if not len(rows):
            where = region if which is None else f"{region} ({which} side)"
            raise BadInput(
                f"The region {where} has no combination.", fix="train on fewer combinations, or hold out more"
            )
        return rows

    def __repr__(self) -> str:
        return f"<Regions of {self.support!r}, seed {self.seed}>"
