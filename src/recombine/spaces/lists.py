"""Lists of integers of several lengths."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt, model_validator

from recombine.spaces.product import PrefixSpace, ProductSpace


class ListSpace(PrefixSpace):
    """Lists of integers from `low` to `high`, for example `ListSpace(shortest=2, longest=8)`.

    A constituent is a number at a position, so a row identifies a list, and the length of a list is its number of
    constituents.
    """

    kind: Literal["lists"] = "lists"
    low: int = -5
    """The smallest number."""
    high: int = 5
    """The largest number."""
    shortest: PositiveInt = 2
    """The length of the shortest lists."""
    longest: PositiveInt = 8
    """The length of the longest lists."""

    @model_validator(mode="after")
    def _rise(self) -> ListSpace:
        for lower, upper in (("low", "high"), ("shortest", "longest")):
            if getattr(self, lower) > getattr(self, upper):
                raise ValueError(f"{lower}={getattr(self, lower)} is more than {upper}={getattr(self, upper)}")
        return self

    @property
    def levels(self) -> int:
        """The number of different integers."""
        return self.high - self.low + 1

    @property
    def lengths(self) -> range:
        """The possible lengths of lists."""
        return range(self.shortest, self.longest + 1)

    @functools.cached_property
    def _full(self) -> ProductSpace:
        """The lists of full length, which have the same constituents and the same interactions."""
        values = tuple(str(number) for number in range(self.low, self.high + 1))
        return ProductSpace(factors=tuple((f"place {position}", values) for position in range(1, self.longest + 1)))

    @property
    def width(self) -> int:
        return self.longest * self.levels

    @property
    def slots(self) -> int:
        return self.longest

    @property
    def size(self) -> int:
        return sum(self.levels**length for length in self.lengths)

    def of(self, values: Int[np.ndarray, "n length"]) -> Int[np.ndarray, "n slots"]:
        """The rows of lists of one length."""
        number, length = values.shape
        rows = np.full((number, self.slots), self.width, np.int32)
        rows[:, :length] = values - self.low + self.levels * np.arange(length)
        return rows

    def sample(self, key: Array) -> Int[Array, " slots"]:
        by_length, by_value = jax.random.split(key)
        odds = jnp.array([self.levels**length / self.size for length in self.lengths])
        length = self.shortest + jax.random.categorical(by_length, jnp.log(odds))
        slots = jnp.arange(self.slots)
        parts = jax.random.randint(by_value, (self.slots,), 0, self.levels) + self.levels * slots
        return jnp.where(slots < length, parts, self.width).astype(jnp.int32)

    def contains(self, rows: Int[np.ndarray, "n slots"]) -> np.ndarray:
        rows = np.asarray(rows)
        real = rows != self.width
        length = real.sum(axis=1)
        fits = (rows // self.levels == np.arange(self.slots)) | ~real
        at_front = real == (np.arange(self.slots) < length[:, None])
        return (fits & at_front).all(axis=1) & (length >= self.shortest)

    def _rows(self) -> Int[np.ndarray, "size slots"]:
        values = range(self.low, self.high + 1)
        return np.concatenate(
            [self.of(np.array(list(itertools.product(values, repeat=length)))) for length in self.lengths]
        )

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        counts = [
            self.levels**length / self.size if length in self.lengths else 0.0 for length in range(self.longest + 1)
        ]
        reached = np.array([sum(counts[slot + 1 :]) for slot in range(self.longest)])
        slot = np.repeat(np.arange(self.longest), self.levels)
        both = reached[np.maximum.outer(slot, slot)] / self.levels**2
        return np.where(np.equal.outer(slot, slot), 0.0, both) + np.diag(reached[slot] / self.levels)

    def values(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> tuple[int, ...]:
        """The numbers of a list."""
        return tuple(part % self.levels + self.low for part in self.constituents(row))

    @property
    def title(self) -> str:
        return f"lists of {self.shortest} to {self.longest} numbers from {self.low} to {self.high}"

    def name(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> str:
        return " ".join(str(value) for value in self.values(row))
