"""Supervised learning: gradient steps on a loss between predictions and targets."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from recombine.families.base import Batch
from recombine.models.base import Network
from recombine.models.reading import ReadingNetwork
from recombine.models.sequence import SequenceNetwork
from recombine.objectives.base import FLOAT32, Objective, TrainState


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
        precision: np.dtype = FLOAT32,
    ) -> tuple[TrainState, Float[Array, ""]]:
        def loss_of(network: Network) -> Array:
            # The gradient comes back through the casts: in the precision of the weights.
            seen, inputs = as_precision((network, batch.inputs), precision)
            # Codes that a reader takes apart are numbers of symbols, as is all that a sequence model reads: they stay exact.
            symbols = isinstance(network, ReadingNetwork | SequenceNetwork)
            told = codes if symbols else as_precision(codes, precision)
            inputs = batch.inputs if isinstance(network, SequenceNetwork) else inputs
            less = eqx.tree_at(lambda one: one.inputs, batch, inputs)
            return self.cost(seen, told, less, key)

        loss, gradient = eqx.filter_value_and_grad(loss_of)(state.network)
        weights = eqx.filter(state.network, eqx.is_inexact_array)
        updates, kept = optimiser.update(gradient, state.optimiser, weights)
        network = eqx.apply_updates(state.network, jax.tree.map(lambda update: rate * update, updates))
        return TrainState(network, kept, state.step + 1), loss

    def cost(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, ""]:
        """What a step makes smaller: the loss of the predictions."""
        predictions = self.predict(network, codes, batch, key)
        return self.loss(predictions.astype(batch.targets.dtype), batch)

    def predict(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        """What the loss compares with the targets."""
        return network.tasks(codes, batch.inputs)

    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        return self.predict(network, codes, batch, key)


def as_precision(tree: PyTree, precision: np.dtype) -> PyTree:
    """Numbers that are not whole, in this precision."""
    if precision == FLOAT32:
        return tree
    return jax.tree.map(lambda leaf: leaf.astype(precision) if eqx.is_inexact_array(leaf) else leaf, tree)
