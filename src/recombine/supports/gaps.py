"""A random list with gaps: some constituents never occur, and some pairs of the others never occur together."""

from __future__ import annotations

from typing import Literal

import jax
import numpy as np
from jaxtyping import Bool
from pydantic import NonNegativeInt, PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space, in_words
from recombine.spaces.rows import Rows, RowSet, groups
from recombine.supports import Listed, SupportKind
from recombine.supports.listed.drawing import distinct_rows, require, seed_key

TRIES = 1000


class Gaps(SupportKind):
    """`number` combinations without the unseen constituents and the unmet pairs. The reserved test has all combinations.

    So the held-out combinations of one support lie in every coverage stratum, with the same gaps at every number.
    """

    kind: Literal["gaps"] = "gaps"
    number: PositiveInt
    """The number of training combinations."""
    parts: NonNegativeInt = 1
    """The number of constituents that never occur in training."""
    pairs: NonNegativeInt = 12
    """The number of pairs of other constituents that never occur together."""
    reserve: NonNegativeInt = 0
    """The number of combinations of the whole space set aside first: one common held-out test."""

    def length(self, space: Space) -> int:
        return self.number

    def check(self, space: Space) -> None:
        if self.parts >= space.width - 1:
            raise BadInput(
                f"parts={self.parts} of {space.width} constituents leaves none to combine.", fix="lower parts"
            )
        most = space.interactions(2) if space.slots > 1 else 0
        if self.pairs >= most:
            raise BadInput(f"pairs={self.pairs}, but the space has only {most} pairs.", fix="lower pairs")
        if self.number + max(2, self.reserve) > space.size:
            raise BadInput(
                f"Training on {self.number} and reserving {self.reserve} combinations is not possible: the space has "
                f"{in_words(space.size)}, and validation and test need at least one each.",
                fix="lower number or reserve",
            )

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        key = seed_key(seed)
        rng = np.random.default_rng([seed, 17])
        unseen = rng.choice(space.width, self.parts, replace=False)
        reserved = distinct_rows(space, jax.random.fold_in(key, 0), self.reserve)
        set_aside = RowSet(require(reserved, self.reserve, "combinations to reserve"))
        # Drawn once and not at every attempt, so that the gaps are the same at every number.
        allowed = _allowed(space, unseen, self.pairs, rng)

        def keep(rows: np.ndarray) -> np.ndarray:
            return _holds(rows, allowed) & ~set_aside.contains(rows)

        for attempt in range(TRIES):
            rows = distinct_rows(space, jax.random.fold_in(key, 1 + attempt), self.number, keep)
            require(rows, self.number, "combinations to train on without the gaps")
            # All other constituents occur and are connected.
            if groups(rows, space.width) == 1 + self.parts:
                return Listed(space, rows, reserved=reserved)
        raise BadInput(
            f"{TRIES} random supports of {self.number} combinations were drawn, and none connected all seen constituents.",
            fix="train on more combinations, or make fewer gaps",
        )


def _allowed(
    space: Space, unseen: np.ndarray, pairs: int, rng: np.random.Generator
) -> Bool[np.ndarray, "width_and_pad width_and_pad"]:
    """Which pairs of constituents may occur together. The pad may occur with every constituent."""
    width = space.width
    allowed = np.pad(space.second_moment() > 0, ((0, 1), (0, 1)), constant_values=True)
    allowed[unseen] = allowed[:, unseen] = False
    first, second = np.nonzero(np.triu(allowed[:width, :width], k=1))
    chosen = rng.choice(len(first), min(pairs, len(first)), replace=False)
    allowed[first[chosen], second[chosen]] = allowed[second[chosen], first[chosen]] = False
    return allowed


def _holds(rows: Rows, allowed: Bool[np.ndarray, "width_and_pad width_and_pad"]) -> Bool[np.ndarray, " n"]:
    """Which combinations have only allowed pairs. The diagonal decides about single constituents."""
    return np.all(allowed[rows[:, :, None], rows[:, None, :]], axis=(1, 2))
