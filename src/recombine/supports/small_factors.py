"""Pairs of short numbers are trained on; longer ones are held out, and some of every size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.number_pairs import NumberPairs
from recombine.supports.base import SupportKind
from recombine.supports.listed import Listed

MOST_HELD_OUT = 5
"""At most one pair in so many of a trained size is held out."""


class SmallFactors(SupportKind):
    """Trains on pairs of up to `left` and `right` digits. Held out are pairs of these sizes and of all larger ones.

    A size is as frequent as it has products of digits: that of 2 and 2 digits four times as often as that of 1 and 1.
    """

    kind: Literal["small-factors"] = "small-factors"
    left: PositiveInt = 2
    """The most digits of first numbers that are trained on."""
    right: PositiveInt = 2
    """And of second ones."""
    number: PositiveInt = 8000
    """The most pairs of each size that are trained on; fewer where there are fewer."""
    reserve: int = Field(default=128, ge=1, le=10_000)
    """The most pairs of each size that are held out; of small ones at most a fifth of all."""

    def obstacle(self, space: Space) -> BadInput | None:
        if not isinstance(space, NumberPairs):
            return BadInput(
                f"small-factors is for pairs of numbers, got a space of kind {space.kind!r}.",
                fix="space=number-pairs",
            )
        if (
            self.left > space.left
            or self.right > space.right
            or (self.left, self.right) == (space.left, space.right)
        ):
            return BadInput(
                f"left={self.left} and right={self.right} leave no larger pairs to test on: there are {space.title}.",
                fix="smaller ones, or a larger space",
            )
        return None

    def check(self, space: Space) -> None:
        self.require_possible(space)

    def _counts(self, space: NumberPairs) -> Iterator[tuple[int, int, int, int]]:
        """For each size, the digits of both numbers: how many pairs are trained on, and how many are held out."""
        for left in range(1, space.left + 1):
            for right in range(1, space.right + 1):
                total = 81 * 10 ** (left + right - 2)
                if left > self.left or right > self.right:
                    yield left, right, 0, min(self.reserve, total)
                else:
                    held_out = min(self.reserve, total // MOST_HELD_OUT)
                    yield left, right, min(self.number, total - held_out), held_out

    def length(self, space: Space) -> int:
        self.check(space)
        assert isinstance(space, NumberPairs)
        return sum(number for *_, number, _ in self._counts(space))

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        assert isinstance(space, NumberPairs)
        trained, weights, held_out = [], [], []
        for left, right, number, reserve in self._counts(space):
            # Those held out come first, so that they are the same whatever the number.
            rows = _pairs(
                space, left, right, number + reserve, np.random.default_rng([seed, 59, left, right])
            )
            held_out.append(rows[:reserve])
            trained.append(rows[reserve:])
            weights.append(np.full(number, left * right / max(1, number)))
        return Listed(space, np.concatenate(trained), np.concatenate(weights), np.concatenate(held_out))


def _pairs(
    space: NumberPairs, left: int, right: int, number: int, rng: np.random.Generator
) -> Int[np.ndarray, "number slots"]:
    """So many different pairs of a size, in random order. Fewer are the beginning of more."""
    first, second = 9 * 10 ** (left - 1), 9 * 10 ** (right - 1)
    codes = rng.permutation(first * second)[:number]
    return space.of(10 ** (left - 1) + codes // second, 10 ** (right - 1) + codes % second)
