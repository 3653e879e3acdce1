"""Next-token prediction: cross-entropy of each token of the answer, given the prompt and the right tokens before it."""

from __future__ import annotations

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.families.base import Batch, TargetKind
from recombine.families.vocabulary import PAD
from recombine.models.base import Network
from recombine.models.sequence import SequenceNetwork
from recombine.objectives.supervised import Supervised


class NextToken(Supervised):
    """Mean cross-entropy over the tokens of a batch. Evaluation is free-running: the network goes on from its own words."""

    kind: Literal["next-token"] = "next-token"
    serves: ClassVar[TargetKind] = "tokens"
    spread: NonNegativeInt = 0
    """Tokens stand at random places below this number, in order, instead of one after another: else distances that only
    longer sequences have would never be trained. 0 turns it off."""

    def check(self, code_size: int, input_size: int) -> None:
        most = code_size + input_size
        if 0 < self.spread < most:
            raise BadInput(
                f"spread={self.spread} places are too few for prompts and answers of up to {most} tokens.",
                fix=f"spread={2 * most}, or 0 for places one after another",
            )

    def loss(self, predictions: Float[Array, "task sample output"], batch: Batch) -> Float[Array, ""]:
        targets = jnp.round(batch.targets).astype(jnp.int32)
        expected = predictions.reshape(*targets.shape, -1)
        surprise = -jnp.take_along_axis(jax.nn.log_softmax(expected), targets[..., None], axis=-1)[..., 0]
        counts = (targets != PAD) * batch.mask[..., None]
        return jnp.sum(counts * surprise) / jnp.maximum(jnp.sum(counts), 1)

    def predict(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        network = speaking(network)
        if not self.spread:
            return network.tasks(codes, batch.inputs)
        real = jnp.sum(codes != PAD, axis=1) + jnp.max(jnp.sum(batch.inputs != PAD, axis=2), axis=1)
        by_number, by_place = jax.random.split(key)
        most = codes.shape[1] + network.longest
        # As if the sequence were the beginning of a longer one, of any length: so short ones meet the distances of long ones.
        number = jax.random.randint(by_number, (len(codes),), real, most + 1)
        steps = self._steps(network, codes, by_place, number)
        return jax.vmap(lambda *given: network.spread(*given)[0])(codes, batch.inputs, steps)

    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        network = speaking(network)
        most = jnp.full(len(codes), codes.shape[1] + network.longest)
        steps = self._steps(network, codes, key, most) if self.spread else None
        answers = network.generate(codes, steps).astype(batch.targets.dtype)
        # There is one answer to a prompt, however many examples a task has.
        return jnp.broadcast_to(answers[:, None], batch.targets.shape)

    def _steps(
        self,
        network: SequenceNetwork,
        codes: Float[Array, "task code"],
        key: Array,
        number: Int[Array, " task"],
    ) -> Int[Array, "task place"]:
        """For each task so many places, drawn without repetition, in order. Those behind them are never asked for."""
        most = codes.shape[1] + network.longest

        def one(key: Array, number: Array) -> Array:
            places = jax.random.permutation(key, self.spread)[:most]
            return jnp.sort(jnp.where(jnp.arange(most) < number, places, self.spread))

        return jax.vmap(one)(jax.random.split(key, len(codes)), number)


def speaking(network: Network) -> SequenceNetwork:
    """The network, as one that answers in tokens."""
    assert isinstance(network, SequenceNetwork)  # A run's configuration is refused otherwise.
    return network
