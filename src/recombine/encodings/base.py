"""How a model is told the combination."""

from __future__ import annotations

import abc

import equinox as eqx
from jaxtyping import Array, Float

from recombine.component import Component
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class Encoder(eqx.Module):
    """A drawn encoding. Its arrays may differ from run to run."""

    @abc.abstractmethod
    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        """The code of one task. The teacher and the key are for encodings that show examples of it."""


class Encoding(Component, abc.ABC):
    """The configuration of an encoding."""

    @abc.abstractmethod
    def size(self, space: Space, family: Family) -> int:
        """The length of a code. Raises BadInput if this encoding cannot serve the family."""

    @abc.abstractmethod
    def draw(self, space: Space, family: Family, key: Array) -> Encoder:
        """The encoding of one replicate."""
