import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recombine.figures.extent import extent, finite, spread


@given(st.lists(st.floats(-1e3, 1e3), max_size=12), st.floats(1, 50))
def test_words_are_moved_apart_and_keep_their_order_and_middle(places, gap):
    moved = spread(places, gap)
    ranked = sorted(range(len(places)), key=lambda at: places[at])
    for one, other in itertools.pairwise(ranked):
        assert moved[other] - moved[one] >= gap - 1e-6
    assert sum(moved) == pytest.approx(sum(places), abs=1e-6)


def test_words_that_have_room_stay():
    assert spread([30, 0, 100], 16) == [30, 0, 100]
    assert spread([10, 10], 16) == [2, 18]


def test_an_axis_shows_the_data_and_as_much_of_the_bars_as_is_sensible():
    low, high = extent([0, 1], [-0.1, 1.2])
    assert low < -0.1 and high > 1.2
    low, high = extent([0, 1], [-50, 1.2])
    assert -1 < low < 0
    assert extent([], []) == (0.0, 1.0)
    low, high = extent([2.0, math.nan, math.inf])
    assert low < 2 < high
    low, high = extent([1e-3, 10, 0, -1], log=True)
    assert 0 < low < 1e-3 and high > 10


def test_finite():
    assert finite([1, None, math.nan, math.inf, 2]) == [1.0, 2.0]
