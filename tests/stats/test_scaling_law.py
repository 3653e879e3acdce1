"""Scaling laws: recovered from data, equal to scipy's fits, with intervals that cover."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import optimize

from recombine.errors import BadInput
from recombine.stats.scaling_law import KNEE, fit_law, forecast, needed

NUMBER = np.geomspace(20, 1280, 7)
GRID = tuple(column.ravel() for column in np.meshgrid(np.geomspace(30, 2000, 6), np.geomspace(1e3, 1e6, 5)))


def truth(number, parameters=None):
    return 0.05 + 2 * number**-0.5 + (0 if parameters is None else 30 * parameters**-0.6)


def noisy(rng, spread, *sizes):
    return truth(*sizes) * np.exp(spread * rng.normal(size=len(sizes[0])))


def test_a_law_without_noise_is_recovered():
    law = fit_law(truth(NUMBER), NUMBER)
    assert (law.floor, *law.data) == pytest.approx((0.05, 2, 0.5), rel=1e-5)
    assert law.size is None and law.spread < 1e-6
    law = fit_law(truth(*GRID), *GRID)
    assert law.size is not None
    assert (law.floor, *law.data, *law.size) == pytest.approx((0.05, 2, 0.5, 30, 0.6), rel=1e-4)
    assert forecast(law, 8000, 4e6).median == pytest.approx(truth(8000, 4e6), rel=1e-5)


@given(st.floats(0.01, 0.3), st.floats(0.5, 5), st.floats(0.3, 1.2), st.floats(0.01, 100))
@settings(derandomize=True, deadline=None, max_examples=25)
def test_any_law_is_recovered_in_any_unit(floor, amplitude, exponent, unit):
    loss = floor + amplitude * NUMBER**-exponent
    law = fit_law(unit * loss, NUMBER, resamples=2)
    assert np.array([law.floor, law.data[0]]) / unit == pytest.approx([floor, amplitude], rel=1e-3)
    assert law.data[1] == pytest.approx(exponent, rel=1e-3)


def test_no_floor_is_found_where_there_is_none():
    law = fit_law(3 * NUMBER**-0.7, NUMBER)
    assert law.floor < 1e-3
    assert law.data == pytest.approx((3, 0.7), rel=1e-2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [(NUMBER,), GRID], ids=["N", "N and P"])
def test_the_cost_is_as_small_as_that_of_scipy(seed, sizes):
    loss = noisy(np.random.default_rng(seed), 0.1, *sizes)

    def residuals(where):
        total = np.exp(where[0])
        for size, amplitude, power in zip(sizes, where[1::2], where[2::2], strict=True):
            total = total + np.exp(amplitude) * size ** -np.exp(power)
        return np.log(total) - np.log(loss)

    starts = [[np.log(floor)] + [1.0, np.log(power)] * len(sizes) for floor in (0.01, 0.1) for power in (0.3, 0.8)]
    theirs = min(
        optimize.least_squares(residuals, start, loss="huber", f_scale=KNEE, max_nfev=2000).cost for start in starts
    )
    law = fit_law(loss, *sizes, resamples=2)
    terms = [law.data] + ([] if law.size is None else [law.size])
    ours = residuals([np.log(law.floor)] + [part for a, b in terms for part in (np.log(a), np.log(b))])
    size = np.abs(ours)
    cost = np.where(size <= KNEE, ours**2 / 2, KNEE * (size - KNEE / 2)).sum()
    assert cost <= theirs * (1 + 1e-4)


def test_one_bad_run_does_not_bend_the_law():
    number = np.repeat(NUMBER, 3)
    loss = noisy(np.random.default_rng(0), 0.01, number)
    loss[-1] *= 5
    robust, plain = fit_law(loss, number), fit_law(loss, number, knee=100.0)
    assert forecast(robust, 5000).median == pytest.approx(truth(5000), rel=0.1)
    assert forecast(plain, 5000).median > 1.3 * truth(5000)


@pytest.mark.parametrize("repeats, spread", [(1, 0.05), (3, 0.1)])
def test_intervals_cover_four_times_further_out(repeats, spread):
    rng = np.random.default_rng(repeats)
    number = np.repeat(NUMBER, repeats)
    inside = []
    for seed in range(50):
        said = forecast(fit_law(noisy(rng, spread, number), number, resamples=100, seed=seed), 4 * 1280)
        came = noisy(rng, spread, np.full(5, 4.0 * 1280))
        inside.append(np.mean((said.low <= came) & (came <= said.high)))
    assert 0.7 <= np.mean(inside) <= 0.9


def test_forecasts_are_refused_too_far_out():
    law = fit_law(noisy(np.random.default_rng(0), 0.02, *GRID), *GRID, resamples=100)
    assert forecast(law, 4 * 2000, 4e6).low > 0
    for sizes in ((8001, 1e6), (2000, 4.1e6)):
        with pytest.raises(BadInput, match="more than 4 times"):
            forecast(law, *sizes)
        assert forecast(law, *sizes, beyond=True).median > 0
    with pytest.raises(BadInput, match="give the number of parameters"):
        forecast(law, 100)
    with pytest.raises(BadInput, match="leave parameters out"):
        forecast(fit_law(truth(NUMBER), NUMBER, resamples=2), 100, 1e3)
    with pytest.raises(BadInput, match="Sizes must be positive"):
        forecast(law, -1, 1e3)
    with pytest.raises(BadInput, match="between 0 and 1"):
        forecast(law, 100, 1e3, level=80)


def test_wider_levels_give_wider_forecasts():
    law = fit_law(noisy(np.random.default_rng(0), 0.05, NUMBER), NUMBER)
    narrow, wide = (forecast(law, 2000, level=level) for level in (0.5, 0.95))
    assert wide.low < narrow.low < narrow.median == wide.median < narrow.high < wide.high


def test_needed_inverts_a_forecast():
    number = np.repeat(NUMBER, 3)
    law = fit_law(noisy(np.random.default_rng(1), 0.01, number), number)
    found = needed(law, truth(3000.0))
    assert found.status == "reachable"
    assert found.low < 3000 < found.high
    assert law.floor + law.data[0] * found.number ** -law.data[1] == pytest.approx(truth(3000.0))
    assert needed(law, 1.0).status == "already reached"
    below = needed(law, 0.02)
    assert (below.status, below.number, below.high) == ("below the floor", np.inf, np.inf)
    with pytest.raises(BadInput, match=r"fitted up to 1280 and extrapolates up to 5120"):
        needed(law, truth(20_000.0))
    guess = needed(law, truth(20_000.0), beyond=True)
    assert guess.number == pytest.approx(20_000, rel=0.5)
    with pytest.raises(BadInput, match="positive loss"):
        needed(law, -1)


def test_needed_depends_on_the_parameters():
    law = fit_law(truth(*GRID), *GRID, resamples=50)
    numbers = [needed(law, 0.12, parameters).number for parameters in (1e5, 1e6)]
    assert [truth(number, parameters) for number, parameters in zip(numbers, (1e5, 1e6), strict=True)] == (
        pytest.approx([0.12] * 2, rel=1e-4)
    )
    assert numbers[0] > numbers[1]
    # With few parameters the floor is higher than E.
    assert needed(law, 0.12, 1e4).status == "below the floor"


def test_an_interval_that_ends_beyond_the_reach_is_open():
    law = fit_law(noisy(np.random.default_rng(0), 0.05, NUMBER), NUMBER)
    found = needed(law, law.floor + law.data[0] * 4500 ** -law.data[1])
    assert found.number == pytest.approx(4500) and found.high == np.inf
    assert needed(law, 0.01).low == 5120  # more than may be asked


def test_bad_points_are_refused():
    with pytest.raises(BadInput, match="At least 4 points"):
        fit_law([1, 2, 3], [1, 2, 3])
    with pytest.raises(BadInput, match="'loss' must be positive"):
        fit_law([0, 1, 2, 3], [1, 2, 3, 4])
    with pytest.raises(BadInput, match="2 different values"):
        fit_law([4, 3, 2, 1], [1, 1, 2, 2])
    with pytest.raises(BadInput, match="leave parameters out"):
        fit_law(truth(NUMBER), NUMBER, np.ones(7))


def test_the_seed_sets_the_interval():
    loss = noisy(np.random.default_rng(0), 0.05, NUMBER)
    first, again, other = (forecast(fit_law(loss, NUMBER, seed=seed), 2000) for seed in (1, 1, 2))
    assert first == again != other
