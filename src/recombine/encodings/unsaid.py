"""No information: for families whose inputs show the combination, which the model must find out."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.encodings.base import Encoder, Encoding
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class UnsaidEncoder(Encoder):
    """The code is the same for every task."""

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        return jnp.zeros(1)


class Unsaid(Encoding):
    """The model gets no information about the task: the code is always a zero."""

    kind: Literal["unsaid"] = "unsaid"

    def size(self, space: Space, family: Family) -> int:
        return 1

    def draw(self, space: Space, family: Family, key: Array) -> UnsaidEncoder:
        return UnsaidEncoder()
