"""Constraint reward: next-token prediction, and beside it answers that are drawn and reinforced by the constraints that they satisfy."""

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
from recombine.families.vocabulary import BEGIN, PAD
from recombine.models.base import Network
from recombine.models.sequence import SequenceNetwork
from recombine.objectives.next_token import NextToken, speaking
from recombine.problems.base import Problem
from recombine.problems.power_flow import PowerFlow

LEAST = 1e-3
"""Added to how much rewards differ, so that where they hardly do, little is made of it."""


class ConstraintReward(NextToken):
    """Cross-entropy plus `weight` times a policy gradient (REINFORCE).

    Of some tasks of every batch several answers are drawn. An answer's reward is the share of its constraints that it
    satisfies, its advantage that reward less the mean of the other answers to the same task, in units of how much rewards
    differ.
    """

    kind: Literal["constraint-reward"] = "constraint-reward"
    problem: field("problems", Problem) = PowerFlow(solver="batched", text="pairs")  # type: ignore[valid-type]
    """Whose constraints they are: the family's problem."""
    steps: bool = False
    """Whether answers have intermediate steps, as the family says."""
    tolerance: NonNegativeFloat | None = None
    """How far a constraint that is satisfied may be violated; else the strictest of the problem."""
    weight: NonNegativeFloat = 1.0
    """Of the policy gradient; cross-entropy has weight one."""
    tasks: PositiveInt = 8
    """Tasks of a batch to which answers are drawn."""
    draws: int = Field(default=4, ge=2)
    """Answers that are drawn to each."""

    def check(self, code_size: int, input_size: int) -> None:
        super().check(code_size, input_size)
        texts = self.problem.texts
        answer = texts.steps if self.steps else texts.answer
        if (texts.question.length - 1, answer.length) != (code_size, input_size):
            raise BadInput(
                f"The reward is for questions of {texts.question.length - 1} tokens and answers of {answer.length}, but they "
                f"have {code_size} and {input_size}.",
                fix="give the objective the problem and the steps of the family",
            )
        if answer.separated:
            raise BadInput(
                "A reward is computed by the places of digits, which texts with separators do not fix.",
                fix="objective.problem.text=pairs and the same for the family's problem",
            )
        if self.spread:
            raise BadInput(
                f"Answers that are drawn for a reward stand at places one after another, got spread={self.spread}.",
                fix="objective.spread=0",
            )

    def check_family(self, family: Family) -> None:
        if not isinstance(family, ProblemFamily):
            raise BadInput(
                f"Constraints are those of problems; the answers of {family.kind!r} have none.",
                fix="family=problem, or objective=next-token",
            )
        if (self.problem, self.steps) != (family.problem, family.steps):
            raise BadInput(
                f"The reward is for the constraints of {_named(self.problem, self.steps)}, but the family asks "
                f"{_named(family.problem, family.steps)}.",
                fix="give the objective the problem and the steps of the family",
            )

    def rewards(
        self, codes: Float[Array, "answer code"], said: Int[Array, "answer token"]
    ) -> Float[Array, " answer"]:
        """The share of constraints that each answer satisfies; what needs a number that is none is violated."""
        texts = self.problem.texts
        questions = texts.question.read_places(jnp.round(codes).astype(jnp.int32), jnp)
        numbers = (texts.steps if self.steps else texts.answer).read_places(said, jnp)
        answers = numbers[:, np.array(texts.columns)] if self.steps else numbers
        tolerance = self.problem.tolerances[0] if self.tolerance is None else self.tolerance
        return self.problem.satisfied(questions, answers, tolerance, jnp)

    def cost(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, ""]:
        by_loss, by_draw = jax.random.split(key)
        asked = jnp.repeat(codes[: self.tasks], self.draws, axis=0)
        # What is drawn is given: the gradient is that of how likely it was.
        said = speaking(jax.lax.stop_gradient(network)).generate(asked, key=by_draw)
        reward = self.rewards(asked, said).reshape(-1, self.draws)
        others = (reward.sum(axis=1, keepdims=True) - reward) / (self.draws - 1)
        advantage = ((reward - others) / (jnp.std(reward) + LEAST)).ravel()
        likely = likelihood(speaking(network), asked, said)
        counts = said != PAD
        policy = -jnp.sum(advantage[:, None] * likely * counts) / jnp.sum(counts)
        return super().cost(network, codes, batch, by_loss) + self.weight * policy


def _named(problem: Problem, steps: bool) -> str:
    """A problem in words, with what differs from its defaults."""
    given = problem.model_dump(exclude_defaults=True)
    settings = ", ".join(f"{name}={value}" for name, value in given.items() if name != "kind")
    return f"{problem.kind} ({settings or 'as it is by default'}) {'with' if steps else 'without'} steps"


def likelihood(
    network: SequenceNetwork, codes: Float[Array, "answer code"], said: Int[Array, "answer token"]
) -> Float[Array, "answer token"]:
    """The log-probability of each token that was drawn, given those before it."""
    first = jnp.full_like(said[:, :1], BEGIN)
    shown = jnp.concatenate([first, said[:, :-1]], axis=1).astype(codes.dtype)
    # In full precision, whatever the products are computed in, as the loss is.
    expected = network.tasks(codes, shown[:, None]).astype(jnp.float32).reshape(*said.shape, -1)
    # Neither is ever drawn.
    expected = expected.at[..., PAD].set(-jnp.inf).at[..., BEGIN].set(-jnp.inf)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(expected), said[..., None], axis=-1)[..., 0]
    return jnp.where(said == PAD, 0.0, chosen)
