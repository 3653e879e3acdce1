"""Supervised regression: mean squared error on the targets."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from recombine.families.base import Batch
from recombine.models.base import Network
from recombine.objectives.base import Objective, TrainState


class Regression(Objective):
    """Mean squared error over tasks, samples and outputs."""

    kind: Literal["regression"] = "regression"

    def init(self, network: Network, optimiser: optax.GradientTransformation) -> TrainState:
        weights = eqx.filter(network, eqx.is_inexact_array)
        return TrainState(network, optimiser.init(weights), jnp.zeros((), jnp.int32))

    def step(
        self,
        state: TrainState,
        codes: Float[Array, "task code"],
        batch: Batch,
        key: Array,
        optimiser: optax.GradientTransformation,
        rate: Float[Array, ""],
    ) -> tuple[TrainState, Float[Array, ""]]:
        def loss_of(network: Network) -> Array:
            error = self.evaluate(network, codes, batch, key) - batch.targets
            weight = batch.mask[..., None]
            return jnp.sum(weight * error**2) / (jnp.sum(weight) * error.shape[-1])

        loss, gradient = eqx.filter_value_and_grad(loss_of)(state.network)
        weights = eqx.filter(state.network, eqx.is_inexact_array)
        updates, kept = optimiser.update(gradient, state.optimiser, weights)
        network = eqx.apply_updates(state.network, jax.tree.map(lambda update: rate * update, updates))
        return TrainState(network, kept, state.step + 1), loss

    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        return jax.vmap(network)(codes, batch.inputs)
