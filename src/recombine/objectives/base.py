"""Base class of objectives: what a model is trained for, how a step is made and how predictions are made."""

from __future__ import annotations

import abc
import fnmatch
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PyTree

from recombine.component import Component
from recombine.errors import BadInput
from recombine.families.base import Batch, Family, TargetKind
from recombine.models.base import Codes, EmbeddedNetwork, Model, Network, TaskOutputs, leaf_name
from recombine.models.sequence import SequenceNetwork

FLOAT32 = np.dtype("float32")


class TrainState(eqx.Module):
    """Everything that training changes; a checkpoint holds it."""

    network: Network
    optimiser: PyTree
    step: Int[Array, ""]
    carried: PyTree = None
    """What an objective carries from step to step besides: averaged weights, a population, states of a recursion."""


class Objective(Component, abc.ABC):
    """The configuration of an objective: gradient steps on a loss between predictions and targets.

    Batches have a leading task axis. A subclass that is not supervised overrides `step` and `evaluate`.
    """

    serves: ClassVar[TargetKind]
    """The kind of targets that this objective is for."""
    one_step_at_a_time: ClassVar[bool] = False
    """Whether a model with outer steps is trained one step at a time, so that memory does not grow with their number."""

    def check(self, code_size: int, input_size: int) -> None:
        """Raise BadInput if codes and inputs of these lengths do not fit. Cheap: nothing is drawn."""
        return

    def check_family(self, family: Family) -> None:
        """Raise BadInput if the tasks of the family do not fit."""
        return

    def check_model(self, model: Model) -> None:
        """Raise BadInput if the model does not fit."""
        return

    def carry(self, network: Network, batch: Batch) -> PyTree:
        """What is carried into the first step, given a batch of zeros; None for most objectives."""
        return None

    def passes(self) -> float:
        """How many times a forward and backward pass a step costs. More than 1 where it has an inner loop: an estimate of time needs it."""
        return 1.0

    def trained_network(self, state: TrainState) -> Network:
        """The network that is evaluated and stored: the trained one, unless an objective averages weights."""
        return state.network

    @abc.abstractmethod
    def loss(self, predictions: TaskOutputs, batch: Batch) -> Float[Array, ""]:
        """The mean loss over the examples that are not masked."""

    def init(
        self, network: Network, optimiser: optax.GradientTransformation, trained: Sequence[str] = ()
    ) -> TrainState:
        """The state before the first step. `trained` names the weights that are trained; empty for all."""
        weights = eqx.filter(network, trained_leaves(network, trained))
        return TrainState(network, optimiser.init(weights), jnp.zeros((), jnp.int32))

    def step(
        self,
        state: TrainState,
        codes: Codes,
        batch: Batch,
        key: Array,
        optimiser: optax.GradientTransformation,
        rate: Float[Array, ""],
        precision: np.dtype = FLOAT32,
        trained: Sequence[str] = (),
        done: Float[Array, ""] | float = 0.0,
    ) -> tuple[TrainState, Float[Array, ""]]:
        """One update.

        Args:
            state: Network, state of the optimiser, number of the step.
            codes: The codes of the tasks.
            batch: The examples of the tasks.
            key: Of the random numbers of the step.
            optimiser: At unit learning rate.
            rate: The learning rate of this step; it scales the updates.
            precision: Of matrix products. Weights, loss and optimiser stay in float32.
            trained: The names of the weights that are trained; empty for all.
            done: The share of training that is done after this step.

        Returns:
            The new state, and the loss before the update.
        """
        codes, batch = self.training_examples(codes, batch, key)

        trainable, frozen = eqx.partition(state.network, trained_leaves(state.network, trained))

        def loss_of(weights: Network) -> Array:
            network = eqx.combine(weights, frozen)
            # The gradient passes back through the casts, so it has the precision of the weights.
            cast, inputs = as_precision((network, batch.inputs), precision)
            # Token numbers (codes of an embedder, all inputs of a sequence model) stay exact.
            symbols = isinstance(network, EmbeddedNetwork | SequenceNetwork)
            given = codes if symbols else as_precision(codes, precision)
            inputs = batch.inputs if isinstance(network, SequenceNetwork) else inputs
            cast_batch = eqx.tree_at(lambda batch: batch.inputs, batch, inputs)
            cost, penalty = self.cost(cast, given, cast_batch, key), network.penalty()
            return cost if penalty is None else cost + penalty

        loss, gradient = eqx.filter_value_and_grad(loss_of)(trainable)
        updates, optimiser_state = optimiser.update(gradient, state.optimiser, trainable)
        network = eqx.apply_updates(state.network, jax.tree.map(lambda update: rate * update, updates))
        return TrainState(network.advanced(done), optimiser_state, state.step + 1, state.carried), loss

    def training_examples(self, codes: Codes, batch: Batch, key: Array) -> tuple[Codes, Batch]:
        """What a step trains on: the codes and examples of the batch, unless an objective makes others from them."""
        return codes, batch

    def cost(self, network: Network, codes: Codes, batch: Batch, key: Array) -> Float[Array, ""]:
        """What a step minimises: the loss of the predictions."""
        predictions = self.predict(network, codes, batch, key)
        return self.loss(predictions.astype(batch.targets.dtype), batch)

    def predict(self, network: Network, codes: Codes, batch: Batch, key: Array) -> TaskOutputs:
        """The outputs that the loss compares with the targets."""
        return network.tasks(codes, batch.inputs)

    def evaluate(self, network: Network, codes: Codes, batch: Batch, key: Array) -> TaskOutputs:
        """The network's predictions, as the family scores them.

        Args:
            network: The network.
            codes: The codes of the tasks.
            batch: The examples of the tasks.
            key: For objectives whose evaluation is random.
        """
        return self.answer(self.predict(network, codes, batch, key))

    def answer(self, outputs: Array) -> Array:
        """What outputs of a network say, as the family scores them: probabilities where outputs are their logits."""
        return outputs


def check_targets(predictions: Array, targets: Array) -> None:
    """Raise BadInput where outputs and targets differ in shape: they would be broadcast, and the wrong thing trained.

    Args:
        predictions: The network's outputs.
        targets: The targets of the same examples.
    """
    if predictions.shape != targets.shape:
        shown, given = predictions.shape[-2:], targets.shape[-2:]
        raise BadInput(
            f"The targets of a task have the shape {given}, the outputs of the network {shown} (examples, outputs).",
            fix="let the family's output_size be the length of one target",
        )


def trained_leaves(network: Network, names: Sequence[str] = ()) -> PyTree:
    """Which leaves of a network are trained, as a pytree of booleans.

    Args:
        network: The network, with arrays or shapes.
        names: Names of weights, such as `readout.*` or `layers.0.weight`; `*` is any text. Empty for all floating-point arrays.
    """

    def is_weight(leaf: object) -> bool:
        return eqx.is_inexact_array(leaf) or (
            isinstance(leaf, jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jnp.inexact)
        )

    def chosen(path: tuple[Any, ...], leaf: object) -> bool:
        name = leaf_name(path)
        return is_weight(leaf) and (not names or any(fnmatch.fnmatchcase(name, pattern) for pattern in names))

    return jax.tree_util.tree_map_with_path(chosen, network)


def as_precision(tree: PyTree, precision: np.dtype) -> PyTree:
    """Cast all floating-point arrays to a precision."""
    if precision == FLOAT32:
        return tree
    return jax.tree.map(lambda leaf: leaf.astype(precision) if eqx.is_inexact_array(leaf) else leaf, tree)
