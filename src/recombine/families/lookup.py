"""The control that must fail: an independent random hyperteacher for each combination."""

from __future__ import annotations

from typing import Literal

from jaxtyping import Array, Float, Int

from recombine.families.base import combination_key
from recombine.families.hyperteacher import HyperteacherShape, Modules, ShapedTeacher
from recombine.spaces.base import Space


class LookupTeacher(ShapedTeacher):
    """Each combination has separate modules and a separate readout, drawn from a hash of the combination.

    Within a combination the task is exactly as hard as the hyperteacher's. Combinations share nothing, so a network can
    memorise the task but cannot recombine.
    """

    key: Array

    def modules(self, row: Int[Array, " slots"]) -> tuple[tuple[Modules, ...], Float[Array, "hidden output"]]:
        return self.shape.draw_modules(self.space.slots, combination_key(self.key, row))


class Lookup(HyperteacherShape):
    """An independent random function for each combination."""

    kind: Literal["lookup"] = "lookup"

    def draw(self, space: Space, key: Array) -> LookupTeacher:
        return LookupTeacher(space=space, shape=self, key=key)
