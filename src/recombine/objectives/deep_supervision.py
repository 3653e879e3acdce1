"""Deep supervision: every step of a recursive model is a training step, and its state is carried on to the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field, NonNegativeFloat, PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Batch
from recombine.models.base import Codes, Model, Network, TaskOutputs
from recombine.models.recursive import Recursive, RecursiveNetwork, State
from recombine.objectives.base import FLOAT32, TrainState, as_precision, trained_leaves
from recombine.objectives.classification import Classification


class Carried(eqx.Module):
    """The puzzles that are being worked on, one per slot of the batch, with their states, and the averaged weights."""

    batch: Batch
    state: State
    taken: Int[Array, " task"]
    """Steps that each puzzle has had."""
    least: Int[Array, " task"]
    """Steps that it gets at least."""
    halted: Bool[Array, " task"]
    """Whether a new puzzle takes the slot in the next step."""
    average: Network
    """The exponential moving average of the network."""
    codes: Codes | None
    """The identifiers of the puzzles, for networks that embed them."""


class DeepSupervision(Classification):
    """Cross-entropy at every step of a `recursive` model, and a head that says when an answer is right.

    A slot of the batch keeps its puzzle until the halting head says that the answer is right, or for `most` steps. The state is
    carried from step to step without a gradient. Evaluation uses an average of the weights and always takes all steps.
    """

    kind: Literal["deep-supervision"] = "deep-supervision"  # type: ignore[assignment]
    one_step_at_a_time: ClassVar[bool] = True
    most: PositiveInt = 8
    """The most steps that a puzzle gets."""
    explore: float = Field(default=0.1, ge=0, le=1)
    """The probability that a puzzle gets a random number of steps at least, whatever the halting head says."""
    halting: NonNegativeFloat = 0.5
    """Weight of the halting head's loss; the cross-entropy of the cells has weight one. 0: a puzzle always gets `most` steps."""
    average: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the averaged weights per step; 0 for no average. It is smaller at first, so that the first weights are forgotten."""
    stable_max: bool = True
    """Whether probabilities are proportional to x + 1 (x >= 0) or 1 / (1 - x) (x < 0) instead of exp(x)."""

    def check_model(self, model: Model) -> None:
        if not isinstance(model, Recursive):
            raise BadInput(
                f"The objective 'deep-supervision' trains a recursive model; {model.kind!r} has no state to carry on.",
                fix="model=recursive, or objective=classification",
            )

    def loss(self, predictions: TaskOutputs, batch: Batch) -> Float[Array, ""]:
        if not self.stable_max:
            return super().loss(predictions, batch)
        positive = predictions >= 0
        # Each branch gets arguments at which it is finite, so that the gradient of the other one is too.
        above, below = jnp.where(positive, predictions, 0.0), jnp.where(positive, 0.0, predictions)
        logs = jnp.where(positive, jnp.log1p(above), -jnp.log1p(-below))
        cross_entropy = -jnp.sum(batch.targets * jax.nn.log_softmax(logs), axis=-1)
        return jnp.sum(batch.mask * cross_entropy) / jnp.sum(batch.mask)

    def carry(self, network: Network, batch: Batch) -> Carried:
        network = as_recursive(network)
        tasks = len(batch.inputs)
        none = jnp.zeros(tasks, jnp.int32)
        # The average must not share its arrays with the network: a step gives both away.
        average = jax.tree.map(lambda leaf: jnp.array(leaf) if eqx.is_array(leaf) else leaf, network)
        state = jax.tree.map(jnp.array, network.initial(*batch.inputs.shape[:2]))
        codes = None if network.identifiers is None else jnp.zeros((tasks, len(network.identifiers)))
        return Carried(batch, state, none, none, jnp.ones(tasks, bool), average, codes)

    def trained_network(self, state: TrainState) -> Network:
        return state.carried.average if self.average else state.network

    def cost(self, network: Network, codes: Codes, batch: Batch, key: Array) -> Float[Array, ""]:
        """The cost of a first step."""
        return self._supervised(network, batch, as_recursive(network).initial(*batch.inputs.shape[:2]), codes)[0]

    def _supervised(
        self, network: Network, batch: Batch, state: State, codes: Codes | None
    ) -> tuple[Float[Array, ""], tuple[Float[Array, ""], State, Float[Array, " task"]]]:
        """The cost of one step; the loss of the cells, the state after the step and the halting logits."""
        network = as_recursive(network)
        after = network.step(network.embed(batch.inputs, codes), state)
        logits = network.logits(after).astype(batch.targets.dtype)
        halting = network.halting(after).astype(batch.targets.dtype)
        loss = self.loss(logits, batch)
        right = jnp.argmax(logits, axis=-1) == jnp.argmax(batch.targets, axis=-1)
        solved = jnp.all(right | (batch.mask == 0), axis=-1).astype(logits.dtype)
        head = jnp.mean(optax.sigmoid_binary_cross_entropy(halting, solved))
        return loss + self.halting * head, (loss, jax.lax.stop_gradient(after), halting)

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
        carried, network = state.carried, as_recursive(state.network)
        fresh = carried.halted

        def renewed(new: Array, old: Array) -> Array:
            return jnp.where(fresh.reshape(-1, *(1,) * (old.ndim - 1)), new, old)

        by_chance, by_number = jax.random.split(key)
        batch = jax.tree.map(renewed, batch, carried.batch)
        own_codes = None if carried.codes is None else renewed(codes, carried.codes)
        before = jax.tree.map(renewed, network.initial(*batch.inputs.shape[:2]), carried.state)
        explored = jax.random.bernoulli(by_chance, self.explore, fresh.shape)
        random = jax.random.randint(by_number, fresh.shape, 2, max(self.most, 2) + 1)
        least = renewed(jnp.where(explored, random, 1), carried.least)
        taken = renewed(jnp.zeros_like(carried.taken), carried.taken) + 1

        trainable, frozen = eqx.partition(state.network, trained_leaves(state.network, trained))

        def cost_of(weights: Network) -> tuple[Array, tuple[Array, State, Array]]:
            cast, own, start = as_precision((eqx.combine(weights, frozen), batch.inputs, before), precision)
            return self._supervised(cast, eqx.tree_at(lambda batch: batch.inputs, batch, own), start, own_codes)

        (_, (loss, after, halting)), gradient = eqx.filter_value_and_grad(cost_of, has_aux=True)(trainable)
        updates, optimiser_state = optimiser.update(gradient, state.optimiser, trainable)
        updated = eqx.apply_updates(state.network, jax.tree.map(lambda update: rate * update, updates))
        decay = jnp.minimum(self.average, (1 + state.step) / (10 + state.step))
        average = jax.tree.map(
            lambda old, new: decay * old + (1 - decay) * new if eqx.is_inexact_array(old) else new,
            carried.average,
            updated,
        )
        stops = (halting > 0) & (self.halting > 0)
        halted = (stops & (taken >= least)) | (taken >= self.most)
        in_full = jax.tree.map(lambda leaf: leaf.astype(FLOAT32), after)
        next_carried = Carried(batch, in_full, taken, least, halted, average, own_codes)
        return TrainState(updated.advanced(done), optimiser_state, state.step + 1, next_carried), loss


def as_recursive(network: Network) -> RecursiveNetwork:
    """The network, typed as one that has a state to carry on."""
    assert isinstance(network, RecursiveNetwork)  # The configuration of a run guarantees it.
    return network
