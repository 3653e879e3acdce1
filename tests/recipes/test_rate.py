"""What every recipe promises: an optimiser at unit rate, and settings that are checked."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest
from pydantic import ValidationError

from recombine.families.base import Batch
from recombine.models.mlp import MLP
from recombine.objectives.regression import Regression
from recombine.recipes.fast import COEFFICIENTS, Fast
from recombine.recipes.paper import Paper


def draw(key):
    by_inputs, by_targets = jax.random.split(key)
    return Batch(jax.random.normal(by_inputs, (2, 4)), jax.random.normal(by_targets, (2, 5)), jnp.ones(2))


@pytest.mark.parametrize(
    ("recipe", "own"),
    [
        (
            Paper(weight_decay=0.1),
            lambda rate: optax.adamw(
                rate, weight_decay=0.1, mask=lambda tree: jax.tree.map(lambda one: one.ndim > 1, tree)
            ),
        ),
        # These matrices are smaller than a block, so Muon is optax's own.
        (Fast(), lambda rate: optax.contrib.muon(rate, ns_coeffs=COEFFICIENTS, ns_steps=len(COEFFICIENTS))),
    ],
    ids=["paper", "fast"],
)
def test_scaling_a_unit_rate_is_a_learning_rate(recipe, own):
    """The objective scales updates of unit rate; optax would have taken the rate itself."""
    rate = 0.02
    network = MLP(width=8, depth=1).draw(3, 4, 5, jax.random.key(0))
    objective, optimiser = Regression(), recipe.optimiser()
    state = objective.init(network, optimiser)
    reference = own(rate)
    other, kept = network, reference.init(network)

    @jax.jit
    def both(state, other, kept, key):
        by_codes, by_batch = jax.random.split(key)
        codes = jax.random.normal(by_codes, (6, 3))
        batch = jax.vmap(draw)(jax.random.split(by_batch, 6))
        state, loss = objective.step(state, codes, batch, key, optimiser, jnp.asarray(rate))

        def error(one):
            return jnp.mean((jax.vmap(one)(codes, batch.inputs) - batch.targets) ** 2)

        expected, gradient = jax.value_and_grad(error)(other)
        updates, kept = reference.update(gradient, kept, other)
        return state, eqx.apply_updates(other, updates), kept, loss, expected

    for step in range(3):
        state, other, kept, loss, expected = both(state, other, kept, jax.random.key(step))
        np.testing.assert_allclose(loss, expected, rtol=1e-4)
    for got, want in zip(jax.tree.leaves(state.network), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [Paper, Fast])
@pytest.mark.parametrize(
    "wrong", [{"learning_rate": 0}, {"steps": -1}, {"tasks": 0}, {"samples": -1}, {"momentum": 0.9}]
)
def test_refuses_nonsense(kind, wrong):
    with pytest.raises(ValidationError):
        kind(**wrong)
