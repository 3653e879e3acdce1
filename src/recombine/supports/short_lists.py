"""Trains on lists up to a length. Longer lists, and some of every length, are held out."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.spaces import ListSpace, Space
from recombine.supports import Listed, SupportKind
from recombine.supports.listed.drawing import PERMUTED, distinct_numbers

MOST_HELD_OUT = 5
"""At most one list of a trained length in this many is held out."""


class ShortLists(SupportKind):
    """Trains on lists of up to `longest` numbers. The test has lists of these lengths and of all longer ones."""

    kind: Literal["short-lists"] = "short-lists"
    defined_on = (ListSpace,)
    longest: PositiveInt = 5
    """The length of the longest training lists."""
    number: int = Field(default=8000, ge=1, le=PERMUTED // 2)
    """The number of training lists of each length; fewer where there are fewer."""
    tilt: float = Field(default=0.0, ge=0)
    """The frequency of lists of n numbers is proportional to n to this power. With 0 all lengths are equally frequent."""
    reserve: int = Field(default=128, ge=1, le=PERMUTED // 4)
    """The number of held-out lists of each length; at most a fifth of all lists of a trained length."""

    later = frozenset({"tilt"})

    def obstacle(self, space: Space) -> BadInput | None:
        assert isinstance(space, ListSpace)
        if not space.shortest <= self.longest < space.longest:
            return BadInput(
                f"longest={self.longest} leaves no lists to train on, or no longer lists: the space has lists of "
                f"{space.shortest} to {space.longest} numbers.",
                fix=f"longest={max(space.shortest, space.longest - 1)}, or a larger space.longest",
            )
        if space.levels**space.longest >= 2**62:
            return BadInput(
                f"There are too many lists of {space.longest} numbers to draw from.",
                fix="a smaller space.longest, or fewer numbers",
            )
        return None

    def _counts(self, space: ListSpace, length: int) -> tuple[int, int]:
        """The number of training lists and of held-out lists of a length."""
        total = space.levels**length
        if length > self.longest:
            return 0, min(self.reserve, total)
        held_out = min(self.reserve, max(1, total // MOST_HELD_OUT))
        return min(self.number, total - held_out), held_out

    def length(self, space: Space) -> int:
        self.check(space)
        assert isinstance(space, ListSpace)
        return sum(self._counts(space, length)[0] for length in space.lengths)

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        assert isinstance(space, ListSpace)
        trained, weights, held_out = [], [], []
        for length in space.lengths:
            number, reserve = self._counts(space, length)
            # Held-out lists come first, so that they do not depend on the number.
            rows = _lists(space, length, number + reserve, np.random.default_rng([seed, 47, length]))
            held_out.append(rows[:reserve])
            trained.append(rows[reserve:])
            weights.append(np.full(number, length**self.tilt / max(1, number)))
        return Listed(space, np.concatenate(trained), np.concatenate(weights), np.concatenate(held_out))


def _lists(space: ListSpace, length: int, number: int, rng: np.random.Generator) -> Int[np.ndarray, "number slots"]:
    """`number` different lists of a length, in random order. Fewer are the beginning of more."""
    codes = distinct_numbers(space.levels**length, number, rng)
    digits = codes[:, None] // space.levels ** np.arange(length)[::-1] % space.levels
    return space.of(digits + space.low)
