"""A rule: everything is trained on except one block of a product space, where some values occur together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import PositiveInt, field_validator, model_validator

from recombine.errors import BadInput, did_you_mean
from recombine.spaces import ProductSpace, Space
from recombine.spaces.rows import Rows
from recombine.spaces.subspace import interchangeable, subspace
from recombine.supports.base import Sampler, Support, SupportKind
from recombine.supports.certificate import Promise

SALT = 23
"""Makes the draws independent of those of other kinds with the same seed."""

Counts = tuple[tuple[str, PositiveInt], ...]
"""A number of values for each of some factors."""


class BlockSampler(Sampler):
    """Picks the first factor whose value is outside the block, then all values. Exact, without rejection."""

    parts: Int[Array, " width"]
    """The constituents, those of the block first in each factor."""
    first: Int[Array, " slots"]
    """The index in `parts` where each factor starts."""
    inside: Int[Array, " slots"]
    """The number of values of each factor inside the block."""
    levels: Int[Array, " slots"]
    """The number of values of each factor."""
    chances: Float[Array, " slots"]
    """The probability of each factor to be the first outside the block."""

    def __call__(self, key: Array) -> Int[Array, " slots"]:
        by_factor, by_value = jax.random.split(key)
        leaving = jax.random.categorical(by_factor, jnp.log(self.chances))
        slot = jnp.arange(len(self.levels))
        # Factors before it are inside the block, it is outside, and factors after it are free.
        low = jnp.where(slot == leaving, self.inside, 0)
        high = jnp.where(slot < leaving, self.inside, self.levels)
        return self.parts[self.first + jax.random.randint(by_value, slot.shape, low, high)]


class WithoutBlock(Support):
    """The drawn rule. Its memory does not depend on the number of combinations."""

    def __init__(self, space: ProductSpace, left_out: Mapping[int, Int[np.ndarray, " _"]]) -> None:
        """`left_out` has the values of the block for each factor's index. Other factors are in the block with all values."""
        super().__init__(space)
        factors = interchangeable(space)
        self.named = {number: np.sort(parts) for number, parts in left_out.items()}
        self.block = [self.named.get(number, parts) for number, parts in enumerate(factors)]
        """The constituents of the block, factor by factor."""
        self._outside = [np.setdiff1d(*pair) for pair in zip(factors, self.block, strict=True)]

    @property
    def size(self) -> int:
        return self.space.size - math.prod(len(parts) for parts in self.block)

    def contains(self, rows: Rows) -> Bool[np.ndarray, " n"]:
        return self.space.contains(rows) & ~np.isin(rows, np.concatenate(self.block)).all(axis=1)

    def sampler(self, pad_to: int | None = None) -> BlockSampler:
        inside = np.array([len(parts) for parts in self.block])
        levels = inside + np.array([len(parts) for parts in self._outside])
        before = np.concatenate([[1.0], np.cumprod(inside / levels)[:-1]])
        chances = before * (1 - inside / levels)
        pairs = zip(self.block, self._outside, strict=True)
        return BlockSampler(
            parts=jnp.asarray(np.concatenate([part for pair in pairs for part in pair]), jnp.int32),
            first=jnp.asarray(np.cumsum(levels) - levels, jnp.int32),
            inside=jnp.asarray(inside, jnp.int32),
            levels=jnp.asarray(levels, jnp.int32),
            chances=jnp.asarray(chances / chances.sum(), jnp.float32),
        )

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        block = subspace(self.space, np.concatenate(self.block))
        assert block is not None
        smaller, labels = block
        share = float(Fraction(smaller.size, self.space.size))
        moment = self.space.second_moment()
        kept = labels[:-1]
        moment[np.ix_(kept, kept)] -= share * smaller.second_moment()
        # Pairs that never occur must be exactly zero.
        left = np.zeros(self.space.width, bool)
        left[np.concatenate(list(self.named.values()))] = True
        if len(self.named) == 1:
            moment[left[:, None] | left[None, :]] = 0
        if len(self.named) == 2:
            first, second = self.named.values()
            moment[np.ix_(first, second)] = moment[np.ix_(second, first)] = 0
        return moment / (1 - share)

    def covers(self, interactions: Int[np.ndarray, "n strength"]) -> Bool[np.ndarray, " n"]:
        inside = [np.isin(interactions, parts).any(axis=1) for parts in self.named.values()]
        return ~np.all(inside, axis=0)


class MissingBlock(SupportKind):
    """All combinations except those in which every named factor has a left-out value.

    The literature on disentanglement calls this recombination to element (all factors named), recombination to range
    (two factors) or extrapolation (one range). With one seed, a factor loses the same values whatever the other factors,
    so these blocks are nested.
    """

    kind: Literal["missing-block"] = "missing-block"
    defined_on = (ProductSpace,)
    values: Counts = ()
    """The number of left-out values of each of these factors, as a mapping. The replicate's seed picks the values."""
    ranges: Counts = ()
    """The number of left-out values at one end of each of these factors. The seed picks the first or the last end."""

    @field_validator("values", "ranges", mode="before")
    @classmethod
    def _from_mapping(cls, given: object) -> object:
        return tuple(given.items()) if isinstance(given, Mapping) else given

    @model_validator(mode="after")
    def _named_once(self) -> MissingBlock:
        names = [name for name, _ in self._counts()]
        if not names:
            raise ValueError('name at least one factor, for example ranges={"place": 2}')
        if len(set(names)) < len(names):
            raise ValueError(f"a factor can be named once, in values or in ranges, got {names}")
        return self

    def _counts(self) -> Counts:
        return self.values + self.ranges

    def obstacle(self, space: Space) -> BadInput | None:
        assert isinstance(space, ProductSpace)
        levels = dict(zip((name for name, _ in space.factors), space.levels, strict=True))
        for name, count in self._counts():
            if name not in levels:
                return BadInput(f"The space has no factor called {name!r}.", fix=did_you_mean(name, list(levels)))
            if count >= levels[name]:
                return BadInput(
                    f"{count} of the {levels[name]} values of {name!r} are left out, so none is left to train on.",
                    fix=f"leave out at most {levels[name] - 1}",
                )
        counts = dict(self._counts())
        if math.prod(counts.get(name, count) for name, count in levels.items()) < 2:
            return BadInput(
                "The block has one combination, but validation and test need one each.",
                fix="leave out more values of a factor, or name fewer factors",
            )
        return None

    def promises(self, space: Space) -> Promise:
        assert isinstance(space, ProductSpace)
        counts = dict(self._counts())
        left = math.prod(counts.get(name, len(values)) for name, values in space.factors)
        unseen = sum(counts.values()) if len(counts) == 1 else 0
        # Combinations of one value connect nothing, so each value is a group by itself.
        groups = 1 + unseen if space.slots > 1 else space.width
        return Promise(
            complete=unseen == 0, connected=groups == 1, groups=groups, unseen=unseen, size=space.size - left
        )

    def draw(self, space: Space, seed: int) -> WithoutBlock:
        self.check(space)
        assert isinstance(space, ProductSpace)
        names = [name for name, _ in space.factors]
        left_out = {}
        for name, count in self._counts():
            factor = names.index(name)
            rng = np.random.default_rng([seed, SALT, factor])
            parts = interchangeable(space)[factor]
            if name in dict(self.values):
                left_out[factor] = rng.choice(parts, count, replace=False)
            else:
                left_out[factor] = parts[:count] if rng.integers(2) else parts[-count:]
        return WithoutBlock(space, left_out)
