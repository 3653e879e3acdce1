"""All that is near one combination, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.corner import Corner
from recombine.supports.regions import distance
from recombine.testing import check_support


def space_of(levels: list[int]) -> ProductSpace:
    return ProductSpace.model_validate({"factors": {f"f{n}": level for n, level in enumerate(levels)}})


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(2, 4), min_size=2, max_size=4), st.integers(1, 3), st.integers(0, 99))
def test_the_list_is_the_ball_around_one_combination(levels: list[int], reach: int, seed: int):
    space, kind = space_of(levels), Corner(reach=reach)
    if reach >= len(levels):
        with pytest.raises(BadInput, match="leaves nothing to test on"):
            kind.check(space)
        return
    values = [range(offset, offset + level) for offset, level in zip(space.offsets, levels, strict=True)]
    every = np.array(list(itertools.product(*values)))
    try:
        kind.check(space)
    except BadInput:
        assert len(every) - kind.length(space) < 2
        return
    rows = kind.draw(space, seed).rows
    away = (every[:, None] != rows[None]).sum(2)
    # The corner is the only one to which all trained combinations are near.
    balls = [every[(every != corner).sum(1) <= reach] for corner in every]
    found = {tuple(row) for row in rows.tolist()}
    assert found in [{tuple(row) for row in ball.tolist()} for ball in balls]
    assert len(found) == len(rows) == kind.length(space)
    np.testing.assert_array_equal(distance(every, rows, space.width), away.min(1))


def test_corners_differ_between_seeds_and_repeat():
    space = space_of([4, 6, 2, 4])
    drawn = [{tuple(row) for row in Corner().draw(space, seed).rows.tolist()} for seed in (1, 1, 2, 3)]
    assert drawn[0] == drawn[1]
    assert drawn[1] != drawn[2] != drawn[3]


def test_it_is_a_component():
    check_support(Corner(), space_of([3, 3, 3]))


@pytest.mark.parametrize(
    ("space", "kind"), [(SubsetSpace(modules=8, max_active=2), Corner()), (space_of([3, 3]), Corner(reach=0))]
)
def test_impossible_corners_are_refused(space, kind):
    with pytest.raises(BadInput):
        kind.draw(space, 0)
