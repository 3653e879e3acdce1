"""Pairs of whole numbers, of several lengths."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace


class NumberPairs(Space):
    """Two positive numbers of up to so many digits, e.g. `NumberPairs(left=3, right=2)`.

    A constituent is a digit at a place of one of them, so a pair is told apart by its row. No number begins with a zero.
    """

    kind: Literal["number-pairs"] = "number-pairs"
    left: int = Field(default=3, ge=1, le=4)
    """The most digits of the first number."""
    right: int = Field(default=3, ge=1, le=4)
    """And of the second."""

    @functools.cached_property
    def _places(self) -> ProductSpace:
        """Pairs of full length: parts have the same numbers there, and the same sets of parts can meet."""
        digits = tuple(map(str, range(10)))
        factors = []
        for side, length in (("left", self.left), ("right", self.right)):
            # A zero at the highest place would begin its number.
            factors += [(f"{side} {place + 1}", digits[place == length - 1 :]) for place in range(length)]
        return ProductSpace(factors=tuple(factors))

    @property
    def _zeros(self) -> Int[np.ndarray, " slots"]:
        """The number that a zero at each place has, or would have."""
        offsets, levels = np.array(self._places.offsets), np.array(self._places.levels)
        return offsets - (levels < 10)

    @property
    def width(self) -> int:
        return self._places.width

    @property
    def slots(self) -> int:
        return self.left + self.right

    @property
    def size(self) -> int:
        return (10**self.left - 1) * (10**self.right - 1)

    def of(self, left: Any, right: Any, arrays: Any = np) -> Any:
        """The rows of pairs of numbers: arrays of NumPy, or of JAX if so asked."""
        columns = []
        for number, length in ((left, self.left), (right, self.right)):
            powers = 10 ** np.arange(length)
            columns.append(arrays.where(number[..., None] >= powers, number[..., None] // powers % 10, -1))
        digits = arrays.concatenate(columns, axis=-1)
        rows = arrays.where(digits >= 0, digits + self._zeros, self.width)
        return arrays.sort(rows, axis=-1).astype(arrays.int32)

    def digits(self, rows: Any, arrays: Any = np) -> Any:
        """The digits at all places of rows, units first, the first number's before the second's; -1 where none is."""
        starts = np.array(self._places.offsets)
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
        # A row is one of the space if the numbers that it says are written as it is.
        return known & (left > 0) & (right > 0) & np.all(self.of(left, right) == rows, axis=1)

    def _rows(self) -> Int[np.ndarray, "size slots"]:
        grids = np.meshgrid(np.arange(1, 10**self.left), np.arange(1, 10**self.right), indexing="ij")
        rows = self.of(*(grid.ravel() for grid in grids))
        parts = (rows < self.width).sum(axis=1)
        return rows[np.lexsort((*rows.T[::-1], parts))]

    def interactions(self, strength: int) -> int:
        return self._places.interactions(strength)

    def list_interactions(self, strength: int) -> Int[np.ndarray, "n strength"]:
        return self._places.list_interactions(strength)

    def sample_interactions(
        self, rng: np.random.Generator, strength: int, number: int
    ) -> Int[np.ndarray, "number strength"]:
        self._require_strength(strength)
        return self._places.sample_interactions(rng, strength, number)

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        # The numbers are independent: each side by listing its own, between sides the product of the shares.
        sides = []
        for side, length in enumerate((self.left, self.right)):
            every = np.arange(1, 10**length)
            one = np.ones_like(every)
            rows = self.of(one, every) if side else self.of(every, one)
            holds = np.zeros((len(rows), self.width + 1))
            holds[np.arange(len(rows))[:, None], rows] = 1
            sides.append(holds[:, : self.width])
        split = self._places.offsets[self.left]
        left, right = sides[0][:, :split], sides[1][:, split:]
        across = np.outer(left.mean(axis=0), right.mean(axis=0))
        own = [half.T @ half / len(half) for half in (left, right)]
        return np.block([[own[0], across], [across.T, own[1]]])

    @property
    def title(self) -> str:
        return f"pairs of numbers of up to {self.left} and {self.right} digits"

    def label(self, constituent: int) -> str:
        return self._places.label(constituent)

    def name(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> str:
        left, right = self.numbers(np.asarray(row))
        return f"{left} x {right}"
