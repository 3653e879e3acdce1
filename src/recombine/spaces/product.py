"""One value for each of several factors."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field, field_validator, model_validator

from recombine.spaces.base import Space

EXPECTED = 'give a mapping such as {"colour": ["red", "blue"], "shape": 3}'


class ProductSpace(Space):
    """A value for each factor, e.g. `ProductSpace(factors={"colour": ["red", "blue"], "shape": 3})`."""

    kind: Literal["product"] = "product"
    factors: tuple[tuple[str, tuple[str, ...]], ...] = Field(min_length=1)
    """The factors and their values, in order. A mapping is accepted, and a number stands for that many values."""

    @field_validator("factors", mode="before")
    @classmethod
    def _from_mapping(cls, given: object) -> object:
        pairs = tuple(given.items()) if isinstance(given, dict) else given
        made: list[tuple[str, tuple[str, ...]]] = []
        for pair in pairs if isinstance(pairs, (list, tuple)) else [given]:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise ValueError(f"{EXPECTED}, got {pair!r}")
            name, values = pair
            if isinstance(values, int) and not isinstance(values, bool):
                values = range(values)
            # A lone string would be taken letter by letter, which nobody means. pydantic hands on ValueError only.
            if not isinstance(values, (list, tuple, range)):
                raise ValueError(f"factor {name!r} needs a list of values or their number, got {values!r}")
            made.append((str(name), tuple(str(value) for value in values)))
        return tuple(made)

    @model_validator(mode="after")
    def _check(self) -> ProductSpace:
        names = [name for name, _ in self.factors]
        if len(set(names)) < len(names):
            raise ValueError(f"factor names must differ, got {names}")
        for name, values in self.factors:
            if not values or len(set(values)) < len(values):
                raise ValueError(f"factor {name!r} needs at least one value and no value twice, got {values}")
        return self

    @property
    def levels(self) -> tuple[int, ...]:
        """How many values each factor has."""
        return tuple(len(values) for _, values in self.factors)

    @property
    def offsets(self) -> tuple[int, ...]:
        """The number of each factor's first constituent."""
        return tuple(itertools.accumulate(self.levels[:-1], initial=0))

    @property
    def width(self) -> int:
        return sum(self.levels)

    @property
    def slots(self) -> int:
        return len(self.factors)

    @property
    def size(self) -> int:
        return math.prod(self.levels)

    def sample(self, key: Array) -> Int[Array, " slots"]:
        values = jax.random.randint(key, (self.slots,), 0, jnp.array(self.levels))
        return (values + jnp.array(self.offsets)).astype(jnp.int32)

    def contains(self, rows: Int[np.ndarray, "n slots"]) -> np.ndarray:
        values = np.asarray(rows) - np.array(self.offsets)
        return np.all((values >= 0) & (values < np.array(self.levels)), axis=1)

    def _rows(self) -> Int[np.ndarray, "size slots"]:
        grids = np.meshgrid(*(np.arange(count) for count in self.levels), indexing="ij")
        values = np.stack([grid.ravel() for grid in grids], axis=1)
        return (values + np.array(self.offsets)).astype(np.int32)

    def _interactions_of_first(self, strength: int) -> list[list[int]]:
        """How many value sets of 0..strength factors the first 0..n factors have; no factor set is listed."""
        table = [[1] + [0] * strength]
        for level in self.levels:
            last = table[-1]
            table.append([1] + [last[k] + last[k - 1] * level for k in range(1, strength + 1)])
        return table

    def interactions(self, strength: int) -> int:
        return self._interactions_of_first(strength)[-1][strength]

    def list_interactions(self, strength: int) -> Int[np.ndarray, "n strength"]:
        blocks = [np.empty((0, strength), np.int32)]
        for chosen in itertools.combinations(range(self.slots), strength):
            part = ProductSpace(factors=tuple(self.factors[index] for index in chosen))
            shift = np.array([self.offsets[index] for index in chosen]) - np.array(part.offsets)
            blocks.append((part._rows() + shift).astype(np.int32))
        return np.concatenate(blocks)

    def sample_interactions(
        self, rng: np.random.Generator, strength: int, number: int
    ) -> Int[np.ndarray, "number strength"]:
        self._require_strength(strength)
        # A set of factors is as likely as it has value sets: walk the factors from the last to the first and
        # take each with its exact conditional probability.
        prefix = self._interactions_of_first(strength)
        drawn = np.empty((number, strength), np.int32)
        for index in range(number):
            missing = strength
            for factor in range(self.slots - 1, -1, -1):
                if missing == 0:
                    break
                taken = self.levels[factor] * prefix[factor][missing - 1] / prefix[factor + 1][missing]
                if rng.random() < taken:
                    missing -= 1
                    drawn[index, missing] = self.offsets[factor] + rng.integers(self.levels[factor])
        return drawn

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        shares = np.concatenate([np.full(count, 1 / count) for count in self.levels])
        factor = np.repeat(np.arange(self.slots), self.levels)
        moment = np.outer(shares, shares) * (factor[:, None] != factor[None, :])
        return moment + np.diag(shares)

    @property
    def title(self) -> str:
        return " x ".join(f"{len(values)} {name}" for name, values in self.factors)

    def label(self, constituent: int) -> str:
        for (name, values), offset in zip(self.factors, self.offsets, strict=True):
            if offset <= constituent < offset + len(values):
                return f"{name}={values[constituent - offset]}"
        raise IndexError(f"constituent {constituent} of {self.width}")
