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
from recombine.families.vocabulary import PAD
from recombine.models.base import Network
from recombine.models.sequence import SequenceNetwork
from recombine.objectives.lengths import grouped
from recombine.objectives.supervised import Supervised


class NextToken(Supervised):
    """Mean cross-entropy over the tokens of a batch. Evaluation is free-running: the network goes on from its own words."""

    kind: Literal["next-token"] = "next-token"
    serves: ClassVar[TargetKind] = "tokens"
    spread: NonNegativeInt = 0
    """Tokens stand at random places below this number, in order, instead of one after another: else distances that only
    longer sequences have would never be trained. 0 turns it off."""
    prompts: NonNegativeInt = 0
    """Tokens of the longest prompt that training meets, so that it does not pay for pads; 0 where it meets the longest of all."""
    answers: NonNegativeInt = 0
    """The same for answers, their END included."""
    groups: NonNegativeInt = 0
    """A batch is sorted by the length of its answers and computed in so many groups (the greatest number that divides both
    this and the batch), so that the short ones do not pay for the pads that the long ones bring. 0 for all at once."""

    later: ClassVar[frozenset[str]] = frozenset({"prompts", "answers", "groups"})

    def check(self, code_size: int, input_size: int) -> None:
        most = code_size + input_size
        if 0 < self.spread < most:
            raise BadInput(
                f"spread={self.spread} places are too few for prompts and answers of up to {most} tokens.",
                fix=f"spread={2 * most}, or 0 for places one after another",
            )

    def cost(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, ""]:
        groups = math.gcd(len(codes), self.groups)
        if self.groups < 2 or groups < 2:
            return super().cost(network, codes, batch, key)
        return grouped(super().cost, groups, network, codes, batch, key)

    def loss(self, predictions: Float[Array, "task sample output"], batch: Batch) -> Float[Array, ""]:
        targets, lost = cut(jnp.round(batch.targets).astype(jnp.int32), self.answers)
        expected = predictions.reshape(*targets.shape, -1)
        surprise = -jnp.take_along_axis(jax.nn.log_softmax(expected), targets[..., None], axis=-1)[..., 0]
        counts = (targets != PAD) * batch.mask[..., None]
        # A run that would lose words fails, instead of learning something else.
        return jnp.where(lost, jnp.nan, jnp.sum(counts * surprise) / jnp.maximum(jnp.sum(counts), 1))

    def predict(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        network = speaking(network)
        most = codes.shape[1] + network.longest
        codes, lost = cut(codes, self.prompts)
        inputs = batch.inputs[..., : self.answers or None]
        if self.spread:
            real = jnp.sum(codes != PAD, axis=1) + jnp.max(jnp.sum(inputs != PAD, axis=2), axis=1)
            by_number, by_place = jax.random.split(key)
            # As if the sequence were the beginning of a longer one, of any length: so short ones meet the distances of
            # long ones.
            number = jax.random.randint(by_number, (len(codes),), real, most + 1)
            expected = network.tasks(codes, inputs, self._steps(by_place, number, most))
        else:
            expected = network.tasks(codes, inputs)
        return jnp.where(lost, jnp.nan, expected)

    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        network = speaking(network)
        most = codes.shape[1] + network.longest
        steps = self._steps(key, jnp.full(len(codes), most), most) if self.spread else None
        answers = network.answers(codes, steps).astype(batch.targets.dtype)
        # There is one answer to a prompt, however many examples a task has.
        return jnp.broadcast_to(answers[:, None], batch.targets.shape)

    def _steps(self, key: Array, number: Int[Array, " task"], most: int) -> Int[Array, "task place"]:
        """For each task so many of `most` places, drawn without repetition, in order. Those behind them are never asked for."""

        def one(key: Array, number: Array) -> Array:
            places = jax.random.permutation(key, self.spread)[:most]
            return jnp.sort(jnp.where(jnp.arange(most) < number, places, self.spread))

        return jax.vmap(one)(jax.random.split(key, len(number)), number)


def cut(
    tokens: Float[Array, "*batch token"] | Int[Array, "*batch token"], most: int
) -> tuple[Array, Bool[Array, ""]]:
    """The first `most` tokens of each sequence (0: all), and whether any word stood behind them."""
    if not most:
        return tokens, jnp.zeros((), bool)
    return tokens[..., :most], jnp.any(tokens[..., most:] != PAD)


def speaking(network: Network) -> SequenceNetwork:
    """The network, as one that answers in tokens."""
    assert isinstance(network, SequenceNetwork)  # A run's configuration is refused otherwise.
    return network
