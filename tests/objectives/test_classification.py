"""Cross-entropy against scipy, its gradient against the known form, a step against plain optax."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from pydantic import ValidationError
from scipy.special import log_softmax, softmax

from recombine.families.base import Batch
from recombine.models.mlp import MLP, MLPNetwork
from recombine.objectives.classification import Classification
from recombine.objectives.regression import Regression
from recombine.recipes.paper import Paper
from recombine.training.config import RunConfig

TASKS, SAMPLES, CODE, INPUTS, CLASSES = 3, 4, 5, 2, 6


@pytest.fixture
def batch() -> Batch:
    inputs = jax.random.normal(jax.random.key(2), (TASKS, SAMPLES, INPUTS))
    labels = jax.random.randint(jax.random.key(3), (TASKS, SAMPLES), 0, CLASSES)
    mask = jnp.array([[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0]], jnp.float32)
    return jax.vmap(Batch)(inputs, jax.nn.one_hot(labels, CLASSES), mask)


@pytest.mark.parametrize("scale", [0.1, 1.0, 300.0])
def test_loss_and_gradient_against_scipy(batch: Batch, scale: float):
    """At great logits too: nothing overflows."""
    logits = scale * jax.random.normal(jax.random.key(0), (TASKS, SAMPLES, CLASSES))
    loss, gradient = jax.value_and_grad(Classification().loss)(logits, batch)
    kept = np.asarray(batch.mask, bool)
    labels = np.asarray(batch.targets).argmax(axis=-1)[kept]
    plain = np.asarray(logits, float)[kept]
    wanted = -log_softmax(plain, axis=-1)[np.arange(len(labels)), labels].mean()
    assert float(loss) == pytest.approx(wanted, rel=1e-5)
    slope = np.zeros(logits.shape)
    slope[kept] = (softmax(plain, axis=-1) - np.eye(CLASSES)[labels]) / len(labels)
    np.testing.assert_allclose(gradient, slope, atol=1e-6)


def test_steps_equal_plain_optax(batch: Batch):
    network = MLP(width=6, depth=1).draw(CODE, INPUTS, CLASSES, jax.random.key(0))
    codes = jax.random.normal(jax.random.key(1), (TASKS, CODE))
    labels = jnp.argmax(batch.targets, axis=-1)
    objective, unit = Classification(), Paper(weight_decay=0.0).optimiser()
    state, plain = objective.init(network, unit), optax.adamw(0.01, weight_decay=0.0)

    def loss(network: MLPNetwork) -> jax.Array:
        each = optax.softmax_cross_entropy_with_integer_labels(jax.vmap(network)(codes, batch.inputs), labels)
        return jnp.sum(batch.mask * each) / jnp.sum(batch.mask)

    expected, kept = network, plain.init(network)  # type: ignore[arg-type]
    for _ in range(3):
        wanted, gradient = jax.value_and_grad(loss)(expected)
        updates, kept = plain.update(gradient, kept, expected)  # type: ignore[arg-type]
        expected = optax.apply_updates(expected, updates)  # type: ignore[arg-type]
        state, found = objective.step(state, codes, batch, jax.random.key(0), unit, jnp.float32(0.01))
        assert float(found) == pytest.approx(float(wanted), rel=1e-5)
    for one, other in zip(jax.tree.leaves(state.network), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_what_is_masked_does_not_matter(batch: Batch):
    logits = jax.random.normal(jax.random.key(0), (TASKS, SAMPLES, CLASSES))
    spoilt = jnp.where(batch.mask[..., None] > 0, logits, 1e3 * logits)
    assert float(Classification().loss(spoilt, batch)) == pytest.approx(float(Classification().loss(logits, batch)))


def test_it_is_for_families_of_classes_and_comes_with_them():
    assert RunConfig(family="preferences").objective == Classification()  # type: ignore[arg-type]
    for family, objective in (("preferences", Regression()), ("hyperteacher", Classification())):
        with pytest.raises(ValidationError, match="the objective"):
            RunConfig(family=family, objective=objective)  # type: ignore[arg-type]
