"""A random list with gaps: some constituents are never seen, and some pairs of the others never meet."""

from __future__ import annotations

from typing import Literal

import jax
import numpy as np
from jaxtyping import Bool, Int
from pydantic import NonNegativeInt, PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space, in_words
from recombine.supports.base import SupportKind
from recombine.supports.drawing import distinct_rows, require, seed_key
from recombine.supports.listed import Listed
from recombine.supports.rows import RowSet, groups

TRIES = 1000


class Gaps(SupportKind):
    """`number` combinations without the unseen parts and the unmet pairs; the reserved test holds all sorts.

    So one support has held-out combinations in every coverage stratum, and the same gaps at every number.
    """

    kind: Literal["gaps"] = "gaps"
    number: PositiveInt
    """How many combinations are trained on."""
    parts: NonNegativeInt = 1
    """So many constituents are never seen."""
    pairs: NonNegativeInt = 12
    """So many pairs of the other constituents never meet."""
    reserve: NonNegativeInt = 0
    """So many combinations of the whole space are set aside first: one common held-out test."""

    def length(self, space: Space) -> int:
        return self.number

    def check(self, space: Space) -> None:
        if self.parts >= space.width - 1:
            raise BadInput(
                f"parts={self.parts} of {space.width} constituents leaves none to combine.", fix="lower parts"
            )
        most = space.interactions(2) if space.slots > 1 else 0
        if self.pairs >= most:
            raise BadInput(f"pairs={self.pairs}, but only {most} pairs can meet at all.", fix="lower pairs")
        if self.number + max(2, self.reserve) > space.size:
            raise BadInput(
                f"Training on {self.number} and reserving {self.reserve} combinations is more than the "
                f"{in_words(space.size)} that there are, with two left to validate and test on.",
                fix="lower number or reserve",
            )

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        key = seed_key(seed)
        rng = np.random.default_rng([seed, 17])
        unseen = rng.choice(space.width, self.parts, replace=False)
        reserved = distinct_rows(space, jax.random.fold_in(key, 0), self.reserve)
        set_aside = RowSet(require(reserved, self.reserve, "combinations to reserve"))
        # Once, and not at every attempt: the gaps are the same at every number.
        allowed = _allowed(space, unseen, self.pairs, rng)

        def keep(rows: np.ndarray) -> np.ndarray:
            return _holds(rows, allowed) & ~set_aside.contains(rows)

        for attempt in range(TRIES):
            rows = distinct_rows(space, jax.random.fold_in(key, 1 + attempt), self.number, keep)
            require(rows, self.number, "combinations to train on without the gaps")
            # Everything that may be seen is seen, and hangs together.
            if groups(rows, space.width) == 1 + self.parts:
                return Listed(space, rows, reserved=reserved)
        raise BadInput(
            f"None of {TRIES} random supports of {self.number} combinations linked all constituents but the unseen.",
            fix="train on more combinations, or make fewer gaps",
        )


def _allowed(
    space: Space, unseen: np.ndarray, pairs: int, rng: np.random.Generator
) -> Bool[np.ndarray, "width_and_pad width_and_pad"]:
    """Which constituents may stand in one combination; the pad may stand with every one."""
    width = space.width
    allowed = np.pad(space.second_moment() > 0, ((0, 1), (0, 1)), constant_values=True)
    allowed[unseen] = allowed[:, unseen] = False
    first, second = np.nonzero(np.triu(allowed[:width, :width], k=1))
    chosen = rng.choice(len(first), min(pairs, len(first)), replace=False)
    allowed[first[chosen], second[chosen]] = allowed[second[chosen], first[chosen]] = False
    return allowed


def _holds(
    rows: Int[np.ndarray, "n slots"], allowed: Bool[np.ndarray, "width_and_pad width_and_pad"]
) -> Bool[np.ndarray, " n"]:
    """Which combinations keep to the allowed pairs (a part stands with itself)."""
    return np.all(allowed[rows[:, :, None], rows[:, None, :]], axis=(1, 2))
