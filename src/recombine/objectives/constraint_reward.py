"""Constraint reward: next-token prediction plus REINFORCE on the constraints that sampled answers satisfy."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field, NonNegativeFloat, PositiveInt

from recombine.component import field
from recombine.errors import BadInput
from recombine.families.base import Batch, Family
from recombine.families.problem import Problem as ProblemFamily
from recombine.language.vocabulary import BEGIN, PAD
from recombine.models.base import Codes, Network
from recombine.models.sequence import SequenceNetwork
from recombine.objectives.next_token import NextToken, as_sequence_network
from recombine.problems import PowerFlow, Problem

LEAST = 1e-3
"""Added to the standard deviation of rewards, so that tiny differences are not blown up."""


class ConstraintReward(NextToken):
    """Cross-entropy plus `weight` times a policy gradient (REINFORCE).

    For some tasks of every batch several answers are sampled. The reward of an answer is the share of constraints that it
    satisfies. Its advantage is the reward minus the mean of the other answers to the same task, divided by the standard
    deviation of all rewards.
    """

    kind: Literal["constraint-reward"] = "constraint-reward"
    problem: field("problems", Problem) = PowerFlow(solver="batched", text="pairs")  # type: ignore[valid-type]
    """The problem with the constraints; the same as the family's."""
    steps: bool = False
    """Whether answers have intermediate steps; the same as the family's."""
    tolerance: NonNegativeFloat | None = None
    """The violation up to which a constraint counts as satisfied; None for the strictest tolerance of the problem."""
    weight: NonNegativeFloat = 1.0
    """Weight of the policy gradient; cross-entropy has weight one."""
    tasks: PositiveInt = 8
    """Tasks of a batch for which answers are sampled."""
    draws: int = Field(default=4, ge=2)
    """Sampled answers per task."""

    def check(self, code_size: int, input_size: int) -> None:
        super().check(code_size, input_size)
        if self.random_positions:
            raise BadInput(
                f"Sampled answers have consecutive positions, but the objective has random_positions={self.random_positions}.",
                fix="objective.random_positions=0",
            )

    def check_family(self, family: Family) -> None:
        if not isinstance(family, ProblemFamily):
            raise BadInput(
                f"Only the family 'problem' has constraints; the answers of {family.kind!r} have none.",
                fix="family=problem, or objective=next-token",
            )
        if (self.problem, self.steps) != (family.problem, family.steps):
            raise BadInput(
                f"The reward is for the constraints of {self.problem!r} with steps={self.steps}, but the family has "
                f"{family.problem!r} with steps={family.steps}.",
                fix="set problem and steps of the objective as in the family",
            )

    def rewards(
        self, codes: Float[Array, "answer code"], tokens: Int[Array, "answer token"]
    ) -> Float[Array, " answer"]:
        """The share of constraints that each answer satisfies. A constraint on a number that cannot be read is violated."""
        texts = self.problem.texts
        questions = texts.question.read(jnp.round(codes).astype(jnp.int32), jnp)
        numbers = (texts.steps if self.steps else texts.answer).read(tokens, jnp)
        answers = numbers[:, np.array(texts.columns)] if self.steps else numbers
        tolerance = self.problem.tolerances[0] if self.tolerance is None else self.tolerance
        return self.problem.satisfied(questions, answers, tolerance, jnp)

    def cost(self, network: Network, codes: Codes, batch: Batch, key: Array) -> Float[Array, ""]:
        by_loss, by_draw = jax.random.split(key)
        asked = jnp.repeat(codes[: self.tasks], self.draws, axis=0)
        # The gradient is that of the log-probabilities, not of the sampling.
        sampled = as_sequence_network(jax.lax.stop_gradient(network)).generate(asked, key=by_draw)
        reward = self.rewards(asked, sampled).reshape(-1, self.draws)
        others = (reward.sum(axis=1, keepdims=True) - reward) / (self.draws - 1)
        advantage = ((reward - others) / (jnp.std(reward) + LEAST)).ravel()
        chances = log_probabilities(as_sequence_network(network), asked, sampled)
        counts = sampled != PAD
        policy = -jnp.sum(advantage[:, None] * chances * counts) / jnp.sum(counts)
        return super().cost(network, codes, batch, by_loss) + self.weight * policy


def log_probabilities(
    network: SequenceNetwork, codes: Float[Array, "answer code"], tokens: Int[Array, "answer token"]
) -> Float[Array, "answer token"]:
    """The log-probability of each sampled token, given those before it."""
    first = jnp.full_like(tokens[:, :1], BEGIN)
    shown = jnp.concatenate([first, tokens[:, :-1]], axis=1).astype(codes.dtype)
    # In float32, like the loss, whatever the precision of products.
    logits = network.tasks(codes, shown[:, None]).astype(jnp.float32).reshape(*tokens.shape, -1)
    # These two are never sampled.
    logits = logits.at[..., PAD].set(-jnp.inf).at[..., BEGIN].set(-jnp.inf)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], axis=-1)[..., 0]
    return jnp.where(tokens == PAD, 0.0, chosen)
