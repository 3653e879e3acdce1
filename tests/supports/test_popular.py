"""Combinations with a popular constituent, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import RowSet, groups
from recombine.spaces.subset import SubsetSpace
from recombine.supports import popular as module
from recombine.supports.popular import Popular, holding

SPACES: list[Space] = [
    SubsetSpace(modules=7, max_active=3),
    SubsetSpace(modules=6, max_active=2),
    SubsetSpace(modules=6, max_active=4, min_active=3),
    SubsetSpace(modules=5, max_active=5),
    ProductSpace(factors={"a": 2, "b": 3, "c": 4}),  # type: ignore[arg-type]
    ProductSpace(factors={"a": 3, "b": 1, "c": 3}),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("chosen", [[0], [1, 3], [0, 2, 4], [0, 1, 2, 3, 4]], ids=str)
def test_listing_against_brute_force(space: Space, chosen: list[int]):
    rows = space.enumerate()
    wanted = rows[[bool(set(chosen) & set(space.constituents(row))) for row in rows]]
    found = holding(space, np.array(chosen))
    assert len(found) == len(wanted) == len(RowSet(found))
    assert RowSet(found).contains(wanted).all()
    assert found.dtype == np.int32


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("parts", [2, 3])
def test_all_of_them(space: Space, parts: int):
    kind = Popular(parts=parts)
    try:
        kind.check(space)
    except BadInput:
        # With so many popular ones hardly any combination is left.
        assert space.size - kind.choices(space) < 2
        return
    for seed in range(3):
        popular, support = kind.popular(space, seed), kind.draw(space, seed)
        assert len(popular) == parts
        every = space.enumerate()
        np.testing.assert_array_equal(support.contains(every), np.isin(every, popular).any(axis=1))
        assert support.size == kind.length(space)
        assert groups(support.rows, space.width) == 1


def test_sizes_in_the_papers_space(paper: SubsetSpace):
    others = sum(math.comb(12, count) for count in (1, 2, 3))
    assert Popular(parts=4).length(paper) == 696 - others


@pytest.mark.parametrize("listing", [True, False])
def test_a_number_of_them(paper: SubsetSpace, listing: bool, monkeypatch: pytest.MonkeyPatch):
    if not listing:
        monkeypatch.setattr(module, "SMALL", 0)
    supports = [Popular(parts=4, number=number, reserve=50).draw(paper, 0) for number in (60, 90, 340)]
    popular = Popular(parts=4).popular(paper, 0)
    for support, number in zip(supports, (60, 90, 340), strict=True):
        assert len(RowSet(support.rows)) == number
        assert np.isin(support.rows, popular).any(axis=1).all()
        assert groups(support.rows, 16) == 1
        np.testing.assert_array_equal(support.reserved, supports[0].reserved)
        assert not support.contains(support.reserved).any()
    np.testing.assert_array_equal(supports[2].rows[:90], supports[1].rows)


def test_the_reserve_of_all_of_them_has_no_popular_part(paper: SubsetSpace):
    support = Popular(parts=4, reserve=100).draw(paper, 0)
    assert support.size == Popular(parts=4).length(paper)
    assert len(RowSet(support.reserved)) == 100
    assert not np.isin(support.reserved, Popular(parts=4).popular(paper, 0)).any()


def test_popular_values_are_spread_over_factors(toys: ProductSpace):
    factor = np.repeat([0, 1, 2], toys.levels)
    assert sorted(factor[Popular(parts=2).popular(toys, 0)]) == [1, 2]
    assert sorted(factor[Popular(parts=4).popular(toys, 0)]) == [0, 1, 2, 2]
    # No factor is popular with all its values.
    assert sorted(factor[Popular(parts=6).popular(toys, 0)]) == [0, 1, 1, 2, 2, 2]
    seen = {part for seed in range(60) for part in Popular(parts=2).popular(toys, seed).tolist()}
    assert seen == set(range(2, 9))


@pytest.mark.parametrize(
    ("kind", "space", "message"),
    [
        (Popular(parts=16), SubsetSpace(modules=16, max_active=3), r"some others are needed.*\n.*choose 1\.\.15"),
        (Popular(parts=15), SubsetSpace(modules=16, max_active=3), "leaves 1, but validation and test need 2"),
        (Popular(parts=4, reserve=300), SubsetSpace(modules=16, max_active=3), "reserve fewer"),
        (Popular(number=5), SubsetSpace(modules=16, max_active=3), "connected combinations contain at most"),
        (Popular(number=400), SubsetSpace(modules=16, max_active=3), "only 227 can be trained on"),
        (Popular(), SubsetSpace(modules=1000, max_active=20), r"would not fit in memory.*\n.*give number"),
        (Popular(parts=1), SPACES[4], "other values of the popular value's factor never occur"),
        (Popular(), ProductSpace(factors={"a": 5, "b": 1}), "must come from two factors"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_impossible_supports_are_refused(kind: Popular, space: Space, message: str):
    with pytest.raises(BadInput, match=message):
        kind.check(space)
