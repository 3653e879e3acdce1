"""The control of preferences: the same world, nothing shared between combinations."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.families.lookup_preferences import LookupPreferences
from recombine.families.preferences import Preferences, PreferringTeacher
from recombine.spaces.subset import SubsetSpace

SPACE = SubsetSpace(modules=6, max_active=3)
ROWS = SPACE.enumerate()


def worths(teacher: PreferringTeacher, seed: int = 0) -> np.ndarray:
    """What each type pays in each combination, with the same coefficients for all."""

    def one(row: jax.Array) -> jax.Array:
        return teacher.worth(teacher.task(row, jax.random.key(seed)))

    return np.asarray(jax.jit(jax.vmap(one))(jnp.asarray(ROWS)))


def test_combinations_that_share_parts_share_no_preferences():
    whole = [index for index, row in enumerate(ROWS) if (row < SPACE.width).all()]
    akin = [
        (one, two) for one, two in itertools.combinations(whole, 2) if len(np.intersect1d(ROWS[one], ROWS[two])) == 2
    ]
    found = {}
    for family in (LookupPreferences(features=200), Preferences(features=200)):
        every = np.corrcoef(worths(family.draw(SPACE, jax.random.key(0))))
        found[family.kind] = np.array([every[pair] for pair in akin])
    assert np.abs(found["lookup-preferences"]).max() < 5 / np.sqrt(200)
    assert found["preferences"].mean() > 0.5, "shared preferences would be seen by this test"


def test_a_combination_keeps_its_preferences_and_follows_its_coefficients():
    """Three tasks of one combination: what they pay is linear in the coefficients of its parts."""
    teacher = LookupPreferences(features=50, coefficients="continuous").draw(SPACE, jax.random.key(0))
    row = jnp.array([1, 4, 6])
    tasks = [teacher.task(row, jax.random.key(seed)) for seed in range(6)]
    amounts = np.stack([np.asarray(task.coefficients)[:2] for task in tasks])
    pays = np.stack([np.asarray(teacher.worth(task)) for task in tasks])
    own, *_ = np.linalg.lstsq(amounts, pays, rcond=None)
    np.testing.assert_allclose(amounts @ own, pays, atol=1e-4)


def test_pays_as_much_as_preferences_do():
    sizes = np.array([len(SPACE.constituents(row)) for row in ROWS])
    mine = worths(LookupPreferences(features=400).draw(SPACE, jax.random.key(0)))
    theirs = worths(Preferences(features=400).draw(SPACE, jax.random.key(0)))
    for size in (1, 2, 3):
        assert mine[sizes == size].std() == pytest.approx(theirs[sizes == size].std(), rel=0.06)


def test_drawn_tables_differ_by_key_and_no_combination_is_listed():
    one, other = (LookupPreferences().draw(SPACE, jax.random.key(seed)) for seed in (0, 1))
    assert sum(leaf.size for leaf in jax.tree.leaves(one)) == 1
    assert not np.intersect1d(worths(one), worths(other)).size
