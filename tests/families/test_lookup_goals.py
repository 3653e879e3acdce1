"""lookup-goals: each combination stands for a goal of its own."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from recombine.families.goals import FACTORS
from recombine.families.grid import MOVES
from recombine.families.lookup_goals import LookupGoals
from recombine.spaces.product import ProductSpace
from recombine.testing import check_family

SPACE = ProductSpace(factors=FACTORS)  # type: ignore[arg-type]
ROWS = SPACE.enumerate()


def meanings(seed: int) -> np.ndarray:
    teacher = LookupGoals().draw(SPACE, jax.random.key(seed))
    return np.asarray(jax.vmap(lambda row: teacher.meant(teacher.task(row, jax.random.key(0))))(ROWS))


def test_the_contract():
    check_family(LookupGoals(), SPACE)


def test_a_goal_has_nothing_to_do_with_its_words():
    """Each factor of the goal is uniform, and agrees with the word as often as chance."""
    found, named = meanings(0), ROWS - np.array(SPACE.offsets)
    for factor, levels in enumerate(SPACE.levels):
        counts = np.bincount(found[:, factor], minlength=levels)
        assert np.abs(counts / len(ROWS) - 1 / levels).max() < 5 / np.sqrt(len(ROWS))
        assert np.mean(found[:, factor] == named[:, factor]) == pytest.approx(1 / levels, abs=0.1)


def test_the_goal_of_a_combination_stays_and_differs_between_teachers():
    assert np.array_equal(meanings(0), meanings(0))
    assert not np.array_equal(meanings(0), meanings(1))


def test_the_last_action_is_the_interaction_that_is_meant():
    teacher = LookupGoals().draw(SPACE, jax.random.key(0))

    def last(row: jax.Array) -> jax.Array:
        return teacher.play(teacher.task(row, jax.random.key(0)), jax.random.key(1)).actions[-1]

    actions = np.asarray(jax.jit(jax.vmap(last))(ROWS[:60]))
    assert np.array_equal(actions - len(MOVES), meanings(0)[:60, 1])
