"""Base classes of encodings: how a model is given the combination."""

from __future__ import annotations

import abc

import equinox as eqx
from jaxtyping import Array, Float

from recombine.component import Component
from recombine.families.base import Family, Task, Teacher, describe
from recombine.spaces.base import Space


class Encoder(eqx.Module):
    """A drawn encoding: a fixed map from tasks to codes. Its arrays may differ from run to run."""

    @abc.abstractmethod
    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        """The code of one task.

        Args:
            task: The task.
            teacher: For encodings that show examples of the task.
            key: For encodings that are random.
        """

    def __repr__(self) -> str:
        return describe(self)


class Embedder(eqx.Module):
    """A map from codes to features that is trained with the model: an embedding of tokens or a text encoder."""

    @abc.abstractmethod
    def __call__(self, code: Float[Array, " code"]) -> Float[Array, " feature"]:
        """The features that the model sees in place of the code."""


class Encoding(Component, abc.ABC):
    """The configuration of an encoding."""

    def size(self, space: Space, family: Family) -> int:
        """The length of a code: by default that of z. Raises BadInput if this encoding does not fit the family."""
        return space.width

    @abc.abstractmethod
    def draw(self, space: Space, family: Family, key: Array) -> Encoder:
        """The encoder of one replicate.

        Args:
            space: The combinations.
            family: The family whose tasks are encoded.
            key: Of the random numbers.
        """

    def embedder(self, space: Space, family: Family, key: Array) -> Embedder | None:
        """An embedder with fresh weights, for encodings whose codes are symbols; None where the model sees the code itself."""
        return None

    def features(self, space: Space, family: Family) -> int:
        """The number of features that the model sees: those of the code, or of its embedder."""
        return self.size(space, family)


def coefficient_law(family: Family) -> str:
    """How a family draws coefficients. Without such a setting every active constituent has coefficient one (`k-hot`)."""
    return getattr(family, "coefficients", "k-hot")
