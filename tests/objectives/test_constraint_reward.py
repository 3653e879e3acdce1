"""Rewards are those of the problem, the policy gradient is that of what was drawn, and it teaches what can be taught."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax

from recombine.component import resolve
from recombine.errors import BadInput
from recombine.families.base import Batch
from recombine.language.vocabulary import BEGIN, END, PAD
from recombine.models.decoder import Decoder, DecoderNetwork
from recombine.objectives.base import as_precision
from recombine.objectives.constraint_reward import ConstraintReward, log_probabilities
from recombine.overrides import validate
from recombine.problems.digits import WORDS
from recombine.problems.knapsack import Knapsack
from recombine.problems.power_flow import PowerFlow
from recombine.recipes.fast import Fast
from recombine.training.config import RunConfig

SACK = Knapsack(items=3, count=4, solver="listing", text="pairs")
FLOW = PowerFlow(solver="batched", text="pairs")


def network_of(problem: Knapsack | PowerFlow) -> DecoderNetwork:
    texts, words = problem.texts, 3 + len(WORDS)
    size = texts.answer.length
    model = Decoder(width=16, layers=1, heads=2)
    return model.draw(texts.question.length - 1, size, size * words, jax.random.key(0))


@pytest.mark.parametrize("problem", [SACK, FLOW])
@pytest.mark.parametrize("steps", [False, True])
def test_rewards_are_the_shares_of_the_problem_itself(problem: Knapsack | PowerFlow, steps: bool) -> None:
    found = problem.instances(12, seed=1)
    answers = found.answers[np.random.default_rng(0).permutation(12)]
    tokens = problem.write_answers(found.questions, answers, steps)
    tokens[0, 2] = END
    codes = jnp.asarray(problem.write_questions(found.questions), jnp.float32)
    objective = ConstraintReward(problem=problem, steps=steps)
    made = jax.jit(objective.rewards)(codes, jnp.asarray(tokens))
    read = problem.read_answers(tokens, steps)
    each = problem.violations(found.questions, read)
    held = np.concatenate(list(each.values()), axis=1) <= problem.tolerances[0]
    np.testing.assert_allclose(made, held.mean(axis=1), atol=1e-6)
    assert np.isnan(read[0]).any() and np.ptp(np.asarray(made)[1:]) > 0
    rate = problem.check(found, read, [problem.tolerances[0]]).total[0]
    assert np.mean(made) == pytest.approx(rate, abs=1e-6)


def test_the_likelihood_of_a_drawn_answer_is_that_of_its_tokens_one_by_one() -> None:
    network = network_of(SACK)
    codes = jnp.asarray(SACK.write_questions(SACK.instances(3, seed=0).questions), jnp.float32)
    said = network.generate(codes, key=jax.random.key(1))
    found = np.asarray(log_probabilities(network, codes, said))
    for code, tokens, row in zip(codes, np.asarray(said), found, strict=True):
        steps = jnp.arange(len(code) + network.longest_answer)
        memory, before = network.prefill(jnp.round(code).astype(int), steps), BEGIN
        for place, token in enumerate(tokens):
            if token == PAD:
                assert row[place] == 0
                continue
            expected, memory = network.next_logits(memory, jnp.array(before), jnp.array(place), steps)
            expected = expected.at[jnp.array([PAD, BEGIN])].set(-jnp.inf)
            assert row[place] == pytest.approx(float(jax.nn.log_softmax(expected)[token]), abs=1e-4)
            before = int(token)


def test_likelihoods_are_computed_in_full_precision() -> None:
    """Weights of half the digits: what they expect is as they give it, but its logarithm is not rounded."""
    network = as_precision(network_of(SACK), np.dtype(jnp.bfloat16))
    codes = jnp.asarray(SACK.write_questions(SACK.instances(4, seed=0).questions), jnp.float32)
    said = network.generate(codes, key=jax.random.key(1))
    found = log_probabilities(network, codes, said)
    shown = jnp.concatenate([jnp.full_like(said[:, :1], BEGIN), said[:, :-1]], axis=1).astype(jnp.float32)
    expected = np.array(network.tasks(codes, shown[:, None]), np.float64).reshape(*said.shape, -1)
    expected[..., [PAD, BEGIN]] = -np.inf
    chosen = np.take_along_axis(log_softmax(expected, axis=-1), np.asarray(said)[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(found, np.where(said == PAD, 0, chosen), atol=1e-4)
    assert found.dtype == jnp.float32


def test_tokens_are_drawn_as_they_are_expected() -> None:
    network = network_of(SACK)
    code = jnp.asarray(SACK.write_questions(SACK.instances(1, seed=0).questions), jnp.float32)
    number = 4000
    said = network.generate(jnp.repeat(code, number, axis=0), key=jax.random.key(2))
    counts = np.bincount(np.asarray(said)[:, 0], minlength=116) / number
    steps = jnp.arange(code.shape[1] + network.longest_answer)
    memory = network.prefill(jnp.round(code[0]).astype(int), steps)
    expected, _ = network.next_logits(memory, jnp.array(BEGIN), jnp.array(0), steps)
    share = jax.nn.softmax(expected.at[jnp.array([PAD, BEGIN])].set(-jnp.inf))
    assert np.abs(counts - np.asarray(share)).max() < 5 * np.sqrt(0.25 / number)


def test_the_reward_teaches_what_cross_entropy_does_not() -> None:
    """Shown answers take any number of each item, more than fit; the reward asks for fewer."""
    found, rate = SACK.instances(16, seed=0), jnp.array(0.02)
    codes = jnp.asarray(SACK.write_questions(found.questions), jnp.float32)
    optimiser = Fast().optimiser()

    def batch(number: int) -> Batch:
        taken = np.random.default_rng(number).integers(0, 3, (16, 3)).astype(float)
        answers = jnp.asarray(SACK.write_answers(found.questions, taken), jnp.float32)[:, None]
        before = jnp.concatenate([jnp.full_like(answers[..., :1], BEGIN), answers[..., :-1]], axis=-1)
        return jax.vmap(Batch)(before, answers, jnp.ones((16, 1)))

    def after(weight: float) -> float:
        objective = ConstraintReward(problem=SACK, weight=weight, tasks=16, draws=8)
        step = eqx.filter_jit(lambda state, *given: objective.step(state, codes, *given, optimiser, rate))
        state = objective.init(network_of(SACK), optimiser)
        for number in range(90):
            state, loss = step(state, batch(number), jax.random.key(number))
            assert jnp.isfinite(loss)
        assert isinstance(state.network, DecoderNetwork)
        many = jnp.repeat(codes, 8, axis=0)
        said = state.network.generate(many, key=jax.random.key(1000))
        return float(objective.rewards(many, said).mean())

    assert after(0.0) < 0.88 < 0.93 < after(3.0)


def test_rewards_that_are_not_those_of_the_family_are_refused() -> None:
    """Even where questions and answers are of the same length."""
    for other in (SACK.model_copy(update={"count": 3}), SACK.model_copy(update={"copies": 1})):
        with pytest.raises(BadInput, match=r"items=3.* with steps=False, but the family has Knapsack"):
            validate(
                RunConfig,
                {"family": {"kind": "problem", "problem": other}, "objective": ConstraintReward(problem=SACK)},
            )
    with pytest.raises(BadInput, match="'scan' have none"):
        ConstraintReward().check_family(resolve("families", "scan"))


def test_places_at_random_are_refused() -> None:
    given = {"family": {"kind": "problem", "problem": SACK}}
    with pytest.raises(BadInput, match="random_positions=64"):
        validate(RunConfig, given | {"objective": ConstraintReward(problem=SACK, random_positions=64)})


def test_a_reward_for_another_problem_is_refused() -> None:
    given = {"family": {"kind": "problem", "problem": SACK}, "model": "decoder"}
    validate(RunConfig, given | {"objective": ConstraintReward(problem=SACK)})
    with pytest.raises(BadInput, match=r"PowerFlow.* but the family has Knapsack"):
        validate(RunConfig, given | {"objective": ConstraintReward(problem=FLOW)})
