"""The hyperteacher against a slow reference that is written from the paper's equations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from recombine.families.hyperteacher import (
    LEVELS,
    Hyperteacher,
    HyperteacherTeacher,
    Modules,
    draw_coefficients,
    fan_in_normal,
)
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

SUBSETS = SubsetSpace(modules=5, max_active=3)
TOYS = ProductSpace(factors={"colour": 2, "shape": 3})  # type: ignore[arg-type]

CASES: list[tuple[Space, Hyperteacher]] = [
    (SUBSETS, Hyperteacher(inputs=4, hidden=6, outputs=3)),
    (SUBSETS, Hyperteacher(inputs=4, hidden=6, outputs=3, bias=False, coefficients="k-hot")),
    (SUBSETS, Hyperteacher(inputs=4, hidden=6, outputs=3, layers=3, coefficients="continuous")),
    (SUBSETS, Hyperteacher(inputs=4, hidden=6, outputs=3, layers=2, bias=False)),
    (TOYS, Hyperteacher(inputs=4, hidden=6, outputs=3, layers=2)),
]


def answer(teacher: HyperteacherTeacher, z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """y = Omega . relu(sum_m z_m (Theta_m x + b_m)), module by module and unit by unit, in double precision."""
    z = np.asarray(z, float) / np.sqrt(teacher.space.slots)
    hidden = np.asarray(x, float)
    for layer in teacher.shared:
        theta, bias = np.asarray(layer.weights, float), np.asarray(layer.biases, float)
        below, hidden = hidden, np.zeros(theta.shape[2])
        for unit in range(len(hidden)):
            total = sum(z[m] * (theta[m, :, unit] @ below + bias[m, unit]) for m in range(len(z)))
            hidden[unit] = max(total, 0.0)
    return hidden @ np.asarray(teacher.readout, float)


@pytest.mark.parametrize(("space", "family"), CASES)
def test_answers_as_the_equations_say(space: Space, family: Hyperteacher):
    teacher = family.draw(space, jax.random.key(1))
    rows = space.enumerate()
    # Combinations with fewer than the most active modules are among them: the scale is the same for all.
    chosen = rows[np.linspace(0, len(rows) - 1, 8).astype(int)]
    for index, row in enumerate(chosen):
        by_task, by_batch = jax.random.split(jax.random.key(index))
        task = teacher.task(jnp.asarray(row), by_task)
        batch = teacher.batch(task, by_batch, 5)
        wanted = [answer(teacher, np.asarray(task.vector), x) for x in np.asarray(batch.inputs)]
        np.testing.assert_allclose(batch.targets, wanted, rtol=2e-5, atol=2e-6)
        assert batch.targets.shape == (5, family.output_size)
        assert batch.inputs.shape == (5, family.input_size)
        np.testing.assert_array_equal(batch.mask, np.ones(5))


def test_each_layer_has_modules_of_its_own():
    teacher = Hyperteacher(inputs=6, hidden=6, layers=3).draw(SUBSETS, jax.random.key(0))
    first, second, third = (np.asarray(layer.weights) for layer in teacher.shared)
    assert first.shape == second.shape == third.shape == (5, 6, 6)
    assert not np.intersect1d(first, second).size
    assert not np.intersect1d(second, third).size


def test_without_bias_there_is_none():
    with_bias = Hyperteacher().draw(SUBSETS, jax.random.key(0))
    without = Hyperteacher(bias=False).draw(SUBSETS, jax.random.key(0))
    assert not np.any(without.shared[0].biases)
    np.testing.assert_array_equal(with_bias.shared[0].weights, without.shared[0].weights)


def test_at_zero_input_without_bias_the_output_is_zero():
    """So there is no bias at the output."""
    teacher = Hyperteacher(bias=False).draw(SUBSETS, jax.random.key(0))
    assert not np.any(answer(teacher, np.ones(5), np.zeros(16)))
    layers, readout = teacher.modules(jnp.arange(3))
    hidden = jax.nn.relu(jnp.zeros((1, 16)) @ layers[0].weights[0])
    assert not np.any(hidden @ readout)


@pytest.mark.parametrize(("features", "hidden"), [(16, 16), (4, 32), (32, 4)])
def test_weights_are_truncated_normals_of_the_published_variance(features: int, hidden: int):
    modules = 150_000 // (features * hidden)
    drawn = np.asarray(Modules.draw(modules, features, hidden, True, jax.random.key(3)).weights).ravel()
    variance = 3**0.5 / features
    assert drawn.var() == pytest.approx(variance, rel=0.02)
    assert abs(drawn.mean()) < 4 * np.sqrt(variance / len(drawn))
    # Cut at two standard deviations of the normal before cutting, whose variance is larger by this share.
    before = np.sqrt(variance / stats.truncnorm.var(-2, 2))
    assert np.abs(drawn).max() <= 2 * before * (1 + 1e-6)
    assert np.abs(drawn).max() > 1.95 * before
    assert stats.kstest(drawn[:20_000], stats.truncnorm(-2, 2, scale=before).cdf).pvalue > 1e-3


def test_the_readout_is_scaled_by_its_own_fan_in():
    family = Hyperteacher(inputs=4, hidden=64, outputs=8)
    assert np.asarray(family.draw(SUBSETS, jax.random.key(0)).readout).shape == (64, 8)
    keys = jax.random.split(jax.random.key(0), 100)
    drawn = np.asarray(jax.vmap(lambda key: fan_in_normal(key, (64, 8)))(keys))
    assert drawn.var() == pytest.approx(3**0.5 / 64, rel=0.03)


def test_biases_are_uniform_below_a_half():
    drawn = np.asarray(Modules.draw(500, 1, 64, True, jax.random.key(5)).biases).ravel()
    assert drawn.min() >= 0
    assert drawn.max() < 0.5
    assert stats.kstest(drawn, stats.uniform(0, 0.5).cdf).pvalue > 1e-3


def test_modules_are_independent():
    weights = np.asarray(Modules.draw(40, 16, 16, True, jax.random.key(0)).weights).reshape(40, -1)
    apart = np.corrcoef(weights)[np.triu_indices(40, 1)]
    assert np.abs(apart).max() < 5 / np.sqrt(256)


def test_inputs_are_uniform_and_fresh():
    teacher = Hyperteacher().draw(SUBSETS, jax.random.key(0))
    task = teacher.task(jnp.array([0, 1, 2]), jax.random.key(0))
    inputs = np.asarray(teacher.batch(task, jax.random.key(1), 1000).inputs)
    assert inputs.min() >= -1
    assert inputs.max() <= 1
    assert stats.kstest(inputs.ravel(), stats.uniform(-1, 2).cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(inputs.T) - np.eye(16)).max() < 5 / np.sqrt(1000)
    assert not np.intersect1d(inputs, teacher.batch(task, jax.random.key(2), 4).inputs).size > 4


def test_discrete_coefficients_are_equally_likely_levels():
    drawn = np.asarray(draw_coefficients("discrete", 30_000, jax.random.key(0)))
    values, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_allclose(values, LEVELS, rtol=1e-6)
    np.testing.assert_allclose(values, [0.5, 0.6, 0.7, 0.8, 0.9, 1.0], rtol=1e-6)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_continuous_coefficients_are_uniform():
    drawn = np.asarray(draw_coefficients("continuous", 30_000, jax.random.key(0)))
    assert stats.kstest(drawn, stats.uniform(0.5, 0.5).cdf).pvalue > 1e-3


def test_k_hot_coefficients_are_one():
    np.testing.assert_array_equal(draw_coefficients("k-hot", 7, jax.random.key(0)), np.ones(7))


def test_coefficients_are_redrawn_for_each_task_and_stand_at_their_constituents():
    teacher = Hyperteacher(coefficients="continuous").draw(SUBSETS, jax.random.key(0))
    row = jnp.array([1, 4, 5])  # The last is the pad.
    tasks = jax.vmap(lambda key: teacher.task(row, key))(jax.random.split(jax.random.key(0), 200))
    vectors = np.asarray(tasks.vector)
    assert len(np.unique(vectors[:, 1])) == len(np.unique(vectors[:, 4])) == 200
    assert abs(np.corrcoef(vectors[:, 1], vectors[:, 4])[0, 1]) < 0.3
    np.testing.assert_array_equal(vectors[:, [0, 2, 3]], 0)
    np.testing.assert_array_equal(tasks.coefficients[:, 2], 0)
    np.testing.assert_array_equal(tasks.coefficients[:, :2], vectors[:, [1, 4]])


def test_nothing_is_enumerated():
    """10^41 combinations: memory and time follow the number of modules."""
    space = SubsetSpace(modules=1000, max_active=20)
    teacher = Hyperteacher(inputs=4, hidden=4, outputs=2).draw(space, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(teacher)) < 1000 * 4 * 6
    row = space.sample(jax.random.key(1))
    task = teacher.task(row, jax.random.key(2))
    batch = teacher.batch(task, jax.random.key(3), 3)
    wanted = [answer(teacher, np.asarray(task.vector), x) for x in np.asarray(batch.inputs)]
    np.testing.assert_allclose(batch.targets, wanted, rtol=1e-4, atol=1e-5)


def test_teachers_differ_by_key_only():
    family = Hyperteacher(inputs=4)
    one, same, other = (family.draw(SUBSETS, jax.random.key(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.shared[0].weights, same.shared[0].weights)
    assert not np.intersect1d(one.shared[0].weights, other.shared[0].weights).size
