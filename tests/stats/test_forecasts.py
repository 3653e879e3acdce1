"""Baselines of forecasts, which scaling laws beat."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from recombine.errors import BadInput
from recombine.stats.forecasts import COVERS, last_value, log_linear
from recombine.stats.scaling_law import fit_law, forecast


def test_last_value_is_that_of_the_nearest_runs():
    number, loss = [10, 20, 40, 40], [4.0, 3.0, 2.0, 1.0]
    assert last_value(loss, number, at=160) == pytest.approx(1.5)
    parameters = [100, 100, 100, 400]
    assert last_value(loss, number, parameters, at=160, at_parameters=1600) == pytest.approx(1.0)
    with pytest.raises(BadInput, match="or for none"):
        last_value(loss, number, parameters, at=160)


@given(st.floats(0.1, 10), st.floats(-2, 2), st.floats(-1, 1), st.floats(1, 1e4))
@settings(derandomize=True, deadline=None)
def test_log_linear_follows_a_power_law(amplitude, first, second, at):
    number, parameters = np.array([10.0, 20, 40, 80, 160]), np.array([1.0, 3, 2, 5, 4])
    loss = amplitude * number**first
    assert log_linear(loss, number, at=at) == pytest.approx(amplitude * at**first, rel=1e-6)
    both = loss * parameters**second
    expected = amplitude * at**first * 7**second
    assert log_linear(both, number, parameters, at=at, at_parameters=7) == pytest.approx(expected, rel=1e-6)


def test_log_linear_is_least_squares():
    rng = np.random.default_rng(0)
    number, loss = rng.uniform(1, 100, size=9), rng.uniform(1, 2, size=9)
    line = stats.linregress(np.log(number), np.log(loss))
    assert log_linear(loss, number, at=500) == pytest.approx(np.exp(line.intercept + line.slope * np.log(500)))
    with pytest.raises(BadInput, match="2 different sizes"):
        log_linear([1, 2], [3, 3], at=5)


def test_laws_beat_their_baselines_on_laws():
    """From fitted sizes to 4 times the largest, over 24 different laws."""
    rng = np.random.default_rng(0)
    number = np.repeat(np.geomspace(20, 1280, 7), 2)
    actual, forecasts, last, line = [], [], [], []
    for seed in range(24):
        floor, amplitude, exponent = rng.uniform(0.02, 0.1), rng.uniform(1, 4), rng.uniform(0.4, 0.9)

        def loss(sizes, floor=floor, amplitude=amplitude, exponent=exponent):
            return (floor + amplitude * sizes**-exponent) * np.exp(0.03 * rng.normal(size=len(sizes)))

        known, at = loss(number), 4.0 * 1280
        actual.append(loss(np.array([at]))[0])
        forecasts.append(forecast(fit_law(known, number, resamples=150, seed=seed), at))
        last.append(last_value(known, number, at=at))
        line.append(log_linear(known, number, at=at))
    errors = [
        np.mean((np.log(predicted) - np.log(actual)) ** 2)
        for predicted in ([each.median for each in forecasts], last, line)
    ]
    assert errors[0] < 0.5 * min(errors[1:])
    inside = [each.low <= value <= each.high for each, value in zip(forecasts, actual, strict=True)]
    assert COVERS[0] <= np.mean(inside) <= COVERS[1]
