"""Replacing one constituent: all replacements in a small space, and their coefficients."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.families.base import Task
from recombine.families.hyperteacher import Hyperteacher
from recombine.probes.neighbours import MAX_TRIES, replaced_rows, replaced_task, replacements
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

SPACES: list[Space] = [
    SubsetSpace(modules=6, max_active=3),
    SubsetSpace(modules=5, max_active=2, min_active=2),
    ProductSpace(factors={"colour": 2, "shape": 3, "place": 4}),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.title)
def test_all_ways_against_brute_force(space: Space):
    """As many constituents, all but one in common."""
    rows = space.enumerate()
    owner, ways = replacements(space, rows, each=1000, seed=3)
    made = replaced_rows(rows[owner], ways)
    found = {(tuple(rows[one]), tuple(row)) for one, row in zip(owner, made.tolist(), strict=True)}
    sets = [(tuple(row), set(space.constituents(row))) for row in rows.tolist()]
    wanted = {
        (row, other)
        for row, parts in sets
        for other, others in sets
        if len(parts) == len(others) and len(parts - others) == 1
    }
    assert found == wanted
    assert len(found) == len(owner), "no way twice"


def test_only_what_is_allowed_and_not_too_many():
    space = SPACES[0]
    rows = space.enumerate()[6:]
    owner, ways = replacements(space, rows, each=2, seed=0, allowed=lambda made: made[:, 0] == 0)
    assert (replaced_rows(rows[owner], ways)[:, 0] == 0).all()
    assert np.bincount(owner).max() == 2
    again = replacements(space, rows, each=2, seed=0, allowed=lambda made: made[:, 0] == 0)
    np.testing.assert_array_equal(ways, again[1])
    assert not np.array_equal(replacements(space, rows, 1, 1)[1], replacements(space, rows, 1, 2)[1])


def test_large_spaces_are_not_listed():
    space = SubsetSpace(modules=1000, max_active=20)
    rows = np.stack([space.row(range(start, start + 20)) for start in range(5)])
    owner, _ = replacements(space, rows, each=MAX_TRIES, seed=0)
    assert (np.bincount(owner) > MAX_TRIES // 2).all()


@functools.cache
def new_task() -> Callable[..., Task]:
    teacher = Hyperteacher(inputs=2, hidden=2, outputs=2).draw(SPACES[0], jax.random.key(0))
    return jax.jit(lambda row, key: teacher.task(row, key))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_a_constituent_takes_over_the_coefficient(seed: int):
    space = SPACES[0]
    rng = np.random.default_rng(seed)
    rows = space.enumerate()
    row = rows[rng.integers(len(rows))]
    task = new_task()(jnp.asarray(row), jax.random.key(seed))
    _, ways = replacements(space, row[None], 1, seed)
    other = replaced_task(space, task, jnp.asarray(ways[0]))
    slot, constituent = ways[0]
    wanted = np.asarray(task.vector).copy()
    wanted[constituent], wanted[row[slot]] = wanted[row[slot]], 0
    np.testing.assert_array_equal(other.vector, wanted)
    assert space.contains(np.asarray(other.combination)[None])[0]
    np.testing.assert_array_equal(space.vector(other.combination, other.coefficients), wanted)
