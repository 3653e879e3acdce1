import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recombine.figures.axes import NumericAxis, dodge, even_ticks, extent, finite, log_ticks, separated


@given(st.lists(st.floats(-1e3, 1e3), max_size=12), st.floats(1, 50))
def test_words_are_moved_apart_and_keep_their_order_and_middle(places, gap):
    moved = separated(places, gap)
    ranked = sorted(range(len(places)), key=lambda at: places[at])
    for one, other in itertools.pairwise(ranked):
        assert moved[other] - moved[one] >= gap - 1e-6
    assert sum(moved) == pytest.approx(sum(places), abs=1e-6)


def test_words_that_have_room_stay():
    assert separated([30, 0, 100], 16) == [30, 0, 100]
    assert separated([10, 10], 16) == [2, 18]


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


@pytest.mark.parametrize("log", [True, False])
def test_a_few_pixels_beside_a_value(log):
    axis = NumericAxis((10, 40, 160), log, 500)
    moved = axis.shifted([10, 40, 160], [7, -3, 0])
    assert [axis.pixel(value) for value in moved] == pytest.approx(
        [axis.pixel(10) + 7, axis.pixel(40) - 3, axis.pixel(160)]
    )
    assert 0 < axis.pixel(10) < axis.pixel(160) < 500


def test_equal_ratios_stand_equally_far_on_a_logarithmic_axis():
    axis = NumericAxis((10, 20, 40, 80), True, 300)
    assert np.ptp(np.diff([axis.pixel(value) for value in axis.values])) == pytest.approx(0)
    assert axis.spacing() == pytest.approx(axis.pixel(20) - axis.pixel(10))


@pytest.mark.parametrize("log", [True, False])
def test_one_value_has_an_axis(log):
    low, high = NumericAxis((3,), log, 300).ends
    assert low < 3 < high


def test_few_values_are_the_ticks_and_crowded_ones_are_not():
    assert NumericAxis((10, 20, 40), True, 300).encoding("n").to_dict()["axis"]["values"] == [10, 20, 40]
    crowded = NumericAxis(tuple(range(1, 200)), True, 300).encoding("n").to_dict()["axis"]["values"]
    assert crowded == [1, 3, 10, 30, 100]
    assert "values" not in NumericAxis((1, 2, 1000), False, 300).encoding("n").to_dict()["axis"]


@given(st.floats(-10, 10), st.floats(0.01, 100))
def test_even_ticks_lie_within_the_axis_and_are_few(low, span):
    ticks = even_ticks(low, low + span)
    assert 2 <= len(ticks) <= 6
    assert all(low - 1e-6 <= tick <= low + span + 1e-6 for tick in ticks)
    assert np.ptp(np.diff(ticks)) < 1e-6


def test_ticks_of_a_score():
    assert even_ticks(-0.25, 1.03) == [-0.25, 0, 0.25, 0.5, 0.75, 1]
    assert log_ticks(0.9, 1e6) == [1, 10, 100, 1000, 1e4, 1e5, 1e6]


def test_series_stand_to_both_sides():
    assert dodge(1, 6, 40) == [0]
    assert dodge(3, 6, 40) == [-6, 0, 6]
    assert dodge(9, 6, 20)[0] == -10
