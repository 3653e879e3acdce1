"""Base class of recipes: optimiser, learning-rate schedule, batch and number of steps."""

from __future__ import annotations

import abc
from typing import ClassVar, Literal

import jax
import optax
from jaxtyping import Array, Float
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from recombine.component import Component

PER_RUN = frozenset({"learning_rate", "steps"})
"""Fields that are arguments of the compiled program, so that runs with different values share it."""


def matrices(weights: optax.Params) -> optax.Params:
    """Which weights are matrices: only these decay."""
    return jax.tree.map(lambda weight: weight.ndim > 1, weights)


class Recipe(Component, abc.ABC):
    """The configuration of a recipe."""

    learning_rate: PositiveFloat
    """The peak learning rate."""
    steps: NonNegativeInt
    """Number of updates, unless a target is reached first. 0 leaves the network as it was drawn."""
    tasks: PositiveInt
    """Tasks in a batch."""
    samples: PositiveInt
    """Examples of each task in a batch."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the matrix products of a step. Weights, optimiser and evaluation stay in float32."""

    later: ClassVar[frozenset[str]] = frozenset({"precision"})

    def shared(self) -> Recipe:
        """The recipe that decides the compiled program: equal for runs that differ in `PER_RUN` only."""
        return self.model_copy(update=dict.fromkeys(PER_RUN, 1))

    @abc.abstractmethod
    def optimiser(self) -> optax.GradientTransformation:
        """The optimiser at unit learning rate."""

    @abc.abstractmethod
    def schedule(self, done: Float[Array, ""]) -> Float[Array, ""]:
        """The factor on the learning rate after a share `done` of all steps."""
