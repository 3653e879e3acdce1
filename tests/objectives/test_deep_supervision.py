"""Deep supervision: which puzzles are carried on, the averaged weights, and the loss."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.families.base import Batch
from recombine.models.recursive import Recursive, RecursiveNetwork
from recombine.objectives.base import TrainState
from recombine.objectives.deep_supervision import Carried, DeepSupervision
from recombine.recipes import Paper

TASKS, CELLS, FEATURES, OUTPUTS = 3, 4, 5, 4
RECIPE = Paper(learning_rate=0.01)


def batch(seed: int) -> Batch:
    inputs, targets = (
        jax.random.normal(jax.random.key(seed + own), (TASKS, CELLS, size))
        for own, size in ((0, FEATURES), (99, OUTPUTS))
    )
    return jax.vmap(Batch)(inputs, jax.nn.one_hot(targets.argmax(-1), OUTPUTS), jnp.ones((TASKS, CELLS)))


@pytest.fixture(scope="module")
def after() -> list[TrainState]:
    """The states before and after four steps, each with another batch: puzzles get two steps."""
    objective = DeepSupervision(most=2, halting=0.0, explore=0.0, average=0.9)
    network = Recursive(cells=CELLS, width=8, heads=2, layers=1, updates=1, cycles=1).draw(
        1, FEATURES, OUTPUTS, jax.random.key(0)
    )
    state = objective.init(network, RECIPE.optimiser())
    state = TrainState(state.network, state.optimiser, state.step, objective.carry(network, batch(0)))

    @eqx.filter_jit
    def step(state: TrainState, given: Batch, key: jax.Array) -> TrainState:
        return objective.step(state, jnp.zeros((TASKS, 1)), given, key, RECIPE.optimiser(), jnp.asarray(0.01))[0]

    states = [state]
    for number in range(4):
        states.append(step(states[-1], batch(10 * (number + 1)), jax.random.key(number)))
    return states


def carried(state: TrainState) -> Carried:
    assert isinstance(state.carried, Carried)
    return state.carried


def test_a_puzzle_stays_for_its_steps_and_then_leaves(after: list[TrainState]) -> None:
    for number, shown in enumerate((10, 10, 30, 30), start=1):
        own = carried(after[number])
        np.testing.assert_array_equal(own.batch.inputs, batch(shown).inputs)
        assert (own.taken == (1 if number % 2 else 2)).all() and (own.halted == (number % 2 == 0)).all()


def test_a_new_puzzle_starts_anew_and_an_old_one_goes_on(after: list[TrainState]) -> None:
    @eqx.filter_jit
    def one(network: RecursiveNetwork, given: jax.Array, state: Any) -> Any:
        return network.step(network.embed(given), state)

    for number in (1, 2, 3):  # The state after a step follows from the network before it.
        before, own = after[number - 1], carried(after[number])
        network = before.network
        assert isinstance(network, RecursiveNetwork)
        start = network.initial(TASKS, CELLS) if number % 2 else carried(before).state
        wanted = one(network, own.batch.inputs, start)
        np.testing.assert_allclose(own.state.answer, wanted.answer, atol=1e-5)
        np.testing.assert_allclose(own.state.latent, wanted.latent, atol=1e-5)


def test_weights_are_averaged(after: list[TrainState]) -> None:
    expected = np.asarray(after[0].network.readout)  # type: ignore[attr-defined]
    for number, state in enumerate(after[1:]):
        decay = min(0.9, (1 + number) / (10 + number))
        expected = decay * expected + (1 - decay) * np.asarray(state.network.readout)  # type: ignore[attr-defined]
    average = carried(after[-1]).average
    np.testing.assert_allclose(average.readout, expected, rtol=1e-5)  # type: ignore[attr-defined]
    assert DeepSupervision().trained_network(after[-1]) is average
    assert DeepSupervision(average=0).trained_network(after[-1]) is after[-1].network


def test_the_start_is_not_trained(after: list[TrainState]) -> None:
    first, last = (state.network for state in (after[0], after[-1]))
    assert isinstance(first, RecursiveNetwork) and isinstance(last, RecursiveNetwork)
    np.testing.assert_array_equal(first.start.answer, last.start.answer)
    assert (first.readout != last.readout).any()


def test_stable_max_is_a_ratio_without_exponentials() -> None:
    logits = jnp.array([[[2.0, -1.0, 0.0, -3.0]]])
    size = np.array([3.0, 1 / 2, 1.0, 1 / 4])
    given = jax.vmap(Batch)(jnp.zeros((1, 1, 1)), jnp.array([[[0.0, 1.0, 0.0, 0.0]]]), jnp.ones((1, 1)))
    loss, slope = jax.value_and_grad(DeepSupervision().loss)(logits, given)
    np.testing.assert_allclose(loss, -np.log(size[1] / size.sum()), rtol=1e-6)
    assert jnp.isfinite(slope).all()
