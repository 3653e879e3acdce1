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


class Reader(eqx.Module):
    """What reads a code and is trained with the model: an embedding of tokens, a text encoder."""

    @abc.abstractmethod
    def __call__(self, code: Float[Array, " code"]) -> Float[Array, " feature"]:
        """What the model is given in place of the code."""


class Encoding(Component, abc.ABC):
    """The configuration of an encoding."""

    @abc.abstractmethod
    def size(self, space: Space, family: Family) -> int:
        """The length of a code. Raises BadInput if this encoding cannot serve the family."""

    @abc.abstractmethod
    def draw(self, space: Space, family: Family, key: Array) -> Encoder:
        """The encoding of one replicate."""

    def reader(self, space: Space, family: Family, key: Array) -> Reader | None:
        """A reader with fresh weights, for encodings whose codes are symbols; None where the model reads the code itself."""
        return None

    def features(self, space: Space, family: Family) -> int:
        """The numbers that the model is given for a task: those of the code, or of its reader."""
        return self.size(space, family)


def coefficient_law(family: Family) -> str:
    """How a family draws coefficients; where it has no such setting every active constituent has a one."""
    return getattr(family, "coefficients", "k-hot")
