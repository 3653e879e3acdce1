"""Fresh examples of the task, side by side: the task is shown and never named."""

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
    """Shows (x, y), (x, y), ...; zeros in place of an example that does not count."""

    shots: int = eqx.field(static=True)

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        # The key is the code's own, so these are other examples than those that the model must answer.
        batch = teacher.batch(task, key, self.shots)
        pairs = jnp.concatenate([batch.inputs, batch.targets], axis=1)
        return jnp.where(batch.mask[:, None] > 0, pairs, 0.0).ravel()


class FewShot(Encoding):
    """The model sees `shots` examples of the task with their answers (one-hot where they are classes)."""

    kind: Literal["few-shot"] = "few-shot"
    shots: PositiveInt = 50
    """How many examples are shown. Where examples come in episodes, steps after the end count too."""

    def size(self, space: Space, family: Family) -> int:
        return self.shots * (family.input_size + family.output_size)

    def draw(self, space: Space, family: Family, key: Array) -> FewShotEncoder:
        return FewShotEncoder(self.shots)
