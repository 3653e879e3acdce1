"""A rule: everything is trained on except combinations that contain one chosen constituent."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.spaces import Space
from recombine.spaces.subspace import WITH_SUBSPACES, interchangeable, subspace, subspace_size
from recombine.supports.base import OnSubspaces, Sampler, SupportKind
from recombine.supports.certificate import Promise


class RelabelSampler(Sampler):
    """Draws from the space without the constituent, then renumbers. Exact, without rejection."""

    smaller: Space = eqx.field(static=True)
    labels: Int[Array, " smaller_width_and_pad"]

    def __call__(self, key: Array) -> Int[Array, " slots"]:
        return self.labels[self.smaller.sample(key)]


class WithoutPart(OnSubspaces):
    """The drawn rule."""

    def sampler(self, pad_to: int | None = None) -> RelabelSampler:
        smaller, labels = self.subspaces[0]
        return RelabelSampler(smaller=smaller, labels=jnp.asarray(labels))


class MissingPart(SupportKind):
    """All combinations without constituent `part`. By default the replicate's seed picks it."""

    kind: Literal["missing-part"] = "missing-part"
    defined_on = WITH_SUBSPACES
    part: NonNegativeInt | None = None
    """The number of the constituent that never occurs in training."""

    def obstacle(self, space: Space) -> BadInput | None:
        return next(filter(None, (_obstacle(space, part) for part in self._candidates(space))), None)

    def _candidates(self, space: Space) -> tuple[int, ...]:
        """The constituents that can be picked. Those of one factor are interchangeable, so one represents them all."""
        if self.part is not None:
            return (self.part,) if self.part < space.width else ()
        return tuple(int(parts[0]) for parts in interchangeable(space))

    def check(self, space: Space) -> None:
        if self.part is not None and self.part >= space.width:
            raise BadInput(
                f"part={self.part}, but the space has {space.width} constituents.", fix=f"choose 0..{space.width - 1}"
            )
        super().check(space)

    def promises(self, space: Space) -> Promise:
        sizes = {subspace_size(space, _others(space, part)) for part in self._candidates(space)}
        return Promise(
            complete=False,
            connected=False,
            # Combinations of one constituent connect nothing, so each is a group by itself.
            groups=2 if space.slots > 1 else space.width,
            unseen=1,
            size=sizes.pop() if len(sizes) == 1 else None,
        )

    def draw(self, space: Space, seed: int) -> WithoutPart:
        self.check(space)
        part = self.part
        if part is None:
            part = int(np.random.default_rng(seed).integers(space.width))
        return WithoutPart(space, _others(space, part))


def _others(space: Space, part: int) -> list[int]:
    return [other for other in range(space.width) if other != part]


def _obstacle(space: Space, part: int) -> BadInput | None:
    """The reason why this constituent cannot be missing; None if it can."""
    smaller = subspace(space, _others(space, part))
    if smaller is None or smaller[0].slots < space.slots:
        return BadInput(
            f"Without {space.label(part)} no combination of {space.slots} constituents is left.",
            fix="choose a larger space",
        )
    held_out = space.size - smaller[0].size
    if held_out < 2:
        return BadInput(
            f"Only {held_out} combination contains constituent {part}, but validation and test need one each.",
            fix="choose a larger space",
        )
    return None
