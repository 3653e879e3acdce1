"""Regions to evaluate on, against brute force."""

from __future__ import annotations

import itertools
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.instances import InstanceSpace
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports import regions as module
from recombine.supports.base import Support
from recombine.supports.listed import Listed, drawing
from recombine.supports.missing_part import MissingPart
from recombine.supports.random import Random
from recombine.supports.regions import STRATA, Region, Regions, distance, side, stratum

SPACES: list[Space] = [
    SubsetSpace(modules=6, max_active=3),
    ProductSpace(factors={"a": 2, "b": 3, "c": 4}),  # type: ignore[arg-type]
]

PINNED = (155, [6, 10, 13, 16, 17, 19, 20, 21])
"""With seed 0: how many of the 696 combinations are for validation, and the first of them."""

EVERYTHING = 10**6
"""More combinations than any small space has."""


def as_set(rows: np.ndarray) -> set[tuple[int, ...]]:
    made = {tuple(row) for row in rows.tolist()}
    assert len(made) == len(rows)
    return made


def brute_force(space: Space, trained: np.ndarray, row: np.ndarray) -> str:
    lists = [set(space.constituents(other)) for other in trained]
    parts = space.constituents(row)
    if any(all(part not in other for other in lists) for part in parts):
        return "part_unseen"
    met = all(any({one, two} <= other for other in lists) for one, two in itertools.combinations(parts, 2))
    return "all_pairs_met" if met else "some_pairs_unmet"


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(SPACES), st.data())
def test_strata_against_brute_force(space: Space, data: st.DataObject):
    rows = space.enumerate()
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=8, unique=True))
    support = Listed(space, rows[chosen])
    assert stratum(rows, support.second_moment()).tolist() == [brute_force(space, support.rows, row) for row in rows]


@pytest.fixture(params=["number", "reserve", "rule", "product", "unconnected", "fewer"])
def support(request: pytest.FixtureRequest, paper: SubsetSpace, toys: ProductSpace) -> Support:
    """Supports of all sorts in small spaces."""
    return {
        "number": lambda: Random(number=60).draw(paper, 0),
        "reserve": lambda: Random(number=60, reserve=200).draw(paper, 0),
        "rule": lambda: MissingPart(part=7).draw(paper, 0),
        "product": lambda: Random(number=8).draw(toys, 1),
        "fewer": lambda: Random(number=60, most_active=2).draw(paper, 0),
        "unconnected": lambda: Random(number=10, require_connected=False).draw(paper, 0),
    }[request.param]()


@pytest.mark.parametrize("region", get_args(Region))
def test_rows_and_contains_agree(support: Support, region: Region):
    regions, everything = Regions(support, 0), support.space.enumerate()
    rows = regions.rows(region, EVERYTHING)
    assert as_set(rows) == as_set(everything[regions.contains(region, everything)])
    # Fewer rows are the beginning of more, and a draw can be repeated.
    np.testing.assert_array_equal(Regions(support, 0).rows(region, 5), rows[:5])


def test_regions_make_up_the_space(support: Support):
    regions = Regions(support, 0)
    trained, held_out, rest = (as_set(regions.rows(name, EVERYTHING)) for name in ("trained", "held_out", "rest"))
    assert support.contains(np.array(sorted(trained))).all()
    assert len(trained) == support.size
    assert trained | held_out | rest == as_set(support.space.enumerate())
    assert len(trained) + len(held_out) + len(rest) == support.space.size
    if len(support.reserved):
        assert held_out == as_set(support.reserved)
    else:
        assert not rest


def test_strata_make_up_the_held_out(support: Support):
    regions = Regions(support, 0)
    parts = {name: as_set(regions.rows(name, EVERYTHING)) for name in STRATA}
    held_out = as_set(regions.rows("held_out", EVERYTHING))
    assert set.union(*parts.values()) == held_out
    assert sum(len(part) for part in parts.values()) == len(held_out)
    if isinstance(support, Listed):
        for name, rows in parts.items():
            assert all(brute_force(support.space, support.rows, np.array(row)) == name for row in rows)
    else:
        assert parts["part_unseen"] == held_out


