"""The control: one function for each combination, nothing shared between combinations."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.families.hyperteacher import Hyperteacher, ShapedTeacher
from recombine.families.lookup import Lookup, LookupTeacher
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

SPACE = SubsetSpace(modules=8, max_active=3)


def answer(teacher: LookupTeacher, row: np.ndarray, coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The combination's own function, slot by slot, active slots only."""
    layers, readout = teacher.modules(jnp.asarray(row))
    scaled = np.asarray(coefficients, float) / np.sqrt(teacher.space.slots)
    hidden = np.asarray(x, float)
    for layer in layers:
        total = 0.0
        for slot in range(len(teacher.space.constituents(row))):
            weight, bias = np.asarray(layer.weights[slot], float), np.asarray(layer.biases[slot], float)
            total = total + scaled[slot] * (hidden @ weight + bias)
        hidden = np.maximum(total, 0.0)
    return hidden @ np.asarray(readout, float)


def outputs(teacher: ShapedTeacher, rows: np.ndarray, samples: int = 64) -> np.ndarray:
    """What each combination answers to the same inputs with the same coefficients, flat."""

    def one(row: jax.Array) -> jax.Array:
        task = teacher.task(row, jax.random.key(0))
        return teacher.batch(task, jax.random.key(1), samples).targets.ravel()

    return np.asarray(jax.jit(jax.vmap(one))(jnp.asarray(rows)))


def correlations(values: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    every = np.corrcoef(values)
    return np.array([every[one, two] for one, two in pairs])


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("space", [SPACE, ProductSpace(factors={"a": 3, "b": 2})])  # type: ignore[arg-type]
def test_a_combination_has_one_function_for_any_key(space: Space, layers: int):
    """Coefficients and inputs follow the key; the weights follow the combination alone. Pads are silent."""
    teacher = Lookup(inputs=4, hidden=5, outputs=3, layers=layers).draw(space, jax.random.key(0))
    rows = space.enumerate()
    for row in rows[:: len(rows) // 4]:
        for seed in (1, 2):
            by_task, by_batch = jax.random.split(jax.random.key(seed))
            task = teacher.task(jnp.asarray(row), by_task)
            batch = teacher.batch(task, by_batch, 4)
            wanted = [answer(teacher, row, np.asarray(task.coefficients), x) for x in np.asarray(batch.inputs)]
            np.testing.assert_allclose(batch.targets, wanted, rtol=2e-5, atol=2e-6)


def test_different_combinations_are_uncorrelated_also_when_they_share_parts():
    rows = SPACE.enumerate()
    rows = rows[(rows < SPACE.width).all(axis=1)]
    sets = [set(row) for row in rows.tolist()]
    akin = [(i, j) for i, j in itertools.combinations(range(len(rows)), 2) if len(sets[i] & sets[j]) == 2]
    foreign = [(i, j) for i, j in itertools.combinations(range(len(rows)), 2) if not sets[i] & sets[j]]
    lookup = outputs(Lookup().draw(SPACE, jax.random.key(0)), rows)
    teacher = outputs(Hyperteacher().draw(SPACE, jax.random.key(0)), rows)
    for pairs in (akin, foreign):
        found = correlations(lookup, pairs)
        assert abs(found.mean()) < 0.05, "the mean over pairs is zero"
        assert np.abs(found).max() < 0.8, "no pair shares its function"
    assert correlations(teacher, akin).mean() > 0.5, "the hyperteacher's would be seen by this test"


def test_all_functions_are_different():
    """Pads count as part of the combination: {1} and {1, 2} are not each other's beginning."""
    rows = SPACE.enumerate()
    made = outputs(Lookup(inputs=3, hidden=4, outputs=2).draw(SPACE, jax.random.key(0)), rows, samples=4)
    assert len(np.unique(made.round(6), axis=0)) == len(rows)


def test_outputs_have_the_hyperteachers_scale():
    """As hard to fit, combination by combination: the same distribution over teachers."""
    rows = jnp.asarray(SPACE.enumerate()[::6])

    def spread(family: Lookup | Hyperteacher) -> np.ndarray:
        def of(key: jax.Array) -> jax.Array:
            teacher = family.draw(SPACE, key)

            def one(row: jax.Array) -> jax.Array:
                task = teacher.task(row, jax.random.fold_in(key, 1))
                return teacher.batch(task, jax.random.fold_in(key, 2), 16).targets

            return jax.vmap(one)(rows)

        return np.asarray(jax.jit(jax.vmap(of))(jax.random.split(jax.random.key(7), 60)))

    mine, theirs = spread(Lookup()), spread(Hyperteacher())
    # By combination: those with one, two and three parts have different scales.
    parts = (np.asarray(rows) < SPACE.width).sum(axis=1)
    for count in (1, 2, 3):
        chosen = parts == count
        ratio = mine[:, chosen].std() / theirs[:, chosen].std()
        assert ratio == pytest.approx(1, abs=0.06 if count == 3 else 0.12)


def test_nothing_is_enumerated():
    space = SubsetSpace(modules=1000, max_active=20)
    teacher = Lookup(inputs=4, hidden=4, outputs=2).draw(space, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(teacher)) == 1
    row = np.asarray(space.sample(jax.random.key(1)))
    task = teacher.task(jnp.asarray(row), jax.random.key(2))
    batch = teacher.batch(task, jax.random.key(3), 2)
    wanted = [answer(teacher, row, np.asarray(task.coefficients), x) for x in np.asarray(batch.inputs)]
    np.testing.assert_allclose(batch.targets, wanted, rtol=1e-4, atol=1e-5)


def test_lookups_differ_by_key():
    one, other = (Lookup(inputs=3).draw(SPACE, jax.random.key(seed)) for seed in (0, 1))
    row = jnp.array([0, 3, 5])
    assert not np.intersect1d(one.modules(row)[1], other.modules(row)[1]).size
