"""Trains on pairs of short numbers. Longer pairs, and some of every size, are held out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.spaces import NumberPairs, Space
from recombine.supports import Listed, SupportKind
from recombine.supports.listed.drawing import PERMUTED, distinct_numbers

MOST_HELD_OUT = 5
"""At most one pair of a trained size in this many is held out."""


class SmallFactors(SupportKind):
    """Trains on pairs of up to `left` and `right` digits. The test has pairs of these sizes and of all larger ones.

    A pair and its mirror (45 x 23 and 23 x 45) are trained on or held out together, so no held-out product was seen in
    the other order. An untrained size whose mirror is trained is in neither list. The frequency of a size is proportional
    to its number of digit products: 2 and 2 digits are four times as frequent as 1 and 1.
    """

    kind: Literal["small-factors"] = "small-factors"
    defined_on = (NumberPairs,)
    left: PositiveInt = 2
    """The most digits of the first number in training."""
    right: PositiveInt = 2
    """The most digits of the second number in training."""
    number: int = Field(default=8000, ge=2, le=PERMUTED // 2)
    """The number of training pairs of each size; fewer where there are fewer."""
    reserve: int = Field(default=128, ge=2, le=10_000)
    """The number of held-out pairs of each size; at most a fifth of all pairs of a trained size."""

    def obstacle(self, space: Space) -> BadInput | None:
        assert isinstance(space, NumberPairs)
        if self.left > space.left or self.right > space.right or (self.left, self.right) == (space.left, space.right):
            return BadInput(
                f"left={self.left} and right={self.right} leave no larger pairs to test on: the space has {space.title}.",
                fix="choose smaller numbers, or a larger space",
            )
        return None

    def _counts(self, space: NumberPairs) -> Iterator[tuple[int, int, int, int]]:
        """For each size: the digits of both numbers, the number of training pairs and of held-out pairs."""
        for left in range(1, space.left + 1):
            for right in range(1, space.right + 1):
                together = _group_size(left, right)
                total = together * _groups(left, right)
                if left <= self.left and right <= self.right:
                    held_out = min(self.reserve, total // MOST_HELD_OUT) // together * together
                    number = min(self.number, total - held_out) // together * together
                    yield left, right, number, held_out
                elif right <= self.left and left <= self.right:
                    yield left, right, 0, 0
                else:
                    yield left, right, 0, min(self.reserve, total) // together * together

    def length(self, space: Space) -> int:
        self.check(space)
        assert isinstance(space, NumberPairs)
        return sum(number for *_, number, _ in self._counts(space))

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        assert isinstance(space, NumberPairs)
        trained, weights, held_out = [], [], []
        for left, right, number, reserve in self._counts(space):
            # Held-out pairs come first, so that they do not depend on the number. A size and its mirror share draws.
            rng = np.random.default_rng([seed, 59, *sorted((left, right))])
            rows = _pairs(space, left, right, number + reserve, rng)
            held_out.append(rows[:reserve])
            trained.append(rows[reserve:])
            weights.append(np.full(number, left * right / max(1, number)))
        return Listed(space, np.concatenate(trained), np.concatenate(weights), np.concatenate(held_out))


def _group_size(left: int, right: int) -> int:
    """The number of pairs in a group: where both numbers have equally many digits, the mirror has the same size."""
    return 2 if left == right else 1


def _groups(left: int, right: int) -> int:
    """The number of groups of a size."""
    return 81 * 10 ** (left + right - 2) // _group_size(left, right)


def _pairs(
    space: NumberPairs, left: int, right: int, number: int, rng: np.random.Generator
) -> Int[np.ndarray, "number slots"]:
    """`number` different pairs of a size, in random order, with the pairs of a group next to each other.

    Fewer are the beginning of more.
    """
    codes = distinct_numbers(_groups(left, right), number // _group_size(left, right), rng)
    if left == right:
        first, second = _mirrored(codes, 9 * 10 ** (left - 1))
    else:
        longer = 9 * 10 ** (max(left, right) - 1)
        first, second = codes // longer, codes % longer
        first, second = (first, second) if left < right else (second, first)
    return space.of(10 ** (left - 1) + first, 10 ** (right - 1) + second)


def _mirrored(
    codes: Int[np.ndarray, " group"], numbers: int
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """The groups of two pairs of numbers below `numbers` with these codes: a pair and its mirror, or two squares.

    With an odd number of squares the middle one is in no group.
    """
    half = numbers // 2
    square = codes < half
    # After the squares: all pairs of a number and the one at a given distance after it, cyclically.
    apart, first = np.divmod(codes - half, numbers)
    first = np.where(square, codes, first)
    second = np.where(square, numbers - 1 - codes, (first + apart + 1) % numbers)
    left = np.stack([first, second], axis=1)
    right = np.where(square[:, None], left, left[:, ::-1])
    return left.ravel(), right.ravel()
