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
from recombine.supports.promise import Promise
from recombine.supports.within import alike, undefined, within


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
        self.smaller, self.labels = _without(space, part)

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

    def obstacle(self, space: Space) -> BadInput | None:
        wrong = undefined(self.kind, space)
        if wrong is not None:
            return wrong
        for part in self._candidates(space):
            wrong = _obstacle(space, part)
            if wrong is not None:
                return wrong
        return None

    def _candidates(self, space: Space) -> tuple[int, ...]:
        """The parts that may be picked. Those of one factor are alike, so one of each stands for all."""
        if self.part is not None:
            return (self.part,) if self.part < space.width else ()
        return tuple(int(parts[0]) for parts in alike(space))

    def check(self, space: Space) -> None:
        if self.part is not None and self.part >= space.width:
            raise BadInput(
                f"part={self.part}, but the space has {space.width} constituents.",
                fix=f"choose 0..{space.width - 1}",
            )
        self.require_possible(space)

    def promises(self, space: Space) -> Promise:
        sizes = {_without(space, part)[0].size for part in self._candidates(space)}
        return Promise(
            complete=False,
            connected=False,
            # Single constituents connect nothing, so that each is a group of its own.
            groups=2 if space.slots > 1 else space.width,
            unseen=1,
            size=sizes.pop() if len(sizes) == 1 else None,
        )

    def draw(self, space: Space, seed: int) -> WithoutPart:
        self.check(space)
        part = self.part
        if part is None:
            part = int(np.random.default_rng(seed).integers(space.width))
        return WithoutPart(space, part)


def _without(space: Space, part: int) -> tuple[Space, Int[np.ndarray, " smaller_width_and_pad"]]:
    """The space without a constituent, and which of the old constituents its constituents are."""
    found = within(space, [other for other in range(space.width) if other != part])
    if found is None:
        raise BadInput(f"Without constituent {part} no combination is left.", fix="choose a larger space")
    return found


def _obstacle(space: Space, part: int) -> BadInput | None:
    """Why this constituent cannot be missing."""
    if isinstance(space, SubsetSpace) and space.modules - 1 < space.max_active:
        return BadInput(
            f"Without one of {space.modules} modules no combination of {space.max_active} is left.",
            fix="raise modules or lower max_active",
        )
    if isinstance(space, ProductSpace):
        for (name, values), parts in zip(space.factors, alike(space), strict=True):
            if len(values) == 1 and part in parts:
                return BadInput(f"Factor {name!r} has one value only; without it nothing is left.")
    held_out = space.size - _without(space, part)[0].size
    if held_out < 2:
        return BadInput(
            f"Only {held_out} combination holds constituent {part}, but two must be held out: one to validate "
            "and one to test on.",
            fix="choose a larger space",
        )
    return None
