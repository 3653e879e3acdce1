"""All sets of up to K of M modules."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import PositiveInt, model_validator

from recombine._lazy import jax, jnp
from recombine.spaces.base import Interactions, Space


class SubsetSpace(Space):
    """Sets of `min_active` to `max_active` of `modules` modules, for example `SubsetSpace(modules=16, max_active=3)`."""

    kind: Literal["subset"] = "subset"
    modules: PositiveInt
    """M, the number of modules."""
    max_active: PositiveInt
    """K, the most modules in a combination."""
    min_active: PositiveInt = 1
    """The fewest modules in a combination."""

    @model_validator(mode="after")
    def _check(self) -> SubsetSpace:
        if self.max_active > self.modules:
            raise ValueError(
                f"max_active={self.max_active} is more than modules={self.modules}: "
                f"a combination cannot have more modules than there are; lower max_active or raise modules"
            )
        if self.min_active > self.max_active:
            raise ValueError(f"min_active={self.min_active} is more than max_active={self.max_active}")
        return self

    @property
    def width(self) -> int:
        return self.modules

    @property
    def slots(self) -> int:
        return self.max_active

    @property
    def sizes(self) -> range:
        """The possible numbers of modules in a combination."""
        return range(self.min_active, self.max_active + 1)

    @property
    def size(self) -> int:
        return sum(_binomials(self.modules, self.sizes))

    def exactly(self, count: int) -> SubsetSpace:
        """The subspace of combinations with exactly `count` modules."""
        return SubsetSpace(modules=self.modules, max_active=count, min_active=count)

    def _sample_count(self, key: jax.Array) -> Int[jax.Array, ""]:
        """The number of modules of a uniform combination."""
        # Exact integers first, one rounding at the end: comb(1000, 20) does not fit a float's mantissa.
        ways = _binomials(self.modules, self.sizes)
        total = sum(ways)
        odds = jnp.array([way / total for way in ways])
        return self.min_active + jax.random.categorical(key, jnp.log(odds))

    def sample(self, key: jax.Array) -> Int[jax.Array, " slots"]:
        by_size, by_member = jax.random.split(key)
        count = self._sample_count(by_size)
        # Floyd's algorithm draws `count` different modules in `count` steps, whatever M is, and their set is
        # uniform. It runs for all slots, so that shapes are fixed; slots beyond `count` keep the pad.
        slots = jnp.arange(self.slots)
        last = self.modules - count + slots
        draws = jax.random.randint(by_member, (self.slots,), 0, last + 1)

        def step(slot: jax.Array, chosen: jax.Array) -> jax.Array:
            taken = jnp.any(chosen == draws[slot])
            pick = jnp.where(taken, last[slot], draws[slot])
            return chosen.at[slot].set(jnp.where(slot < count, pick, self.modules))

        chosen = jax.lax.fori_loop(0, self.slots, step, jnp.full(self.slots, self.modules))
        return jnp.sort(chosen).astype(jnp.int32)

    def contains(self, rows: Int[np.ndarray, "n slots"]) -> np.ndarray:
        rows = np.asarray(rows)
        active = rows < self.modules
        # Increasing while active, then the pad: sorted, distinct and padded at the end in one test.
        ordered = np.all((rows[:, 1:] > rows[:, :-1]) | (rows[:, 1:] == self.modules), axis=1)
        in_range = np.all((rows >= 0) & (rows <= self.modules), axis=1)
        return ordered & in_range & (active.sum(1) >= self.min_active)

    def _rows(self) -> Int[np.ndarray, "size slots"]:
        blocks = []
        for count in self.sizes:
            flat = itertools.chain.from_iterable(itertools.combinations(range(self.modules), count))
            block = np.fromiter(flat, np.int32).reshape(-1, count)
            blocks.append(np.pad(block, ((0, 0), (0, self.slots - count)), constant_values=self.modules))
        return np.concatenate(blocks)

    def interactions(self, strength: int) -> int:
        return math.comb(self.modules, strength) if strength <= self.max_active else 0

    def list_interactions(self, strength: int) -> Int[np.ndarray, "n strength"]:
        if strength > self.max_active:
            return np.empty((0, strength), np.int32)
        flat = itertools.chain.from_iterable(itertools.combinations(range(self.modules), strength))
        return np.fromiter(flat, np.int32).reshape(-1, strength)

    def sample_interactions(self, rng: np.random.Generator, strength: int, number: int) -> Interactions:
        self._require_strength(strength)
        drawn = [rng.choice(self.modules, strength, replace=False, shuffle=False) for _ in range(number)]
        return np.sort(np.array(drawn, np.int32).reshape(number, strength), axis=1)

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        def holding(parts: int) -> float:
            """The share of combinations that contain `parts` given modules."""
            others = range(max(0, self.min_active - parts), self.max_active - parts + 1)
            return sum(_binomials(self.modules - parts, others)) / self.size

        together = holding(2) if self.modules > 1 else 0.0
        return np.full((self.modules, self.modules), together) + (holding(1) - together) * np.eye(self.modules)

    @property
    def title(self) -> str:
        least = f"{self.min_active} to " if 1 < self.min_active < self.max_active else "up to "
        return f"{'' if self.min_active == self.max_active else least}{self.max_active} of {self.modules}"

    def label(self, constituent: int) -> str:
        return str(constituent)


def _binomials(total: int, counts: range) -> list[int]:
    """comb(total, count) for each count, each computed from the previous one, so that long ranges stay cheap."""
    values: list[int] = []
    for count in counts:
        values.append(values[-1] * (total - count + 1) // count if values else math.comb(total, count))
    return values
