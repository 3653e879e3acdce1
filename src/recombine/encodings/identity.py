"""The task vector itself."""

from __future__ import annotations

from typing import Literal

from jaxtyping import Array, Float

from recombine.encodings.base import Encoder, Encoding
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class IdentityEncoder(Encoder):
    """The code is z."""

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        return task.vector


class Identity(Encoding):
    """The model sees z."""

    kind: Literal["identity"] = "identity"

    def draw(self, space: Space, family: Family, key: Array) -> IdentityEncoder:
        return IdentityEncoder()
