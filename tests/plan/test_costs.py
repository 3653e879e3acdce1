"""What combinations cost, and the order that this gives them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.plan.costs import covered_by, interactions_in, make_costs, ordered
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

TOYS = ProductSpace(factors={"colour": ["red", "blue"], "object": ["dog", "cat", "cow"], "size": 2})
MODULES = SubsetSpace(modules=6, max_active=3)


def rows(space, *combinations):
    return np.stack([space.row(one) for one in combinations])


def test_one_each():
    costs = make_costs(TOYS)
    assert costs.kind == "one" and costs.in_order(TOYS.enumerate(), None).tolist() == [1.0] * 12


def test_levels_add_up():
    costs = make_costs(TOYS, None, {"colour": 3, "object": {"dog": "10", "cat": 0.5}})
    assert costs.kind == "levels"
    some = rows(TOYS, (0, 2, 5), (1, 3, 6), (1, 4, 6))
    assert costs.in_order(some, None).tolist() == [14.0, 4.5, 5.0], "a level without a cost costs 1"


def test_the_modules_of_a_set_cost_too():
    costs = make_costs(MODULES, "levels", {"0": 4})
    assert costs.in_order(rows(MODULES, (0, 1, 2), (5,)), None).tolist() == [6.0, 1.0]


def test_changes_are_counted_from_the_one_before():
    costs = make_costs(TOYS, "changes")
    some = rows(TOYS, (0, 2, 5), (0, 3, 5), (1, 4, 6), (1, 4, 6))
    assert costs.in_order(some, None).tolist() == [3.0, 1.0, 3.0, 0.0], "the first one counts all factors"
    assert costs.in_order(some, some[1]).tolist() == [1.0, 1.0, 3.0, 0.0], "or what differs from the last collected"
    assert costs.following(some, some[2]).tolist() == [3.0, 3.0, 0.0, 0.0]


def test_changes_of_sets():
    costs = make_costs(MODULES, "changes")
    some = rows(MODULES, (0, 1), (0, 2), (0, 2, 3), (2,), (4, 5))
    assert costs.in_order(some, None).tolist() == [2.0, 1.0, 1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        ("change", None, "did you mean 'changes'"),
        ("levels", None, "no level has a cost"),
        ("changes", {"colour": 1}, "remove costs"),
        (None, {"color": 1}, "did you mean 'colour'"),
        (None, {"colour": {"rad": 1}}, "did you mean 'red'"),
        (None, {"colour": -1}, "a number of at least 0"),
        (None, {"colour": "much"}, "a number of at least 0, got 'much'"),
        (None, {"colour": ["1"]}, "a number of at least 0"),
        (None, {"colour": {"red": "inf"}}, "a number of at least 0"),
    ],
)
def test_costs_that_cannot_be(kind, given, says):
    with pytest.raises(BadInput, match=says):
        make_costs(TOYS, kind, given)


def test_a_module_that_is_none_has_no_cost():
    with pytest.raises(BadInput, match="0 to 5"):
        make_costs(MODULES, "levels", {"6": 4})


@pytest.mark.parametrize("space", [TOYS, MODULES], ids=["product", "subset"])
@pytest.mark.parametrize("strength", [1, 2, 3])
def test_interactions_are_those_of_brute_force(space, strength):
    every = space.enumerate()[::3]
    sets = [set(itertools.combinations(space.constituents(row), strength)) for row in every]
    assert covered_by(space, every, strength) == len(set.union(*sets))
    owner, _ = interactions_in(space, every, strength)
    assert np.bincount(owner, minlength=len(every)).tolist() == [len(one) for one in sets]


@pytest.mark.parametrize("kind", ["one", "levels", "changes"])
@pytest.mark.parametrize("space", [TOYS, MODULES], ids=["product", "subset"])
def test_the_order_is_greedy_in_what_is_met_for_the_cost(space, kind):
    some = np.random.default_rng(3).permutation(space.enumerate())[:10]
    already = space.enumerate()[:1]
    prices = {"levels": {"0": 4, "1": 3} if space is MODULES else {"colour": {"red": 7}}}
    costs = make_costs(space, kind, prices.get(kind))
    order = ordered(space, some, costs, strength=2, already=already)
    met = set(itertools.combinations(space.constituents(already[0]), 2))
    last, left = already[-1], list(range(len(some)))
    for chosen in order:
        news = {place: set(itertools.combinations(space.constituents(some[place]), 2)) - met for place in left}
        price = dict(enumerate(costs.following(some, last)))
        worth = {place: len(new) / price[place] if new else 0 for place, new in news.items()}
        assert worth[chosen] == max(worth.values()) > 0
        met |= news[chosen]
        left.remove(chosen)
        last = some[chosen]
    assert not any(set(itertools.combinations(space.constituents(some[place]), 2)) - met for place in left)


def test_the_order_keeps_to_the_budget():
    costs = make_costs(TOYS, "changes")
    some = TOYS.enumerate()
    order = ordered(TOYS, some, costs, strength=2, already=some[:0], budget=6)
    assert 4 <= costs.in_order(some[order], None).sum() <= 6
    assert len(ordered(TOYS, some, costs, strength=2, already=some[:0], budget=2)) == 0, "the first costs 3"
