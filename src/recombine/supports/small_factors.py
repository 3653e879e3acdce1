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
from recombine.supports.drawing import PERMUTED, distinct_numbers
from recombine.supports.listed import Listed

MOST_HELD_OUT = 5
"""At most one pair in so many of a trained size is held out."""


class SmallFactors(SupportKind):
    """Trains on pairs of up to `left` and `right` digits. Held out are pairs of these sizes and of all larger ones.

    A pair and its mirror (45 x 23 and 23 x 45) are trained on or held out together: no held-out product was seen the other
    way round. An untrained size whose mirror is trained is in neither list. A size is as frequent as it has products of
    digits: that of 2 and 2 digits four times as often as that of 1 and 1.
    """

    kind: Literal["small-factors"] = "small-factors"
    left: PositiveInt = 2
    """The most digits of first numbers that are trained on."""
    right: PositiveInt = 2
    """And of second ones."""
    number: int = Field(default=8000, ge=2, le=PERMUTED // 2)
    """The most pairs of each size that are trained on; fewer where there are fewer."""
    reserve: int = Field(default=128, ge=2, le=10_000)
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
                each = _each(left, right)
                total = each * _groups(left, right)
                if left <= self.left and right <= self.right:
                    held_out = min(self.reserve, total // MOST_HELD_OUT) // each * each
                    yield left, right, min(self.number, total - held_out) // each * each, held_out
                elif right <= self.left and left <= self.right:
                    yield left, right, 0, 0
                else:
                    yield left, right, 0, min(self.reserve, total) // each * each

    def length(self, space: Space) -> int:
        self.check(space)
        assert isinstance(space, NumberPairs)
        return sum(number for *_, number, _ in self._counts(space))

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        assert isinstance(space, NumberPairs)
        trained, weights, held_out = [], [], []
        for left, right, number, reserve in self._counts(space):
            # Those held out come first, so that they are the same whatever the number; a size and its mirror have the same
            # draws.
            rng = np.random.default_rng([seed, 59, *sorted((left, right))])
            rows = _pairs(space, left, right, number + reserve, rng)
            held_out.append(rows[:reserve])
            trained.append(rows[reserve:])
            weights.append(np.full(number, left * right / max(1, number)))
        return Listed(space, np.concatenate(trained), np.concatenate(weights), np.concatenate(held_out))


def _each(left: int, right: int) -> int:
    """How many pairs of a size go together: where both numbers have as many digits, the mirror is of the same size."""
    return 2 if left == right else 1


def _groups(left: int, right: int) -> int:
    """How many groups of pairs that go together a size has."""
    return 81 * 10 ** (left + right - 2) // _each(left, right)


def _pairs(
    space: NumberPairs, left: int, right: int, number: int, rng: np.random.Generator
) -> Int[np.ndarray, "number slots"]:
    """So many different pairs of a size, in random order, those that go together one after another.

    Fewer are the beginning of more.
    """
    codes = distinct_numbers(_groups(left, right), number // _each(left, right), rng)
    if left == right:
        one, other = _mirrored(codes, 9 * 10 ** (left - 1))
    else:
        second = 9 * 10 ** (max(left, right) - 1)
        one, other = codes // second, codes % second
        one, other = (one, other) if left < right else (other, one)
    return space.of(10 ** (left - 1) + one, 10 ** (right - 1) + other)


def _mirrored(
    codes: Int[np.ndarray, " group"], numbers: int
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """The groups of two pairs of numbers below `numbers` with these codes: a pair and its mirror, or two squares.

    Of an odd number of squares the middle one is in no group.
    """
    half = numbers // 2
    square = codes < half
    # Behind the squares: all pairs of a number and the one that lies so far behind it, going round.
    apart, first = np.divmod(codes - half, numbers)
    first = np.where(square, codes, first)
    second = np.where(square, numbers - 1 - codes, (first + apart + 1) % numbers)
    one = np.stack([first, second], axis=1)
    other = np.where(square[:, None], one, one[:, ::-1])
    return one.ravel(), other.ravel()
