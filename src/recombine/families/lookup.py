"""The control that must fail: an independent random function of the hyperteacher's form for each combination."""

from __future__ import annotations

from typing import Literal

import jax
from jaxtyping import Array, Float, Int

from recombine.families.hyperteacher import HyperteacherShape, Modules, ShapedTeacher, fan_in_normal
from recombine.spaces.base import Space


class LookupTeacher(ShapedTeacher):
    """Each combination has modules and a readout of its own, drawn from a hash of the combination.

    Within a combination the task is exactly as hard as the hyperteacher's; between combinations nothing is
    shared. A network can memorise it and cannot recombine it.
    """

    key: Array

    def modules(self, row: Int[Array, " slots"]) -> tuple[tuple[Modules, ...], Float[Array, "hidden output"]]:
        key = self.key
        for slot in range(self.space.slots):
            key = jax.random.fold_in(key, row[slot])
        *by_layer, by_readout = jax.random.split(key, self.shape.layers + 1)
        layers = tuple(
            Modules.draw(self.space.slots, *shape, self.shape.bias, layer_key)
            for shape, layer_key in zip(self.shape.layer_shapes, by_layer, strict=True)
        )
        return layers, fan_in_normal(by_readout, (self.shape.hidden, self.shape.outputs))


class Lookup(HyperteacherShape):
    """An independent random function for each combination; no combination is ever listed."""

    kind: Literal["lookup"] = "lookup"

    def draw(self, space: Space, key: Array) -> LookupTeacher:
        return LookupTeacher(space=space, shape=self, key=key)
