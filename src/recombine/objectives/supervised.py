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
from recombine.models.embedded import EmbeddedNetwork
from recombine.models.sequence import SequenceNetwork
from recombine.objectives.base import FLOAT32, Objective, TrainState


class Supervised(Objective, abc.ABC):
    """What all objectives with a loss on predictions share."""

    @abc.abstractmethod
    def loss(self, predictions: Float[Array, "task sample output"], batch: Batch) -> Float[Array, ""]:
        """The mean loss over the examples that are not masked."""

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
        codes, batch = self.training_examples(codes, batch, key)

        def loss_of(network: Network) -> Array:
            # The gradient passes back through the casts, so it has the precision of the weights.
            cast, inputs = as_precision((network, batch.inputs), precision)
            # Token numbers (codes of an embedder, all inputs of a sequence model) stay exact.
            symbols = isinstance(network, EmbeddedNetwork | SequenceNetwork)
            given = codes if symbols else as_precision(codes, precision)
            inputs = batch.inputs if isinstance(network, SequenceNetwork) else inputs
            cast_batch = eqx.tree_at(lambda batch: batch.inputs, batch, inputs)
            return self.cost(cast, given, cast_batch, key)

        loss, gradient = eqx.filter_value_and_grad(loss_of)(state.network)
        weights = eqx.filter(state.network, eqx.is_inexact_array)
        updates, optimiser_state = optimiser.update(gradient, state.optimiser, weights)
        network = eqx.apply_updates(state.network, jax.tree.map(lambda update: rate * update, updates))
        return TrainState(network, optimiser_state, state.step + 1), loss

    def training_examples(
        self, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> tuple[Float[Array, "task code"], Batch]:
        """What a step trains on: the codes and examples of the batch, unless an objective makes others from them."""
        return codes, batch

    def cost(self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array) -> Float[Array, ""]:
        """What a step minimises: the loss of the predictions."""
        predictions = self.predict(network, codes, batch, key)
        return self.loss(predictions.astype(batch.targets.dtype), batch)

    def predict(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        """The outputs that the loss compares with the targets."""
        return network.tasks(codes, batch.inputs)

    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        return self.predict(network, codes, batch, key)


def as_precision(tree: PyTree, precision: np.dtype) -> PyTree:
    """Cast all floating-point arrays to a precision."""
    if precision == FLOAT32:
        return tree
    return jax.tree.map(lambda leaf: leaf.astype(precision) if eqx.is_inexact_array(leaf) else leaf, tree)
