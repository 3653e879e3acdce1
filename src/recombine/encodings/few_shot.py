"""Fresh examples of the task: the task is shown, never named."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import PositiveInt

from recombine.encodings.base import Encoder, Encoding
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class FewShotEncoder(Encoder):
    """The code is (x, y), (x, y), ..., with zeros in place of a masked example."""

    shots: int = eqx.field(static=True)

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        # The code has a separate key, so these are not the examples that the model must answer.
        batch = teacher.batch(task, key, self.shots)
        pairs = jnp.concatenate([batch.inputs, batch.targets], axis=1)
        return jnp.where(batch.mask[:, None] > 0, pairs, 0.0).ravel()


class FewShot(Encoding):
    """The model sees `shots` examples of the task with their targets (one-hot for classes)."""

    kind: Literal["few-shot"] = "few-shot"
    shots: PositiveInt = 50
    """Number of examples. In families with episodes, steps after the end of an episode count too."""

    def size(self, space: Space, family: Family) -> int:
        return self.shots * (family.input_size + family.output_size)

    def draw(self, space: Space, family: Family, key: Array) -> FewShotEncoder:
        return FewShotEncoder(self.shots)