@pytest.mark.parametrize("reserve", [0, 70])
def test_more_parts_than_trained(paper: SubsetSpace, reserve: int):
    support = Random(number=60, most_active=2, reserve=reserve).draw(paper, 0)
    regions = Regions(support, 0)
    wanted = {row for row in as_set(regions.rows("held_out", EVERYTHING)) if row[2] < 16}
    assert as_set(regions.rows("more_parts", EVERYTHING)) == wanted
    assert len(wanted) == 560 if not reserve else 40 < len(wanted) < 70


def test_more_parts_than_trained_in_a_huge_space(huge: SubsetSpace, monkeypatch: pytest.MonkeyPatch):
    support = Random(number=500, most_active=18).draw(huge, 0)
    rows = Regions(support, 0).rows("more_parts", 200, "test")
    assert len(as_set(rows)) == 200
    assert ((rows < 1000).sum(axis=1) > 18).all()
    # Where the largest combinations are trained on, none need be searched for.
    regions = Regions(Random(number=500).draw(huge, 0), 0)
    monkeypatch.setattr(drawing, "sample_rows", lambda *_: pytest.fail("searched"))
    assert len(regions.rows("more_parts", 5)) == 0


@settings(deadline=None, max_examples=60)
@given(st.integers(0, len(SPACES) - 1), st.data())
def test_distance_against_brute_force(number: int, data: st.DataObject):
    space = SPACES[number]
    rows = space.enumerate()
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=8, unique=True))
    sets = [set(space.constituents(row)) for row in rows]
    expected = [min(max(len(one - sets[at]), len(sets[at] - one)) for at in chosen) for one in sets]
    assert distance(rows, rows[chosen], space.width).tolist() == expected


def test_distance_in_a_product_counts_values(toys: ProductSpace):
    rows = toys.enumerate()
    expected = (rows[:, None] != rows[None, :4]).sum(axis=2).min(axis=1)
    np.testing.assert_array_equal(distance(rows, rows[:4], toys.width), expected)


def test_distance_in_blocks_and_of_nothing(paper: SubsetSpace, monkeypatch: pytest.MonkeyPatch):
    rows = paper.enumerate()
    whole = distance(rows, rows[::9], 16)
    monkeypatch.setattr(module, "BLOCK", 100)
    np.testing.assert_array_equal(distance(rows, rows[::9], 16), whole)
    assert distance(rows[:0], rows, 16).shape == (0,)
    with pytest.raises(BadInput, match="at least one training combination"):
        distance(rows, rows[:0], 16)


def test_distance_in_a_huge_space(huge: SubsetSpace):
    support = Random(number=20_000, reserve=200).draw(huge, 0)
    asked = np.concatenate([support.reserved[:100], support.rows[:100]])
    found = distance(asked, support.rows, 1000)
    assert (found[100:] == 0).all()
    lists = [set(row) for row in support.rows.tolist()]
    own = set(asked[0].tolist())
    assert found[0] == min(max(len((own - other) - {1000}), len((other - own) - {1000})) for other in lists)


@pytest.mark.parametrize("region", ["trained", "held_out", "some_pairs_unmet"])
def test_sides_are_disjoint_and_together_everything(support: Support, region: Region):
    regions = Regions(support, 0)
    one, other = (as_set(regions.rows(region, EVERYTHING, which)) for which in ("validation", "test"))
    assert not one & other
    assert one | other == as_set(regions.rows(region, EVERYTHING))


def test_a_side_does_not_depend_on_the_support(paper: SubsetSpace):
    # What was tuned on for one size of support is not scored on for another.
    short, long = (Regions(Random(number=number, reserve=200).draw(paper, 0), 0) for number in (50, 300))
    assert as_set(short.rows("held_out", EVERYTHING, "test")) == as_set(long.rows("held_out", EVERYTHING, "test"))


def test_share_and_seed_of_the_validation_side():
    rows = SubsetSpace(modules=40, max_active=4).enumerate()
    sides = np.stack([side(rows, seed) == "validation" for seed in range(8)])
    # 102,090 rows: the standard error is .0014.
    np.testing.assert_allclose(sides.mean(axis=1), 0.25, atol=0.006)
    # Seeds are independent of each other, and so are sides and sizes of combinations.
    np.testing.assert_allclose(np.corrcoef(sides)[np.triu_indices(8, 1)], 0, atol=0.014)
    small = (rows < 40).sum(axis=1) <= 3
    assert abs(sides[:, small].mean() - 0.25) < 0.006


