"""Next-token prediction: cross-entropy of each token of the answer, given the prompt and the right tokens before it."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.families.base import Batch, TargetKind
from recombine.language.vocabulary import PAD
from recombine.models.base import Codes, Network, TaskOutputs
from recombine.models.sequence import SequenceNetwork
from recombine.objectives.base import Objective
from recombine.objectives.lengths import grouped


class NextToken(Objective):
    """Mean cross-entropy over the tokens of a batch. Evaluation is free-running: the network continues its own tokens."""

    kind: Literal["next-token"] = "next-token"
    serves: ClassVar[TargetKind] = "tokens"
    random_positions: NonNegativeInt = 0
    """Tokens have random ascending positions below this number, instead of 0, 1, ...: otherwise distances that only longer
    sequences have would never be trained. 0 turns it off."""
    prompt_length: NonNegativeInt = 0
    """Tokens of the longest prompt in training, so that training computes no needless pads; 0 for the family's longest."""
    answer_length: NonNegativeInt = 0
    """The same for answers, with END."""
    length_groups: NonNegativeInt = 0
    """A batch is sorted by the length of its answers and computed in this number of groups (or the largest number that
    divides both this and the batch), so that short answers need fewer pads. 0 for one group."""

    later: ClassVar[frozenset[str]] = frozenset({"prompt_length", "answer_length", "length_groups"})

    def check(self, code_size: int, input_size: int) -> None:
        most = code_size + input_size
        if 0 < self.random_positions < most:
            raise BadInput(
                f"random_positions={self.random_positions} positions are too few for prompts and answers of up to {most} tokens.",
                fix=f"random_positions={2 * most}, or 0 for consecutive positions",
            )

    def cost(self, network: Network, codes: Codes, batch: Batch, key: Array) -> Float[Array, ""]:
        groups = math.gcd(len(codes), self.length_groups)
        if self.length_groups < 2 or groups < 2:
            return super().cost(network, codes, batch, key)
        return grouped(super().cost, groups, network, codes, batch, key)

    def loss(self, predictions: TaskOutputs, batch: Batch) -> Float[Array, ""]:
        targets, lost = cut(jnp.round(batch.targets).astype(jnp.int32), self.answer_length)
        logits = predictions.reshape(*targets.shape, -1)
        cross_entropy = -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)[..., 0]
        counts = (targets != PAD) * batch.mask[..., None]
        # A run that would lose tokens fails instead of learning something else.
        return jnp.where(lost, jnp.nan, jnp.sum(counts * cross_entropy) / jnp.maximum(jnp.sum(counts), 1))

    def predict(self, network: Network, codes: Codes, batch: Batch, key: Array) -> TaskOutputs:
        network = as_sequence_network(network)
        most = codes.shape[1] + network.longest_answer
        codes, lost = cut(codes, self.prompt_length)
        inputs = batch.inputs[..., : self.answer_length or None]
        if self.random_positions:
            real = jnp.sum(codes != PAD, axis=1) + jnp.max(jnp.sum(inputs != PAD, axis=2), axis=1)
            by_number, by_position = jax.random.split(key)
            # As if the sequence were the beginning of a longer one of random length, so that short sequences have the
            # distances of long ones.
            number = jax.random.randint(by_number, (len(codes),), real, most + 1)
            logits = network.tasks(codes, inputs, self._positions(by_position, number, most))
        else:
            logits = network.tasks(codes, inputs)
        return jnp.where(lost, jnp.nan, logits)

    def evaluate(self, network: Network, codes: Codes, batch: Batch, key: Array, whole: bool = False) -> TaskOutputs:
        """Free-running answers.

        Args:
            network: The network.
            codes: The prompts.
            batch: The examples of the tasks.
            key: For random positions.
            whole: Whether each answer has as many tokens as its target. Otherwise the network ends its answers.
        """
        network = as_sequence_network(network)
        most = codes.shape[1] + network.longest_answer
        steps = self._positions(key, jnp.full(len(codes), most), most) if self.random_positions else None
        lengths = jnp.sum(batch.targets[:, 0] != PAD, axis=-1) if whole else None
        answers = network.generate_vmappable(codes, steps, lengths).astype(batch.targets.dtype)
        # A prompt has one answer, so all examples of a task have the same.
        return jnp.broadcast_to(answers[:, None], batch.targets.shape)

    def _positions(self, key: Array, number: Int[Array, " task"], most: int) -> Int[Array, "task place"]:
        """Random ascending positions for the first `number` of `most` tokens of each task. The others are never used."""

        def of_task(key: Array, number: Array) -> Array:
            positions = jax.random.permutation(key, self.random_positions)[:most]
            return jnp.sort(jnp.where(jnp.arange(most) < number, positions, self.random_positions))

        return jax.vmap(of_task)(jax.random.split(key, len(number)), number)


def cut(tokens: Float[Array, "*batch token"] | Int[Array, "*batch token"], most: int) -> tuple[Array, Bool[Array, ""]]:
    """The first `most` tokens of each sequence (0: all), and whether this cuts off any real token."""
    if not most:
        return tokens, jnp.zeros((), bool)
    return tokens[..., :most], jnp.any(tokens[..., most:] != PAD)


def as_sequence_network(network: Network) -> SequenceNetwork:
    """The network, typed as one that generates tokens."""
    assert isinstance(network, SequenceNetwork)  # The configuration of a run guarantees it.
    return network
