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
    """Tokens stand at random places below this number, in order, instead of one after another: else places that are
    reached by longer sequences only would never be trained. 0 turns it off."""

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
        steps = self._steps(network, codes, key)
        return jax.vmap(lambda *given: network.spread(*given)[0])(codes, batch.inputs, steps)

    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        network = speaking(network)
        steps = self._steps(network, codes, key) if self.spread else None
        answers = network.generate(codes, steps).astype(batch.targets.dtype)
        # There is one answer to a prompt, however many examples a task has.
        return jnp.broadcast_to(answers[:, None], batch.targets.shape)

    def _steps(
        self, network: SequenceNetwork, codes: Float[Array, "task code"], key: Array
    ) -> Int[Array, "task place"]:
        """For each task the places of its tokens, drawn without repetition."""
        number = codes.shape[1] + network.longest
        if self.spread < number:
            raise BadInput(
                f"spread={self.spread} places are too few for prompts and answers of up to {number} tokens.",
                fix=f"spread={2 * number}",
            )

        def one(key: Array) -> Array:
            return jnp.sort(jax.random.permutation(key, self.spread)[:number])

        return jax.vmap(one)(jax.random.split(key, len(codes)))


def speaking(network: Network) -> SequenceNetwork:
    """The network, as one that answers in tokens."""
    assert isinstance(network, SequenceNetwork)  # A run's configuration is refused otherwise.
    return network
