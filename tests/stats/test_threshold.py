"""The size at which a curve reaches a threshold, and slopes with censored sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import optimize, stats

from recombine.errors import BadInput
from recombine.stats.threshold import Reached, censored_slope, power_law, reached

SIZES = [10.0, 20.0, 40.0, 80.0]


@pytest.mark.parametrize(
    "scores, expected",
    [
        ([0.1, 0.5, 0.9, 1.0], Reached(20.0, "no")),
        ([0.1, 0.4, 0.6, 1.0], Reached(20 * 2**0.5, "no")),
        ([0.1, 0.2, 0.3, 0.4], Reached(80.0, "right")),
        ([0.6, 0.7, 0.8, 0.9], Reached(10.0, "left")),
        ([0.5, 0.5, 0.5, 0.5], Reached(10.0, "left")),
        # A lucky point that later ones speak against does not count: 0.7 and 0.1 are pooled to 0.4.
        ([0.0, 0.7, 0.1, 0.6], Reached(40 * 2**0.5, "no")),
        ([0.7, 0.1, 0.1, 0.1], Reached(80.0, "right")),
    ],
)
def test_worked_examples(scores, expected):
    found = reached(SIZES, scores, 0.5)
    assert found.censored == expected.censored
    assert found.size == pytest.approx(expected.size)


curves = st.lists(st.floats(-1, 1), min_size=1, max_size=8)


@given(curves, st.floats(-1, 1), st.floats(0, 0.5), st.floats(0.1, 100))
@settings(derandomize=True, deadline=None)
def test_harder_thresholds_are_reached_later_and_units_do_not_matter(scores, threshold, more, unit):
    sizes = 2.0 ** np.arange(len(scores))
    easy, hard = reached(sizes, scores, threshold), reached(sizes, scores, threshold + more)
    assert sizes[0] <= easy.size <= hard.size * (1 + 1e-9) <= sizes[-1] * (1 + 2e-9)
    other = reached(unit * sizes, scores, threshold)
    assert other.censored == easy.censored
    assert other.size == pytest.approx(unit * easy.size)
    assert reached(sizes, np.sort(scores), np.max(scores)).censored != "right"


def test_bad_curves_are_refused():
    for sizes in ([10, 10, 20, 40], [0, 1, 2, 3], [4, 3, 2, 1]):
        with pytest.raises(BadInput, match="positive and ascend"):
            reached(sizes, [0, 1, 2, 3], 0.5)
    with pytest.raises(BadInput, match="finite"):
        reached(SIZES, [0, 1, 2, np.nan], 0.5)
    with pytest.raises(BadInput, match="finite number, got nan"):
        reached(SIZES, [0, 1, 2, 3], np.nan)


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=4, max_size=15), st.floats(0.5, 0.99))
@settings(derandomize=True, deadline=None)
def test_without_censoring_it_is_least_squares(points, level):
    x, y = (np.round(column, 3) for column in zip(*points, strict=True))
    x = x + np.arange(len(x))  # rarely all equal
    if np.ptp(x) < 1e-2 or np.ptp(y) < 1e-2:
        return
    ours, theirs = censored_slope(x, y, ["no"] * len(x), level), stats.linregress(x, y)
    assert ours.slope.estimate == pytest.approx(theirs.slope, rel=1e-6, abs=1e-8)
    assert ours.intercept == pytest.approx(theirs.intercept, rel=1e-6, abs=1e-6)
    assert ours.error == pytest.approx(theirs.stderr, rel=1e-5, abs=1e-6)
    half = stats.t.ppf((1 + level) / 2, len(x) - 2) * theirs.stderr
    assert ours.slope.high - ours.slope.estimate == pytest.approx(half, rel=1e-5, abs=1e-5)
    assert ours.censored == 0


def negative_likelihood(where, x, y, censored):
    """The likelihood from its definition, in intercept, slope and log spread."""
    line, spread = where[0] + where[1] * x, np.exp(where[2])
    parts = {
        "no": stats.norm.logpdf(y, line, spread),
        "right": stats.norm.logsf(y, line, spread),
        "left": stats.norm.logcdf(y, line, spread),
    }
    return -sum(parts[word][index] for index, word in enumerate(censored))


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_maximum_of_the_likelihood(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 3, size=14)
    hidden = 2 - 0.7 * x + 0.5 * rng.normal(size=14)
    censored = np.where(hidden > 1.8, "right", np.where(hidden < 0.3, "left", "no")).tolist()
    y = np.clip(hidden, 0.3, 1.8)
    found = optimize.minimize(
        negative_likelihood, [1.0, 0.0, 0.0], (x, y, censored), "Nelder-Mead", tol=1e-10, options={"maxiter": 5000}
    )
    ours = censored_slope(x, y, censored)
    assert [ours.intercept, ours.slope.estimate] == pytest.approx(found.x[:2], abs=1e-5)
    assert ours.censored == sum(word != "no" for word in censored) > 0
    # The error: from the curvature of the same likelihood, by finite differences.
    step, basis = 1e-4, np.eye(3)
    curvature = np.array(
        [
            [
                sum(
                    signs * negative_likelihood(found.x + step * (a * one + b * other), x, y, censored)
                    for a, b, signs in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
                )
                / (4 * step**2)
                for other in basis
            ]
            for one in basis
        ]
    )
    known = sum(word == "no" for word in censored)
    error = np.sqrt(np.linalg.inv(curvature)[1, 1] * known / (known - 2))
    assert ours.error == pytest.approx(error, rel=1e-3)
    # Units do not matter.
    scaled = censored_slope(10 * x - 4, 1000 * y + 7, censored)
    assert scaled.slope.estimate == pytest.approx(100 * ours.slope.estimate, rel=1e-6)
    assert scaled.error == pytest.approx(100 * ours.error, rel=1e-6)


def test_censored_points_count_and_dropping_them_is_biased():
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, 16)
    kept, dropped, covered = [], [], []
    for _ in range(300):
        hidden = x + 0.4 * rng.normal(size=16)
        beyond = hidden > 0.5
        fit = censored_slope(x, np.minimum(hidden, 0.5), np.where(beyond, "right", "no").tolist())
        kept.append(fit.slope.estimate)
        covered.append(fit.slope.low <= 1 <= fit.slope.high)
        dropped.append(stats.linregress(x[~beyond], hidden[~beyond]).slope)
    assert np.mean(kept) == pytest.approx(1, abs=0.05)
    assert np.mean(dropped) < 0.85
    assert np.mean(covered) >= 0.93


def test_an_exact_line():
    x, y = np.arange(5.0), 2 * np.arange(5.0) + 1
    agreeing = censored_slope(x, np.append(y[:4], 3), ["no"] * 4 + ["right"])
    assert (agreeing.slope.estimate, agreeing.error, agreeing.spread) == (pytest.approx(2), 0, 0)
    against = censored_slope(x, np.append(y[:4], 15), ["no"] * 4 + ["right"])
    assert against.slope.estimate > 2.1 and against.error > 0


def test_too_little_is_refused():
    for censored, x in ((["no", "no", "right", "right"], [1, 2, 3, 4]), (["no"] * 3 + ["left"], [1, 1, 1, 2])):
        with pytest.raises(BadInput, match="at least 3 uncensored points at 2 different x"):
            censored_slope(x, [1, 2, 3, 4], censored)
    with pytest.raises(BadInput, match="did you mean 'right'"):
        censored_slope([1, 2, 3, 4], [1, 2, 3, 4], ["no", "no", "no", "rihgt"])
    with pytest.raises(BadInput, match="4 points, but 3 entries"):
        censored_slope([1, 2, 3, 4], [1, 2, 3, 4], ["no"] * 3)


def test_a_power_law_is_a_line_of_logarithms() -> None:
    x = np.array([10, 14, 20] * 2)
    line = power_law(x, 3.0 * x**2.5, ["no"] * 6)
    assert line is not None and line.slope.estimate == pytest.approx(2.5)
    assert np.exp(line.intercept) == pytest.approx(3.0)
    assert power_law(x, 3.0 * x**2.5, ["right"] * 6) is None
