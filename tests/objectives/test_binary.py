"""Cross-entropy of single outputs against scipy; answers are probabilities."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from recombine.families.base import Batch
from recombine.models.mlp import MLP
from recombine.objectives import Binary


@pytest.fixture
def batch() -> Batch:
    targets = jax.random.bernoulli(jax.random.key(0), 0.3, (2, 3, 4)).astype(jnp.float32)
    mask = jnp.array([[1, 1, 0], [1, 0, 1]], jnp.float32)
    return jax.vmap(Batch)(jnp.zeros((2, 3, 5)), targets, mask)


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_the_loss_is_that_of_scipy(batch: Batch, scale: float):
    logits = scale * jax.random.normal(jax.random.key(1), batch.targets.shape)
    chances, targets = expit(np.asarray(logits, float)), np.asarray(batch.targets)
    each = -(targets * np.log(chances) + (1 - targets) * np.log1p(-chances))
    assert float(Binary().loss(logits, batch)) == pytest.approx(each[np.asarray(batch.mask) > 0].mean(), rel=1e-5)


def test_great_logits_do_not_overflow(batch: Batch):
    assert float(Binary().loss(1e4 * (2 * batch.targets - 1), batch)) == 0
    assert np.isfinite(float(Binary().loss(1e4 * (1 - 2 * batch.targets), batch)))


def test_answers_are_probabilities(batch: Batch):
    network, codes = MLP(width=4, depth=1).draw(1, 5, 4, jax.random.key(2)), jnp.zeros((2, 1))
    answers = Binary().evaluate(network, codes, batch, jax.random.key(0))
    np.testing.assert_allclose(answers, expit(np.asarray(network.tasks(codes, batch.inputs))), rtol=1e-5)
