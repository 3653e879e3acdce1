"""One step of regression, against gradients worked out by hand and against plain optax."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from recombine.families.base import Batch
from recombine.models.mlp import MLP, MLPNetwork
from recombine.objectives.base import TrainState
from recombine.objectives.regression import Regression
from recombine.recipes.paper import Paper

TASKS, SAMPLES, CODE, INPUTS, OUTPUTS = 3, 4, 5, 2, 3


@pytest.fixture
def network() -> MLPNetwork:
    return MLP(width=6, depth=1).draw(CODE, INPUTS, OUTPUTS, jax.random.key(0))


@pytest.fixture
def codes() -> jax.Array:
    return jax.random.normal(jax.random.key(1), (TASKS, CODE))


@pytest.fixture
def batch() -> Batch:
    inputs = jax.random.normal(jax.random.key(2), (TASKS, SAMPLES, INPUTS))
    targets = jax.random.normal(jax.random.key(3), (TASKS, SAMPLES, OUTPUTS))
    mask = jnp.array([[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0]], jnp.float32)
    return jax.vmap(Batch)(inputs, targets, mask)


def by_hand(network: MLPNetwork, codes: jax.Array, batch: Batch) -> tuple[float, list[np.ndarray]]:
    """The mean squared error over examples that count, and its gradient by the chain rule, in numpy."""
    w1, b1, w2, b2 = (np.asarray(leaf, float) for leaf in jax.tree.leaves(network))
    x = np.concatenate([np.repeat(codes, SAMPLES, axis=0), np.reshape(batch.inputs, (-1, INPUTS))], axis=1)
    before = x @ w1 + b1
    hidden = np.maximum(before, 0)
    error = hidden @ w2 + b2 - np.reshape(batch.targets, (-1, OUTPUTS))
    weight = np.reshape(batch.mask, (-1, 1)) / (np.sum(batch.mask) * OUTPUTS)
    loss = float((weight * error**2).sum())
    out = 2 * weight * error
    back = (out @ w2.T) * (before > 0)
    return loss, [x.T @ back, back.sum(0), hidden.T @ out, out.sum(0)]


def test_one_step_of_gradient_descent(network: MLPNetwork, codes: jax.Array, batch: Batch):
    loss, gradient = by_hand(network, codes, batch)
    objective, optimiser = Regression(), optax.sgd(1.0)
    state = objective.init(network, optimiser)
    after, found = objective.step(state, codes, batch, jax.random.key(0), optimiser, jnp.float32(0.1))
    assert float(found) == pytest.approx(loss, rel=1e-5)
    assert int(state.step) == 0
    assert int(after.step) == 1
    pairs = zip(jax.tree.leaves(network), jax.tree.leaves(after.network), gradient, strict=True)
    for old, new, slope in pairs:
        np.testing.assert_allclose(new, np.asarray(old) - 0.1 * slope, rtol=1e-4, atol=1e-6)


def test_three_steps_equal_plain_optax(network: MLPNetwork, codes: jax.Array, batch: Batch):
    """The rate scales the updates of an optimiser of unit rate: the same as an optimiser of that rate."""
    objective, unit = Regression(), Paper().optimiser()
    state = objective.init(network, unit)
    plain = optax.adamw(
        0.01,
        weight_decay=Paper().weight_decay,
        mask=lambda weights: jax.tree.map(lambda weight: weight.ndim > 1, weights),
    )

    def loss(network: MLPNetwork) -> jax.Array:
        error = jax.vmap(network)(codes, batch.inputs) - batch.targets
        return jnp.sum(batch.mask[..., None] * error**2) / (jnp.sum(batch.mask) * OUTPUTS)

    expected, kept = network, plain.init(network)
    for _ in range(3):
        wanted, gradient = jax.value_and_grad(loss)(expected)
        updates, kept = plain.update(gradient, kept, expected)
        expected = optax.apply_updates(expected, updates)
        state, found = objective.step(state, codes, batch, jax.random.key(0), unit, jnp.float32(0.01))
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-7), state.network, expected)


def test_a_rate_of_zero_changes_no_weight(network: MLPNetwork, codes: jax.Array, batch: Batch):
    objective, optimiser = Regression(), Paper().optimiser()
    state = objective.init(network, optimiser)
    after, _ = objective.step(state, codes, batch, jax.random.key(0), optimiser, jnp.float32(0))
    jax.tree.map(np.testing.assert_array_equal, after.network, network)
    assert isinstance(after, TrainState)


def test_evaluate_gives_the_predictions_of_each_task(network: MLPNetwork, codes: jax.Array, batch: Batch):
    found = Regression().evaluate(network, codes, batch, jax.random.key(0))
    for task in range(TASKS):
        np.testing.assert_allclose(found[task], network(codes[task], batch.inputs[task]), rtol=1e-5, atol=1e-6)
