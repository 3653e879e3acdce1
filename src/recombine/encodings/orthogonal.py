"""A random rotation of the task vector."""

from __future__ import annotations

from typing import Literal

import jax
from jaxtyping import Array, Float

from recombine.encodings.base import Encoder, Encoding
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class OrthogonalEncoder(Encoder):
    """The code is Qz."""

    matrix: Float[Array, "width width"]

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        return self.matrix @ task.vector


class Orthogonal(Encoding):
    """The model sees Qz, with Q drawn uniformly from all orthonormal matrices, once for each replicate."""

    kind: Literal["orthogonal"] = "orthogonal"

    def draw(self, space: Space, family: Family, key: Array) -> OrthogonalEncoder:
        return OrthogonalEncoder(jax.random.orthogonal(key, space.width))
