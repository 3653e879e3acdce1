"""The control of decodability: a hyperteacher one of whose parts is named and does nothing."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.families.base import Batch, Task
from recombine.families.hyperteacher import HyperteacherShape, Modules, ShapedTeacher, fan_in_normal, respond
from recombine.spaces.base import Space


class IgnoredPartTeacher(ShapedTeacher):
    """The hyperteacher's modules, but one of them is always on and never heard of.

    The part's own module answers in every task with coefficient one, whether the combination names the part or not:
    so its presence and its coefficient change nothing, and a combination of this part alone is still a task.
    """

    shared: tuple[Modules, ...]
    readout: Float[Array, "hidden output"]
    part: Int[Array, ""]

    def modules(self, row: Int[Array, " slots"]) -> tuple[tuple[Modules, ...], Float[Array, "hidden output"]]:
        return tuple(layer.pick(row) for layer in self.shared), self.readout

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        inputs = jax.random.uniform(key, (samples, self.shape.inputs), minval=-1.0)
        layers, readout = self.modules(jnp.append(task.combination, self.part))
        heard = jnp.where(task.combination == self.part, 0.0, task.coefficients)
        scaled = jnp.append(heard, 1.0) / self.space.slots**0.5
        return Batch(inputs, respond(layers, readout, scaled, inputs), jnp.ones(samples))


class IgnoredPart(HyperteacherShape):
    """A hyperteacher to which one part makes no difference, though the encoding tells it."""

    kind: Literal["ignored-part"] = "ignored-part"
    part: NonNegativeInt = 0
    """The number of the constituent that has no effect."""

    def check(self, space: Space) -> None:
        if self.part >= space.width:
            raise BadInput(
                f"There is no part {self.part} among {space.width} constituents.",
                fix=f"choose family.part from 0 to {space.width - 1}",
            )

    def draw(self, space: Space, key: Array) -> IgnoredPartTeacher:
        self.check(space)
        *by_layer, by_readout = jax.random.split(key, self.layers + 1)
        shared = tuple(
            Modules.draw(space.width, *shape, self.bias, layer_key)
            for shape, layer_key in zip(self.layer_shapes, by_layer, strict=True)
        )
        readout = fan_in_normal(by_readout, (self.hidden, self.outputs))
        part = jnp.asarray(self.part, jnp.int32)
        return IgnoredPartTeacher(space=space, shape=self, shared=shared, readout=readout, part=part)
