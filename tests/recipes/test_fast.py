"""Muon in blocks: against the singular value decomposition, and against optax's own Muon."""

import jax
import jax.numpy as jnp
import numpy as np
import optax.contrib
import pytest

from recombine.recipes.fast import COEFFICIENTS, Fast, block_muon, join, split

LOW, HIGH = 0.18, 1.88


def normal(*shape, seed=0):
    return jax.random.normal(jax.random.key(seed), shape)


def first_update(gradient, block):
    optimiser = block_muon(block, len(COEFFICIENTS))
    return jax.jit(lambda one: optimiser.update(one, optimiser.init(one), one)[0])(gradient)


def run(optimiser, weights, steps=4):
    random = np.random.default_rng(0)

    @jax.jit
    def advance(weights, state, gradient):
        updates, state = optimiser.update(gradient, state, weights)
        return jax.tree.map(lambda weight, update: weight + 0.01 * update, weights, updates), state

    state = optimiser.init(weights)
    for _ in range(steps):
        gradient = {name: random.normal(size=weight.shape).astype(np.float32) for name, weight in weights.items()}
        weights, state = advance(weights, state, gradient)
    return weights


@pytest.mark.parametrize(
    ("shape", "blocks"),
    [
        ((12, 16), (12, 2, 8)),
        ((12, 17), (12, 3, 6)),  # One column of padding.
        ((12, 8), (12, 8)),
        ((8, 40), (8, 40)),  # The short side decides what orthogonalising costs: nothing to gain.
        ((40,), (40,)),
    ],
)
def test_split_and_join(shape, blocks):
    weight = normal(*shape)
    cut = split(weight, 8)
    assert cut.shape == blocks
    np.testing.assert_array_equal(join(cut, weight), weight)


def test_one_block_is_muon():
    """Where no matrix is beyond a block, the recipe is optax's Muon."""
    weights = {"matrix": normal(12, 9), "vector": normal(9)}
    own = optax.contrib.muon(1.0, ns_coeffs=COEFFICIENTS, ns_steps=len(COEFFICIENTS))
    got, want = run(block_muon(9, len(COEFFICIENTS)), weights), run(own, weights)
    for name in weights:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-5, atol=1e-6)


def test_blocks_are_muon_one_by_one():
    """A split matrix moves as its blocks would move under optax's Muon, each on its own."""
    weight = normal(12, 17)
    own = optax.contrib.muon(1.0, ns_coeffs=COEFFICIENTS, ns_steps=len(COEFFICIENTS))
    optimiser = block_muon(8, len(COEFFICIENTS))
    state = optimiser.init(weight)
    alone = [weight[:, :6], weight[:, 6:12], weight[:, 12:]]
    kept = [own.init(block) for block in alone]
    step_whole, step_own = jax.jit(optimiser.update), jax.jit(own.update)
    for step in range(3):
        gradient = normal(12, 17, seed=step + 1)
        update, state = step_whole(gradient, state, weight)
        for index, block in enumerate((slice(0, 6), slice(6, 12), slice(12, 17))):
            want, kept[index] = step_own(gradient[:, block], kept[index], alone[index])
            got = update[:, block]
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(48, 48), (48, 20), (20, 48), (100, 96)])
def test_update_is_nearly_orthogonal(shape):
    """Each block's update has its gradient's singular vectors, and singular values of about one."""
    gradient = normal(*shape)
    update = np.asarray(first_update(gradient, 48))
    width = split(gradient, 48).shape[-1]
    for start in range(0, shape[1], width):
        block, asked = update[:, start : start + width], np.asarray(gradient)[:, start : start + width]
        scale = max(1.0, block.shape[1] / block.shape[0]) ** 0.5
        left, strengths, right = np.linalg.svd(asked, full_matrices=False)
        inside = -(left.T @ block @ right.T) / scale
        values = np.diag(inside)
        # Directions whose gradient is under a hundredth of the whole may lag behind.
        strong = strengths > 1e-2 * np.linalg.norm(strengths)
        assert strong.mean() > 0.9
        assert np.all((values[strong] > LOW) & (values[strong] < HIGH))
        np.testing.assert_allclose(inside, np.diag(values), atol=1e-3)
        np.testing.assert_allclose(-(left * values) @ right * scale, block, atol=1e-3)


def test_polynomials_flatten():
    """Singular values over two decades come out around one: computed without matrices."""
    values = np.geomspace(1e-2, 1, 1000)
    for one, cubic, quintic in COEFFICIENTS:
        values = one * values + cubic * values**3 + quintic * values**5
    assert values.min() > LOW
    assert values.max() < HIGH


def test_size_of_an_update_does_not_depend_on_blocks():
    """The same rate serves both: blocks change an update's shape, not its length."""
    gradient = {"square": normal(96, 96), "wide": normal(64, 96)}
    whole, blocks = first_update(gradient, 1000), first_update(gradient, 32)
    for name in gradient:
        assert float(jnp.linalg.norm(blocks[name]) / jnp.linalg.norm(whole[name])) == pytest.approx(1, abs=0.25)


def test_vectors_are_adams():
    """A vector's first move has the sign of its gradient and one length everywhere."""
    gradient = {"matrix": normal(6, 6), "vector": normal(300)}
    update = first_update(gradient, 4)["vector"]
    assert bool(jnp.all(jnp.sign(update) == -jnp.sign(gradient["vector"])))
    np.testing.assert_allclose(jnp.abs(update), jnp.abs(update[0]), rtol=1e-3)


def test_rate_falls_to_zero():
    schedule = Fast().schedule
    assert [float(schedule(jnp.asarray(done))) for done in (0.0, 0.25, 0.5, 1.0)] == [1.0, 0.75, 0.5, 0.0]


def test_stays_finite_where_a_gradient_is_zero():
    gradient = jnp.zeros((12, 17))
    assert bool(jnp.all(first_update(gradient, 8) == 0))


def test_runs_stack():
    """Many runs are one vmap: a stack moves as its runs do alone."""
    optimiser = block_muon(8, len(COEFFICIENTS))
    gradients = normal(3, 12, 17)
    states = jax.vmap(optimiser.init)(gradients)
    stacked, _ = jax.vmap(optimiser.update)(gradients, states, gradients)
    for gradient, update in zip(gradients, stacked, strict=True):
        np.testing.assert_allclose(first_update(gradient, 8), update, rtol=1e-4, atol=1e-5)


def test_decay_shrinks_matrices_and_nothing_else():
    weights = {"matrix": normal(6, 5), "vector": normal(5)}
    plain, decayed = (run(Fast(weight_decay=decay).optimiser(), weights, steps=1) for decay in (0.0, 0.5))
    # `run` steps at a rate of .01.
    np.testing.assert_allclose(
        decayed["matrix"], plain["matrix"] - 0.01 * 0.5 * weights["matrix"], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(decayed["vector"], plain["vector"], rtol=1e-6)


def test_runs_without_decay_keep_their_names():
    assert "weight_decay" not in Fast().meaning() and "weight_decay" in Fast(weight_decay=0.5).meaning()
