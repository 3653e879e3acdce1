"""The control of decodability: a hyperteacher in which one constituent has no effect."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.families.base import Batch, Task
from recombine.families.hyperteacher import HyperteacherShape, HyperteacherTeacher, respond
from recombine.spaces.base import Space


class IgnoredPartTeacher(HyperteacherTeacher):
    """The hyperteacher's modules, but the module of one constituent is active in every task, with coefficient one.

    So the presence and the coefficient of this constituent change nothing, and a combination of it alone is still a task.
    """

    part: Int[Array, ""]

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        inputs = jax.random.uniform(key, (samples, self.shape.inputs), minval=-1.0)
        layers, readout = self.modules(jnp.append(task.combination, self.part))
        effective = jnp.where(task.combination == self.part, 0.0, task.coefficients)
        scaled = jnp.append(effective, 1.0) / self.space.slots**0.5
        return Batch(inputs, respond(layers, readout, scaled, inputs), jnp.ones(samples))


class IgnoredPart(HyperteacherShape):
    """A hyperteacher in which one constituent has no effect, although the encoding shows it."""

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
        shared, readout = self.draw_modules(space.width, key)
        part = jnp.asarray(self.part, jnp.int32)
        return IgnoredPartTeacher(space=space, shape=self, shared=shared, readout=readout, part=part)
