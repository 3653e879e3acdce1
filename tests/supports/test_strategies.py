"""The published strategies, and the covering walk."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.plan.costs import covered_by, make_costs
from recombine.spaces.product import ProductSpace
from recombine.supports.covering import Forbidden, allowed
from recombine.supports.covering.walk import walk, walkable
from recombine.supports.varied.strategies import STRATEGIES, combinations, length

CUBE = ProductSpace(factors={"a": 3, "b": 3, "c": 3})
UNEVEN = ProductSpace(factors={"a": 4, "b": 2, "c": 3})


def values(name, space=CUBE, number=200, **settings):
    found = list(itertools.islice(combinations(name, space, **settings), number))
    return [tuple(int(part) for part in row - np.array(space.offsets)) for row in found]


def changes(space, name, **settings):
    rows = np.stack(list(combinations(name, space, **settings)))
    return make_costs(space, "changes").in_order(rows, None)


def test_each_strategy_by_hand():
    assert values("no-variation") == [(0, 0, 0)]
    assert values("single-factor") == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert values("diagonal") == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]
    assert values("L") == [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (0, 2, 0), (0, 0, 1), (0, 0, 2)]
    assert values("stair") == [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2)]


def test_uneven_factors():
    assert values("diagonal", UNEVEN) == [(0, 0, 0), (1, 1, 1), (2, 1, 2), (3, 1, 2)]
    assert values("single-factor", UNEVEN) == [(level, 0, 0) for level in range(4)]
    assert values("stair", UNEVEN)[-3:] == [(2, 1, 1), (2, 1, 2), (3, 1, 2)]


def test_complete_is_everything_one_change_at_a_time():
    for space in (CUBE, UNEVEN):
        every = values("complete", space)
        assert len(every) == len(set(every)) == space.size
        assert changes(space, "complete").tolist() == [3.0] + [1.0] * (space.size - 1)


def test_costs_of_strategies():
    assert changes(CUBE, "stair").tolist() == [3.0] + [1.0] * 6
    assert changes(CUBE, "diagonal").tolist() == [3.0, 3.0, 3.0]
    # The arms of an L lead back to the base: the last of an arm and the first of the next differ in two factors.
    assert changes(CUBE, "L").tolist() == [3.0, 1.0, 1.0, 2.0, 1.0, 2.0, 1.0]


def test_stair_meets_as_many_pairs_as_l_for_fewer_changes():
    pairs = {name: covered_by(CUBE, np.stack(list(combinations(name, CUBE))), 2) for name in ("stair", "L")}
    assert pairs == {"stair": 15, "L": 15}
    assert changes(CUBE, "stair").sum() < changes(CUBE, "L").sum()


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_a_base_and_a_seed(name):
    base = UNEVEN.enumerate()[17]
    number = length(name, UNEVEN) or 30
    one = list(itertools.islice(combinations(name, UNEVEN, base=base, seed=5), 100))
    two = list(itertools.islice(combinations(name, UNEVEN, base=base, seed=5), 100))
    assert np.array_equal(one, two), "the same for the same seed"
    assert np.array_equal(one[0], base) and UNEVEN.contains(np.stack(one)).all()
    assert name == "random" or len(one) == number
    if number > 1:
        others = [values(name, UNEVEN, base=base, seed=seed) for seed in range(4)]
        assert len({tuple(other) for other in others}) > 1, "others for other seeds"


def test_an_unknown_strategy():
    with pytest.raises(BadInput, match="did you mean 'stair'"):
        next(combinations("stairs", CUBE))


@pytest.mark.parametrize("strength", [2, 3])
def test_a_walk_covers_everything_by_few_changes(strength):
    space = ProductSpace(factors=dict.fromkeys("abcd", 3))
    start = space.enumerate()[:1]
    steps = np.stack(list(walk(space, start[0], strength=strength, already=start[:0])))
    every = np.concatenate([start, steps])
    assert covered_by(space, every, strength) == space.interactions(strength)
    assert len(np.unique(every, axis=0)) == len(every)
    spent = make_costs(space, "changes").in_order(every, None).sum()
    # A change of one factor meets at most one new interaction with each choice of the others.
    least = 4 + (space.interactions(strength) - (6, 4)[strength - 2]) / (3, 3)[strength - 2]
    assert least <= spent <= 1.5 * least


def test_a_walk_keeps_to_constraints_and_repeats_nothing():
    space = ProductSpace(factors=dict.fromkeys("abcd", 3))
    forbidden = (Forbidden((0, 3)), Forbidden((1,), (6,)), Forbidden((4, 7, 9)))
    free = space.enumerate()[allowed(space, space.enumerate(), forbidden)]
    there = free[[0, 5, 9]]
    steps = np.stack(list(walk(space, there[-1], strength=2, already=there, forbidden=forbidden)))
    assert allowed(space, steps, forbidden).all()
    assert len(np.unique(np.concatenate([there, steps]), axis=0)) == len(there) + len(steps)
    assert covered_by(space, np.concatenate([there, steps]), 2) == covered_by(space, free, 2)


def test_too_large_to_walk():
    assert not walkable(ProductSpace(factors={f"f{place}": 10 for place in range(100)}), 3)
    assert walkable(ProductSpace(factors={f"f{place}": 10 for place in range(100)}), 2)


def test_a_walk_that_is_spread_takes_the_factors_in_turn():
    space = ProductSpace(factors=dict.fromkeys("abcd", 5))
    start = space.enumerate()[0]
    steps = list(itertools.islice(walk(space, start, strength=2, already=start[None], spread=True), 8))
    varied = [len(np.unique(column)) for column in np.stack([start, *steps]).T]
    assert varied == [3, 3, 3, 3], "two new levels of each factor"
    steps = list(itertools.islice(walk(space, start, strength=2, already=start[None]), 8))
    assert [len(np.unique(column)) for column in np.stack([start, *steps]).T] == [5, 5, 1, 1]
