"""How a model is trained: optimiser, schedule, batch, steps."""

from __future__ import annotations

import abc
from typing import ClassVar, Literal

import optax
from jaxtyping import Array, Float
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from recombine.component import Component

PER_RUN = frozenset({"rate", "steps"})
"""Fields that are arrays of the compiled program, so that runs with different values share it."""


class Recipe(Component, abc.ABC):
    """The configuration of a recipe."""

    rate: PositiveFloat
    """The learning rate at its height."""
    steps: NonNegativeInt
    """How many updates are made, unless a target is reached first; none leaves the network as it was drawn."""
    tasks: PositiveInt
    """Tasks in a batch."""
    samples: PositiveInt
    """Examples of each task in a batch."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """In what the products of a step are computed. Weights, optimiser and evaluation stay in float32."""

    later: ClassVar[frozenset[str]] = frozenset({"precision"})

    def shared(self) -> Recipe:
        """The recipe of the program: the same for runs that differ in what are arrays of it."""
        return self.model_copy(update=dict.fromkeys(PER_RUN, 1))

    @abc.abstractmethod
    def optimiser(self) -> optax.GradientTransformation:
        """The optimiser at unit rate."""

    @abc.abstractmethod
    def schedule(self, done: Float[Array, ""]) -> Float[Array, ""]:
        """The factor on the rate after a share `done` of all steps."""