def test_the_side_is_pinned():
    # Another answer here would mix what earlier runs tuned on with what they are scored on.
    rows = SubsetSpace(modules=16, max_active=3).enumerate()
    validation = side(rows, 0) == "validation"
    assert (int(validation.sum()), np.nonzero(validation)[0][:8].tolist()) == PINNED


def test_the_order_is_random(paper: SubsetSpace):
    support = Random(number=60).draw(paper, 0)
    one, other = (Regions(support, seed).rows("held_out", 300) for seed in (0, 1))
    assert (one != other).any()
    # Sizes of combinations are not sorted: the first half has as many small ones as the second, nearly.
    small = (one < 16).sum(axis=1) < 3
    assert abs(small[:150].mean() - small[150:].mean()) < 0.2


def test_empty_regions(paper: SubsetSpace):
    everything_met = Regions(Random(number=690).draw(paper, 0), 0)
    assert everything_met.rows("part_unseen", 5).shape == (0, 3)
    with pytest.raises(BadInput, match=r"The region part_unseen \(test side\) has no combination"):
        everything_met.require("part_unseen", 5, "test")
    with pytest.raises(BadInput, match="The region rest has no combination"):
        everything_met.require("rest", 5)
    assert len(everything_met.require("held_out", 5)) == 5


def test_empty_regions_of_huge_spaces_are_not_searched(huge: SubsetSpace, monkeypatch: pytest.MonkeyPatch):
    regions = Regions(Random(number=40_000).draw(huge, 0), 0)
    monkeypatch.setattr(drawing, "sample_rows", lambda *_: pytest.fail("searched"))
    for region in ("part_unseen", "some_pairs_unmet", "rest"):
        assert regions.rows(region, 5).shape == (0, 20)


def test_short_lists_in_a_huge_space(huge: SubsetSpace):
    support = Random(number=300, reserve=200).draw(huge, 0)
    regions = Regions(support, 0)
    trained = regions.rows("trained", 1000)
    assert as_set(trained) == as_set(support.rows)
    held_out = regions.rows("held_out", 1000)
    assert as_set(held_out) == as_set(support.reserved)
    assert as_set(regions.rows("some_pairs_unmet", 1000)) <= as_set(support.reserved)
    assert len(regions.rows("some_pairs_unmet", 1000)) > 150
    rest = regions.rows("rest", 300)
    assert len(as_set(rest)) == 300
    assert not support.contains(rest).any()
    assert not as_set(rest) & as_set(held_out)


def test_a_part_unseen_in_a_huge_space(huge: SubsetSpace):
    support = MissingPart(part=7).draw(huge, 0)
    rows = Regions(support, 0).rows("held_out", 200, "test")
    assert len(as_set(rows)) == 200
    assert (rows == 7).any(axis=1).all()
    assert (side(rows, 0) == "test").all()
    assert support.contains(Regions(support, 0).rows("trained", 200)).all()


def test_large_seeds(paper: SubsetSpace):
    support = Random(number=60).draw(paper, 2**64 - 1)
    one, other = (Regions(support, seed).rows("held_out", 50) for seed in (1, 2**32 + 1))
    assert (one != other).any()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("number", [18, 19])
def test_even_two_or_three_held_out_combinations_have_both_sides(seed: int, number: int):
    space = SubsetSpace(modules=6, max_active=2)
    regions = Regions(Random(number=number).draw(space, seed), seed)
    sides = [as_set(regions.require("held_out", EVERYTHING, which)) for which in ("validation", "test")]
    assert not sides[0] & sides[1]
    assert len(sides[0] | sides[1]) == space.size - number


@pytest.mark.parametrize("region", ["trained", "held_out", "rest", "more_parts"])
def test_regions_that_ask_for_no_pairs_do_not_compute_them(region: Region, monkeypatch: pytest.MonkeyPatch):
    """For thousands of instances the moment is a gigabyte."""
    space = InstanceSpace(number=40)
    support = Random(held_out=0.25, require_connected=False).draw(space, 0)
    monkeypatch.setattr(type(support), "second_moment", lambda _: pytest.fail("computed"))
    rows = Regions(support, 0).rows(region, EVERYTHING)
    assert len(rows) == {"trained": 30, "held_out": 10}.get(region, 0)
