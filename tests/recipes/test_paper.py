"""The published recipe against AdamW written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from recombine.recipes.paper import Paper


def weights_and_gradients(steps, seed=0):
    random = np.random.default_rng(seed)
    weights = {"matrix": random.normal(size=(3, 4)), "vector": random.normal(size=4)}
    gradients = [{name: random.normal(size=one.shape) for name, one in weights.items()} for _ in range(steps)]
    return weights, gradients


def train(recipe, weights, gradients, rate):
    optimiser = recipe.optimiser()
    weights = jax.tree.map(jnp.asarray, weights)
    state = optimiser.init(weights)
    for gradient in gradients:
        updates, state = optimiser.update(jax.tree.map(jnp.asarray, gradient), state, weights)
        weights = jax.tree.map(lambda weight, update: weight + rate * update, weights, updates)
    return weights


def by_hand(weights, gradients, rate, decay):
    """AdamW of Loshchilov and Hutter with decay times rate, beta .9 and .999, epsilon 1e-8."""
    weights = {name: one.copy() for name, one in weights.items()}
    first = {name: np.zeros_like(one) for name, one in weights.items()}
    second = {name: np.zeros_like(one) for name, one in weights.items()}
    for step, gradient in enumerate(gradients, start=1):
        for name, one in gradient.items():
            first[name] = 0.9 * first[name] + 0.1 * one
            second[name] = 0.999 * second[name] + 0.001 * one**2
            move = first[name] / (1 - 0.9**step) / (np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8)
            shrink = decay if name == "matrix" else 0.0
            weights[name] = weights[name] - rate * (move + shrink * weights[name])
    return weights


def test_is_adamw():
    weights, gradients = weights_and_gradients(steps=6)
    # A large decay, so that its place in the formula matters.
    got = train(Paper(weight_decay=0.5), weights, gradients, rate=0.1)
    want = by_hand(weights, gradients, rate=0.1, decay=0.5)
    for name in weights:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-5, atol=1e-5)


def test_decays_matrices_only():
    weights, _ = weights_and_gradients(steps=0)
    nothing = [jax.tree.map(np.zeros_like, weights)]
    got = train(Paper(weight_decay=0.5), weights, nothing, rate=0.1)
    np.testing.assert_allclose(got["matrix"], 0.95 * weights["matrix"], rtol=1e-6)
    np.testing.assert_allclose(got["vector"], weights["vector"], rtol=1e-6)


def test_published_values():
    recipe = Paper()
    assert (recipe.learning_rate, recipe.weight_decay, recipe.steps) == (3e-4, 3e-3, 300_000)
    assert (recipe.tasks, recipe.samples) == (128, 16)


def test_rate_is_constant():
    schedule = Paper().schedule
    assert [float(schedule(jnp.asarray(done))) for done in (0.0, 0.5, 0.999)] == [1.0, 1.0, 1.0]


def test_the_rate_is_constant_unless_it_falls():
    done = jnp.array([0.0, 0.25, 1.0])
    assert jax.vmap(Paper().schedule)(done).tolist() == [1, 1, 1]
    assert jax.vmap(Paper(falling=True).schedule)(done).tolist() == [1, 0.75, 0]
    assert "falling" not in str(Paper().meaning()), "older runs keep their names"
