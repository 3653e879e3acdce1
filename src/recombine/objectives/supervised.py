"""Supervised learning: gradient steps on a loss between predictions and targets."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from recombine.families.base import Batch
from recombine.models.base import Network
from recombine.objectives.base import Objective, TrainState


class Supervised(Objective, abc.ABC):
    """What regression and classification share; they differ in the loss."""

    @abc.abstractmethod
    def loss(self, predictions: Float[Array, "task sample output"], batch: Batch) -> Float[Array, ""]:
        """The mean loss of the examples that count."""

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
            return self.loss(self.evaluate(network, codes, batch, key), batch)

        loss, gradient = eqx.filter_value_and_grad(loss_of)(state.network)
        weights = eqx.filter(state.network, eqx.is_inexact_array)
        updates, kept = optimiser.update(gradient, state.optimiser, weights)
        network = eqx.apply_updates(state.network, jax.tree.map(lambda update: rate * update, updates))
        return TrainState(network, kept, state.step + 1), loss

    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        return jax.vmap(network)(codes, batch.inputs)
