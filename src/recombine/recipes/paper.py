"""AdamW at a constant learning rate: the published recipe."""

from __future__ import annotations

from typing import Literal

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

    def optimiser(self) -> optax.GradientTransformation:
        return optax.adamw(1.0, weight_decay=self.weight_decay, mask=matrices)

    def schedule(self, done: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.ones_like(done)
