"""policy-gradient: its gradient is that of the expected reward minus the divergence, by enumeration of all answers."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.base import Batch
from recombine.language.vocabulary import END, PAD
from recombine.models import Decoder, Expert, ExpertNetwork
from recombine.objectives import PolicyGradient
from recombine.objectives.base import trained_leaves
from recombine.objectives.constraint_reward import log_probabilities
from recombine.overrides import validate
from recombine.training import RunConfig

WORDS, LONGEST = 5, 2
ANSWERS = jnp.array([[END, PAD], *([first, then] for first in (3, 4) for then in (END, 3, 4))])
"""Every answer that can be sampled."""
TARGET = jnp.array([3, END])


@pytest.fixture(scope="module")
def expert() -> ExpertNetwork:
    model = Expert(model=Decoder(width=8, layers=1, heads=2, mlp_ratio=1))
    network = model.draw(3, LONGEST, LONGEST * WORDS, jax.random.key(0))
    shifted = eqx.filter(network, trained_leaves(network, model.trained))
    shifted = jax.tree.map(lambda leaf: leaf + 0.5 * jax.random.normal(jax.random.key(1), leaf.shape), shifted)
    return eqx.combine(shifted, network)


def test_the_gradient_is_that_of_all_answers(expert: ExpertNetwork) -> None:
    code = jnp.array([[3.0, 4.0, 3.0]])
    objective = PolicyGradient(divergence=0.7, draws=4000)
    target = TARGET[None, None].astype(jnp.float32)
    batch = jax.vmap(Batch)(jnp.zeros_like(target), target, jnp.ones((1, 1)))
    weights, rest = eqx.partition(expert, trained_leaves(expert, Expert.trained))
    codes = jnp.repeat(code, len(ANSWERS), axis=0)

    def expected(weights: ExpertNetwork) -> jax.Array:
        """Mean reward minus the divergence, from the probability of every answer."""
        network = eqx.combine(weights, rest)
        own, base = (log_probabilities(each, codes, ANSWERS).sum(axis=1) for each in (network, network.base()))
        reward = jnp.where(jnp.all(ANSWERS == TARGET, axis=1), 1.0, -1.0)
        return -jnp.sum(jnp.exp(own) * (reward - objective.divergence * (own - base)))

    @eqx.filter_jit
    def sampled(weights: ExpertNetwork, key: jax.Array) -> ExpertNetwork:
        return eqx.filter_grad(lambda own: objective.cost(eqx.combine(own, rest), code, batch, key))(weights)

    own = log_probabilities(expert, codes, ANSWERS).sum(axis=1)
    assert float(jnp.exp(own).sum()) == pytest.approx(1, abs=1e-5)
    exact = np.concatenate(
        [leaf.ravel() for leaf in jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(expected))(weights))]
    )
    found = [
        np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(sampled(weights, jax.random.key(n)))])
        for n in range(12)
    ]
    error = np.std(found, axis=0) / len(found) ** 0.5
    assert np.linalg.norm(error) < 0.1 * np.linalg.norm(exact), "precise enough to tell"
    assert np.all(np.abs(np.mean(found, axis=0) - exact) < 6 * error + 1e-4)


def test_rewards_are_for_whole_answers() -> None:
    objective = PolicyGradient(right=2.0, wrong=-3.0)
    sampled = jnp.array([[3, END], [3, 3], [END, PAD]])
    np.testing.assert_array_equal(objective.rewards(sampled, jnp.tile(TARGET, (3, 1))), [2, -3, -3])


def test_bad_input() -> None:
    for reward in ("nan", "inf"):
        with pytest.raises(ValueError, match="finite"):
            PolicyGradient(right=float(reward))
    with pytest.raises(ValueError, match="a constant reward teaches nothing"):
        PolicyGradient(right=1, wrong=1)
    with pytest.raises(BadInput, match="'decoder' has none"):
        validate(RunConfig, {"family": "string-tasks", "objective": "policy-gradient"})
