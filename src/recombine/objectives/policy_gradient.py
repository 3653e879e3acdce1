"""Policy gradient: REINFORCE on whether a sampled answer is right, with a penalty on the distance from the base."""

from __future__ import annotations

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field, FiniteFloat, NonNegativeFloat, model_validator

from recombine.errors import BadInput
from recombine.families.base import Batch
from recombine.models.base import Codes, Model, Network
from recombine.models.expert import Expert, ExpertNetwork
from recombine.objectives.constraint_reward import log_probabilities
from recombine.objectives.next_token import NextToken


class PolicyGradient(NextToken):
    """Maximises the mean reward minus `divergence` times the KL divergence from the base, by REINFORCE.

    Several answers to each prompt are sampled. An answer that is right in every token has the reward `right`, any other `wrong`.
    The penalty is part of what an answer gets: `divergence` times the log-ratio of its probabilities by the network and by the
    base. The baseline of an answer is the mean of the other answers to its prompt, so the gradient is unbiased.
    """

    kind: Literal["policy-gradient"] = "policy-gradient"
    right: FiniteFloat = 1.0
    """The reward of a right answer."""
    wrong: FiniteFloat = -1.0
    """The reward of any other answer."""
    divergence: NonNegativeFloat = 0.05
    """The weight of the KL divergence from the base."""
    draws: int = Field(default=4, ge=2)
    """Sampled answers per prompt."""

    later: ClassVar[frozenset[str]] = NextToken.later

    @model_validator(mode="after")
    def _differ(self) -> PolicyGradient:
        if self.right <= self.wrong:
            raise ValueError(
                f"right={self.right} must be more than wrong={self.wrong}: a constant reward teaches nothing"
            )
        return self

    def check(self, code_size: int, input_size: int) -> None:
        super().check(code_size, input_size)
        if self.random_positions:
            raise BadInput(
                f"Sampled answers have consecutive positions, but the objective has random_positions={self.random_positions}.",
                fix="objective.random_positions=0",
            )

    def check_model(self, model: Model) -> None:
        if not isinstance(model, Expert):
            raise BadInput(
                f"The objective 'policy-gradient' keeps a network near its base, and the model {model.kind!r} has none.",
                fix="model=expert, with a parent",
            )

    def cost(self, network: Network, codes: Codes, batch: Batch, key: Array) -> Float[Array, ""]:
        assert isinstance(network, ExpertNetwork)  # `check_model` guarantees it.
        asked = jnp.repeat(codes, self.draws, axis=0)
        targets = jnp.repeat(jnp.round(batch.targets[:, 0]).astype(jnp.int32), self.draws, axis=0)
        # The gradient is that of the log-probabilities, not of the sampling.
        sampled = jax.lax.stop_gradient(network).generate(asked, key=key)
        own = jnp.sum(log_probabilities(network, asked, sampled), axis=1)
        base = jax.lax.stop_gradient(jnp.sum(log_probabilities(network.base(), asked, sampled), axis=1))
        returns = self.rewards(sampled, targets) - self.divergence * (jax.lax.stop_gradient(own) - base)
        returns = returns.reshape(-1, self.draws)
        others = (returns.sum(axis=1, keepdims=True) - returns) / (self.draws - 1)
        return -jnp.mean((returns - others).ravel() * own)

    def rewards(
        self, sampled: Int[Array, "answer token"], targets: Int[Array, "answer token"]
    ) -> Float[Array, " answer"]:
        """The reward of each answer: whether it is right in every token."""
        return jnp.where(jnp.all(sampled == targets, axis=1), self.right, self.wrong)
