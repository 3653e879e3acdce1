"""Supports as the planner makes them, and as published strategies do."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import RowSet
from recombine.spaces.subset import SubsetSpace
from recombine.supports.planned import Planned
from recombine.supports.random import Random
from recombine.supports.varied import Varied

MODULES = SubsetSpace(modules=10, max_active=3)
FACTORS = ProductSpace(factors={"a": 4, "b": 4, "c": 4})


@pytest.mark.parametrize("space", [MODULES, FACTORS])
def test_a_plan_meets_more_pairs_and_leaves_the_reserve_alone(space: SubsetSpace | ProductSpace):
    shares = []
    for kind in (Planned(number=16, reserve=20), Random(number=16, reserve=20, require_connected=False)):
        support = kind.draw(space, 2)
        assert support.size == 16 and not RowSet(support.reserved).contains(support.rows).any()
        shares.append(support.certificate((2,)).coverage_of(2).share)
    assert shares[0] > shares[1] + 0.1


def test_all_kinds_of_a_replicate_share_the_reserve():
    kinds = [
        Planned(number=12, reserve=20),
        Random(number=12, reserve=20, require_connected=False),
        Varied(strategy="stair", number=12, reserve=20),
    ]
    reserves = [kind.draw(FACTORS, 7).reserved for kind in kinds]
    for reserved in reserves[1:]:
        np.testing.assert_array_equal(reserved, reserves[0])


@pytest.mark.parametrize("strategy", ["diagonal", "L", "stair", "random", "walk"])
def test_strategies_come_to_any_number(strategy: str):
    """Those that end begin again; no combination comes twice."""
    support = Varied(strategy=strategy, number=40, reserve=4).draw(FACTORS, 3)  # type: ignore[arg-type]
    assert support.size == 40 == len({row.tobytes() for row in support.rows})


@pytest.mark.parametrize("strategy", ["diagonal", "L", "stair", "walk"])
def test_the_number_of_combinations_that_changes_pay_for(strategy: str):
    number = Varied(strategy=strategy).affordable(FACTORS, 3, 15)  # type: ignore[arg-type]
    rows = Varied(strategy=strategy, number=number + 1).draw(FACTORS, 3).rows  # type: ignore[arg-type]
    cost = FACTORS.slots + np.cumsum((rows[1:] != rows[:-1]).sum(axis=1))
    assert cost[number - 2] <= 15 < cost[number - 1]


def test_one_change_at_a_time_buys_more_combinations():
    names = "diagonal", "random", "stair", "walk"
    numbers = {name: Varied(strategy=name).affordable(FACTORS, 3, 24) for name in names}
    assert numbers["diagonal"] <= numbers["random"] < numbers["stair"]
    assert numbers["walk"] >= numbers["stair"] - 2


def test_strategies_need_factors():
    with pytest.raises(BadInput, match=r"varied is not defined .*\n.*space=product"):
        Varied(number=5).draw(MODULES, 0)
