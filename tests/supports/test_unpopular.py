"""Cores with unpopular constituents around them, against brute force."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import RowSet, groups
from recombine.spaces.subset import SubsetSpace
from recombine.supports.listed import Listed
from recombine.supports.unpopular import Unpopular

SPACES: list[Space] = [
    SubsetSpace(modules=8, max_active=3),
    SubsetSpace(modules=9, max_active=2),
    SubsetSpace(modules=8, max_active=4, min_active=3),
    SubsetSpace(modules=6, max_active=6),
    ProductSpace(factors={"a": 4, "b": 5, "c": 4}),  # type: ignore[arg-type]
    ProductSpace(factors={"a": 4, "b": 1, "c": 5}),  # type: ignore[arg-type]
]


def uses(support: Listed) -> Counter[int]:
    return Counter(part for row in support.rows for part in support.space.constituents(row))


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("core", [None, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_core_and_links(space: Space, core: int | None, seed: int):
    kind = Unpopular(core=core)
    support = kind.draw(space, seed)
    links = sum(max(0, total - (core or max(1, total // 2))) for total in totals(space))
    linking, inside = support.rows[-links:], support.rows[:-links]
    # All combinations of the core and no other: as many as its parts have, and of no other parts.
    parts = {part for row in inside for part in space.constituents(row)}
    every = space.enumerate()
    assert RowSet(inside).contains(every).tolist() == [set(space.constituents(row)) <= parts for row in every]
    outside = [set(space.constituents(row)) - parts for row in linking]
    assert all(len(new) == 1 for new in outside)
    assert set.union(*outside) == set(range(space.width)) - parts
    assert all(uses(support)[part] == 1 for part in set.union(*outside))
    assert groups(support.rows, space.width) == 1
    assert support.size == kind.length(space)


def totals(space: Space) -> tuple[int, ...]:
    return space.levels if isinstance(space, ProductSpace) else (space.width,)


def test_half_of_the_papers_modules(paper: SubsetSpace):
    assert Unpopular().length(paper) == 8 + 28 + 56 + 8


def test_links_of_all_sizes_come_up():
    space = SubsetSpace(modules=40, max_active=3)
    sizes = Counter((Unpopular(core=5).draw(space, 0).rows[-35:] < 40).sum(axis=1).tolist())
    # 5 partners alone and 10 pairs of partners.
    assert set(sizes) == {2, 3}
    assert sizes[3] > sizes[2]


def test_the_seed_picks_the_core(paper: SubsetSpace):
    cores = [
        frozenset(part for part, count in uses(Unpopular().draw(paper, seed)).items() if count > 1)
        for seed in (1, 1, 2)
    ]
    assert cores[0] == cores[1] != cores[2]
    assert len(cores[0]) == 8


def test_the_reserve(paper: SubsetSpace):
    support = Unpopular(reserve=300).draw(paper, 0)
    assert len(RowSet(support.reserved)) == 300
    assert not support.contains(support.reserved).any()
    np.testing.assert_array_equal(support.rows, Unpopular().draw(paper, 0).rows)


@pytest.mark.parametrize(
    ("kind", "space", "message"),
    [
        (Unpopular(core=16), SubsetSpace(modules=16, max_active=3), r"core of 16 of 16.*\n.*choose core=1\.\.15"),
        (Unpopular(core=2), SPACES[2], r"choose core=3\.\.7"),
        (Unpopular(reserve=600), SubsetSpace(modules=16, max_active=3), "reserve fewer"),
        (Unpopular(), SubsetSpace(modules=1000, max_active=20), r"would not fit.*\n.*give a smaller core="),
        (Unpopular(core=5), SPACES[4], "choose a smaller core"),
    ],
)  # fmt: skip
def test_impossible_supports_are_refused(kind: Unpopular, space: Space, message: str):
    with pytest.raises(BadInput, match=message):
        kind.check(space)
