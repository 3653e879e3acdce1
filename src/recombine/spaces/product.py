"""Products of factors: a combination has one value of each factor."""

from __future__ import annotations

import abc
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, field_validator, model_validator

from recombine import _html
from recombine._lazy import jax, jnp
from recombine._show import shorten
from recombine.errors import BadInput, did_you_mean
from recombine.spaces.base import Interactions, Space, in_words

SHOWN = 20
"""The most factors that a notebook shows."""

EXPECTED = 'give a mapping such as {"colour": ["red", "blue"], "shape": 3}'


class ProductSpace(Space):
    """One value of each factor, for example `ProductSpace(factors={"colour": ["red", "blue"], "shape": 3})`.

    Constituents are numbered factor by factor: the values of the first factor come first. The factor `shape` above has
    the values "0", "1" and "2".
    """

    kind: Literal["product"] = "product"
    factors: tuple[tuple[str, tuple[str, ...]], ...] = Field(min_length=1)
    """The factors and their values, in order. A mapping is accepted, and a number n stands for the values 0 to n - 1."""

    @field_validator("factors", mode="before")
    @classmethod
    def _from_mapping(cls, given: object) -> object:
        pairs = tuple(given.items()) if isinstance(given, dict) else given
        factors: list[tuple[str, tuple[str, ...]]] = []
        for pair in pairs if isinstance(pairs, (list, tuple)) else [given]:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise ValueError(f"{EXPECTED}, got {pair!r}")
            name, values = pair
            if isinstance(values, int) and not isinstance(values, bool):
                values = range(values)
            # A lone string would be split into letters. pydantic passes on ValueError only.
            if not isinstance(values, (list, tuple, range)):
                raise ValueError(f"factor {name!r} needs a list of values or their number, got {values!r}")
            factors.append((str(name), tuple(str(value) for value in values)))
        return tuple(factors)

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
        """The number of values of each factor."""
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

    def sample(self, key: jax.Array) -> Int[jax.Array, " slots"]:
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
        """The number of value sets of 0..strength factors among the first 0..n factors, without listing them."""
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

    def sample_interactions(self, rng: np.random.Generator, strength: int, number: int) -> Interactions:
        self._require_strength(strength)
        # The probability of a set of factors is proportional to its number of value sets: go through the factors from
        # the last to the first and take each with its exact conditional probability.
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

    def _named(self, names: Sequence[str]) -> list[int]:
        """The numbers of values, given in the order of the factors, or as `factor=value` in any order."""
        if len(names) != self.slots:
            raise BadInput(
                f"{tuple(names)!r} has {len(names)} values, but a combination has one value for each of "
                f"{self.slots} factors.",
                fix=f"give {', '.join(name for name, _ in self.factors[:6])}",
            )
        return [self._value(slot, name) for slot, name in enumerate(names)]

    def _value(self, slot: int, name: str) -> int:
        """The number of one value: the factor's own value where it has one of that name, otherwise a `factor=value`."""
        factor, values = self.factors[slot]
        if name in values:
            return self.offsets[slot] + values.index(name)
        for other, (other_name, other_values) in enumerate(self.factors):
            if name.startswith(f"{other_name}=") and name[len(other_name) + 1 :] in other_values:
                return self.offsets[other] + other_values.index(name[len(other_name) + 1 :])
        owners = [other for other, other_values in self.factors if name in other_values]
        order = ", ".join(other for other, _ in self.factors[:6])
        fix = (
            f"{name!r} is a value of {owners[0]!r}: give the values in the order {order}"
            if owners
            else did_you_mean(name, values[:50])
        )
        raise BadInput(f"The factor {factor!r} has no value {name!r}.", fix=fix)

    def _settings(self) -> dict[str, Any]:
        return {"factors": {name: list(values) for name, values in self.factors}}

    def _repr_html_(self) -> str:
        rows = [(shorten(name), len(values), shorten(", ".join(values), 80)) for name, values in self.factors[:SHOWN]]
        hidden = len(self.factors) - len(rows)
        more = [_html.paragraph(f"and {hidden} more factors")] if hidden else []
        title = f"ProductSpace: {in_words(self.size)} combinations"
        return _html.card(title, _html.table(("factor", "number of values", "values"), rows), *more)


class PrefixSpace(Space, abc.ABC):
    """A space whose longest combinations form a product space, and whose others leave some factors of it out.

    Both spaces have the same constituents and the same interactions.
    """

    @functools.cached_property
    def _full(self) -> ProductSpace:
        """The product space of the longest combinations."""
        raise NotImplementedError

    def interactions(self, strength: int) -> int:
        return self._full.interactions(strength)

    def list_interactions(self, strength: int) -> Int[np.ndarray, "n strength"]:
        return self._full.list_interactions(strength)

    def sample_interactions(self, rng: np.random.Generator, strength: int, number: int) -> Interactions:
        self._require_strength(strength)
        return self._full.sample_interactions(rng, strength, number)

    def label(self, constituent: int) -> str:
        return self._full.label(constituent)
