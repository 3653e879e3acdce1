"""AdamW at a constant learning rate: the published recipe."""

from __future__ import annotations

from typing import ClassVar, Literal

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from recombine.recipes.base import Recipe, matrices


class Paper(Recipe):
    """AdamW, constant learning rate, no clipping, no decay of vectors; 128 tasks of 16 samples, 300,000 steps."""

    kind: Literal["paper"] = "paper"
    learning_rate: PositiveFloat = 3e-4
    steps: NonNegativeInt = 300_000
    tasks: PositiveInt = 128
    samples: PositiveInt = 16
    weight_decay: NonNegativeFloat = 3e-3
    """Weight decay of matrices."""
    falling: bool = False
    """Whether the learning rate falls linearly to zero, as in `fast`, so that the last steps do not undo what was fitted."""

    later: ClassVar[frozenset[str]] = Recipe.later | {"falling"}

    def optimiser(self) -> optax.GradientTransformation:
        return optax.adamw(1.0, weight_decay=self.weight_decay, mask=matrices)

    def schedule(self, done: Float[Array, ""]) -> Float[Array, ""]:
        return 1 - done if self.falling else jnp.ones_like(done)
