"""A rule: everything is trained on, except combinations that hold one chosen constituent."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.base import Sampler, Support, SupportKind


class RelabelSampler(Sampler):
    """Draws from the smaller space without the part, then renumbers: exact, and nothing is rejected."""

    smaller: Space = eqx.field(static=True)
    labels: Int[Array, " smaller_width_and_pad"]

    def __call__(self, key: Array) -> Int[Array, " slots"]:
        return self.labels[self.smaller.sample(key)]


class WithoutPart(Support):
    """The drawn rule. Takes no memory, whatever the size of the space."""

    def __init__(self, space: Space, part: int) -> None:
        super().__init__(space)
        self.part = part
        self.smaller, kept = _without(space, part)
        self.labels = np.array([*kept, space.width], np.int32)

    @property
    def size(self) -> int:
        return self.smaller.size

    def contains(self, rows: Int[np.ndarray, "n slots"]) -> Bool[np.ndarray, " n"]:
        return self.space.contains(rows) & ~(np.asarray(rows) == self.part).any(axis=1)

    def sampler(self, pad_to: int | None = None) -> RelabelSampler:
        return RelabelSampler(smaller=self.smaller, labels=jnp.asarray(self.labels))

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        moment = np.zeros((self.space.width, self.space.width))
        kept = self.labels[:-1]
        moment[np.ix_(kept, kept)] = self.smaller.second_moment()
        return moment

    def covers(self, interactions: Int[np.ndarray, "n strength"]) -> Bool[np.ndarray, " n"]:
        return ~(np.asarray(interactions) == self.part).any(axis=1)


class MissingPart(SupportKind):
    """All combinations without constituent `part`; the replicate's seed picks it when it is not given."""

    kind: Literal["missing-part"] = "missing-part"
    part: NonNegativeInt | None = None
    """The number of the constituent that is never seen."""

    def check(self, space: Space) -> None:
        if self.part is not None and self.part >= space.width:
            raise BadInput(
                f"part={self.part}, but the space has {space.width} constituents.",
                fix=f"choose 0..{space.width - 1}",
            )
        # Any part may be picked. Those of one factor are alike, so one of each is tried.
        alike = space.offsets if isinstance(space, ProductSpace) else (0,)
        for part in alike if self.part is None else (self.part,):
            held_out = space.size - _without(space, part)[0].size
            if held_out < 2:
                raise BadInput(
                    f"Only {held_out} combination holds constituent {part}, but two must be held out: one to validate "
                    "and one to test on.",
                    fix="choose a larger space",
                )

    def draw(self, space: Space, seed: int) -> WithoutPart:
        self.check(space)
        part = self.part
        if part is None:
            part = int(np.random.default_rng(seed).integers(space.width))
        return WithoutPart(space, part)


def _without(space: Space, part: int) -> tuple[Space, list[int]]:
    """The space without a constituent, and which of the old constituents its constituents are."""
    kept = [other for other in range(space.width) if other != part]
    if isinstance(space, SubsetSpace):
        if space.modules - 1 < space.max_active:
            raise BadInput(
                f"Without one of {space.modules} modules no combination of {space.max_active} is left.",
                fix="raise modules or lower max_active",
            )
        smaller = SubsetSpace(
            modules=space.modules - 1, max_active=space.max_active, min_active=space.min_active
        )
        return smaller, kept
    if isinstance(space, ProductSpace):
        factors = []
        for (name, values), offset in zip(space.factors, space.offsets, strict=True):
            index = part - offset
            if 0 <= index < len(values):
                values = values[:index] + values[index + 1 :]
                if not values:
                    raise BadInput(f"Factor {name!r} has one value only; without it nothing is left.")
            factors.append((name, values))
        return ProductSpace(factors=tuple(factors)), kept
    raise BadInput(f"missing-part is not defined for a space of kind {space.kind!r}.")
