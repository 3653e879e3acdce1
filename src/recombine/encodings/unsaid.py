"""Nothing: for families whose inputs show the combination, which is what the model has to find out."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.encodings.base import Encoder, Encoding
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class UnsaidEncoder(Encoder):
    """Says the same of every task."""

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        return jnp.zeros(1)


class Unsaid(Encoding):
    """The model is told nothing of the task: its code is a zero, whatever the combination."""

    kind: Literal["unsaid"] = "unsaid"

    def size(self, space: Space, family: Family) -> int:
        return 1

    def draw(self, space: Space, family: Family, key: Array) -> UnsaidEncoder:
        return UnsaidEncoder()
