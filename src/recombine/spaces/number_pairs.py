"""Pairs of positive integers with several numbers of digits."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from recombine.spaces.product import PrefixSpace, ProductSpace
from recombine.spaces.rows import membership


class NumberPairs(PrefixSpace):
    """Two positive integers with up to `left` and `right` digits, for example `NumberPairs(left=3, right=2)`.

    A constituent is a digit at a position of one of the numbers, so a row identifies a pair. No number starts with zero.
    """

    kind: Literal["number-pairs"] = "number-pairs"
    left: int = Field(default=3, ge=1, le=4)
    """The most digits of the first number."""
    right: int = Field(default=3, ge=1, le=4)
    """The most digits of the second number."""

    @functools.cached_property
    def _full(self) -> ProductSpace:
        """Pairs with all digits, which have the same constituents and the same interactions."""
        digits = tuple(map(str, range(10)))
        factors = []
        for side, length in (("left", self.left), ("right", self.right)):
            # The highest digit cannot be zero.
            factors += [(f"{side} {position + 1}", digits[position == length - 1 :]) for position in range(length)]
        return ProductSpace(factors=tuple(factors))

    @property
    def _zeros(self) -> Int[np.ndarray, " slots"]:
        """The constituent number of a zero at each position, including the positions where zero is not possible."""
        offsets, levels = np.array(self._full.offsets), np.array(self._full.levels)
        return offsets - (levels < 10)

    @property
    def width(self) -> int:
        return self._full.width

    @property
    def slots(self) -> int:
        return self.left + self.right

    @property
    def size(self) -> int:
        return (10**self.left - 1) * (10**self.right - 1)

    def of(self, left: Any, right: Any, arrays: Any = np) -> Any:
        """The rows of pairs of numbers. `arrays` is NumPy or `jax.numpy`, whichever the numbers belong to."""
        columns = []
        for number, length in ((left, self.left), (right, self.right)):
            powers = 10 ** np.arange(length)
            columns.append(arrays.where(number[..., None] >= powers, number[..., None] // powers % 10, -1))
        digits = arrays.concatenate(columns, axis=-1)
        rows = arrays.where(digits >= 0, digits + self._zeros, self.width)
        return arrays.sort(rows, axis=-1).astype(arrays.int32)

    def digits(self, rows: Any, arrays: Any = np) -> Any:
        """The digits of rows, units first, the first number's before the second's; -1 where there is no digit."""
        starts = np.array(self._full.offsets)
        parts = rows[..., None]
        inside = (parts >= starts) & (parts < np.append(starts[1:], self.width))
        return arrays.max(arrays.where(inside, parts - self._zeros, -1), axis=-2)

    def numbers(self, rows: Any, arrays: Any = np) -> tuple[Any, Any]:
        """Both numbers of rows."""
        digits = arrays.maximum(self.digits(rows, arrays), 0)
        powers = 10 ** np.arange(max(self.left, self.right))
        return (
            arrays.sum(digits[..., : self.left] * powers[: self.left], axis=-1),
            arrays.sum(digits[..., self.left :] * powers[: self.right], axis=-1),
        )

    def sample(self, key: Array) -> Int[Array, " slots"]:
        by_left, by_right = jax.random.split(key)
        left = jax.random.randint(by_left, (), 1, 10**self.left)
        right = jax.random.randint(by_right, (), 1, 10**self.right)
        return self.of(left, right, jnp)

    def contains(self, rows: Int[np.ndarray, "n slots"]) -> np.ndarray:
        rows = np.asarray(rows)
        known = np.all((rows >= 0) & (rows <= self.width), axis=1)
        left, right = self.numbers(np.where(known[:, None], rows, self.width))
        # A row belongs to the space if its numbers have exactly this row.
        return known & (left > 0) & (right > 0) & np.all(self.of(left, right) == rows, axis=1)

    def _rows(self) -> Int[np.ndarray, "size slots"]:
        grids = np.meshgrid(np.arange(1, 10**self.left), np.arange(1, 10**self.right), indexing="ij")
        rows = self.of(*(grid.ravel() for grid in grids))
        parts = (rows < self.width).sum(axis=1)
        return rows[np.lexsort((*rows.T[::-1], parts))]

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        # The numbers are independent: each side is listed, and between sides the shares are multiplied.
        sides = []
        for side, length in enumerate((self.left, self.right)):
            every = np.arange(1, 10**length)
            ones = np.ones_like(every)
            rows = self.of(ones, every) if side else self.of(every, ones)
            sides.append(membership(rows, self.width).toarray())
        split = self._full.offsets[self.left]
        left, right = sides[0][:, :split], sides[1][:, split:]
        across = np.outer(left.mean(axis=0), right.mean(axis=0))
        own = [half.T @ half / len(half) for half in (left, right)]
        return np.block([[own[0], across], [across.T, own[1]]])

    @property
    def title(self) -> str:
        return f"pairs of numbers of up to {self.left} and {self.right} digits"

    def name(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> str:
        left, right = self.numbers(np.asarray(row))
        return f"{left} x {right}"
