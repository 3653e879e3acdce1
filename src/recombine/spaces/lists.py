"""Lists of whole numbers, of several lengths."""

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

from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace


class ListSpace(Space):
    """Lists of numbers from `low` to `high`, e.g. `ListSpace(shortest=2, longest=8)`.

    A constituent is a number at a place, so a list is told apart by its row, and its length is how many parts it has.
    """

    kind: Literal["lists"] = "lists"
    low: int = -5
    """The smallest number."""
    high: int = 5
    """The largest."""
    shortest: PositiveInt = 2
    """Numbers in the shortest lists."""
    longest: PositiveInt = 8
    """And in the longest."""

    @model_validator(mode="after")
    def _rise(self) -> ListSpace:
        for one, other in (("low", "high"), ("shortest", "longest")):
            if getattr(self, one) > getattr(self, other):
                raise ValueError(f"{one}={getattr(self, one)} is more than {other}={getattr(self, other)}")
        return self

    @property
    def levels(self) -> int:
        """How many numbers there are."""
        return self.high - self.low + 1

    @property
    def lengths(self) -> range:
        """How long lists can be."""
        return range(self.shortest, self.longest + 1)

    @functools.cached_property
    def _places(self) -> ProductSpace:
        """The lists of full length: parts have the same numbers there, and the same sets of parts can meet."""
        values = tuple(str(number) for number in range(self.low, self.high + 1))
        return ProductSpace(factors=tuple((f"place {place}", values) for place in range(1, self.longest + 1)))

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
        places = jnp.arange(self.slots)
        parts = jax.random.randint(by_value, (self.slots,), 0, self.levels) + self.levels * places
        return jnp.where(places < length, parts, self.width).astype(jnp.int32)

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
        counts = [
            self.levels**length / self.size if length in self.lengths else 0.0
            for length in range(self.longest + 1)
        ]
        reached = np.array([sum(counts[place + 1 :]) for place in range(self.longest)])
        place = np.repeat(np.arange(self.longest), self.levels)
        both = reached[np.maximum.outer(place, place)] / self.levels**2
        return np.where(np.equal.outer(place, place), 0.0, both) + np.diag(reached[place] / self.levels)

    def values(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> tuple[int, ...]:
        """The numbers of a list."""
        return tuple(part % self.levels + self.low for part in self.constituents(row))

    @property
    def title(self) -> str:
        return f"lists of {self.shortest} to {self.longest} numbers from {self.low} to {self.high}"

    def label(self, constituent: int) -> str:
        return self._places.label(constituent)

    def name(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> str:
        return " ".join(str(value) for value in self.values(row))
