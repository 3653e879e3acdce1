import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recombine.figures.along import Along, even_ticks, log_ticks, sides


@pytest.mark.parametrize("log", [True, False])
def test_a_few_pixels_beside_a_value(log):
    along = Along((10, 40, 160), log, 500)
    moved = along.aside([10, 40, 160], [7, -3, 0])
    assert [along.pixel(value) for value in moved] == pytest.approx(
        [along.pixel(10) + 7, along.pixel(40) - 3, along.pixel(160)]
    )
    assert 0 < along.pixel(10) < along.pixel(160) < 500


def test_equal_ratios_stand_equally_far_on_a_logarithmic_axis():
    along = Along((10, 20, 40, 80), True, 300)
    assert np.ptp(np.diff([along.pixel(value) for value in along.values])) == pytest.approx(0)
    assert along.spacing() == pytest.approx(along.pixel(20) - along.pixel(10))


@pytest.mark.parametrize("log", [True, False])
def test_one_value_has_an_axis(log):
    low, high = Along((3,), log, 300).ends
    assert low < 3 < high


def test_few_values_are_the_ticks_and_crowded_ones_are_not():
    assert Along((10, 20, 40), True, 300).encoding("n").to_dict()["axis"]["values"] == [10, 20, 40]
    crowded = Along(tuple(range(1, 200)), True, 300).encoding("n").to_dict()["axis"]["values"]
    assert crowded == [1, 3, 10, 30, 100]
    assert "values" not in Along((1, 2, 1000), False, 300).encoding("n").to_dict()["axis"]


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
    assert sides(1, 6, 40) == [0]
    assert sides(3, 6, 40) == [-6, 0, 6]
    assert sides(9, 6, 20)[0] == -10
