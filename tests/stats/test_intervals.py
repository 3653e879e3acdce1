"""Intervals: exact where a formula exists, with the right coverage in simulations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from recombine.errors import BadInput
from recombine.stats.intervals import bootstrap_interval, mean_and_error, t_bounds, t_interval, walsh_bounds

finite = st.floats(-1e6, 1e6, allow_nan=False)


def median(samples):
    return np.median(samples, axis=1)


def slope(samples):
    x, y = np.moveaxis(samples - samples.mean(1, keepdims=True), -1, 0)
    return (x * y).sum(1) / (x**2).sum(1)


def pooled_r2(samples):
    return 1 - samples[..., 0].sum(1) / samples[..., 1].sum(1)


def spread(samples):
    return samples.std(1, ddof=1)


def normal(rng, n):
    return rng.normal(size=n)


def skewed(rng, n):
    return rng.lognormal(0, 0.5, size=n)  # median 1, skewness 1.75


def line(rng, n):
    x = rng.normal(size=n)
    return np.stack([x, 0.5 * x + rng.normal(size=n)], axis=1)


def errors_and_variances(rng, n):
    variance = rng.gamma(8, 1 / 8, size=n)
    return np.stack([0.3 * variance * rng.gamma(4, 1 / 4, size=n), variance], axis=1)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [2, 4, 12, 100])
def test_t_interval_is_that_of_the_t_test(n, level):
    values = np.random.default_rng(n).normal(3, 2, size=n)
    ours = t_interval(values, level)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(level)
    np.testing.assert_allclose([ours.low, ours.high], [theirs.low, theirs.high], rtol=1e-10)
    assert ours.estimate == pytest.approx(values.mean())
    assert (ours.replicates, ours.level, ours.method) == (n, level, "t")


@given(value=finite, n=st.integers(2, 40))
@settings(derandomize=True, deadline=None)
def test_equal_values_give_a_point(value, n):
    interval = t_interval([value] * n)
    assert interval.low == interval.estimate == interval.high == value
    interval = bootstrap_interval([value] * n, median, resamples=20)
    assert interval.low == interval.estimate == interval.high == value


@pytest.mark.parametrize(
    "values, said",
    [
        ([], "at least 2 replicates, got 0"),
        ([1.0], "at least 2 replicates, got 1"),
        (1.0, "at least 2 replicates, got 0"),
        ([1.0, np.nan, 2.0], "1 of 3 replicates are not finite"),
        ([1.0, np.inf, np.nan], "2 of 3 replicates are not finite"),
    ],
)
def test_bad_values_are_refused(values, said):
    with pytest.raises(BadInput, match=said):
        t_interval(values)
    with pytest.raises(BadInput, match=said):
        bootstrap_interval(values, median)


def test_other_bad_input_is_refused():
    with pytest.raises(BadInput, match="between 0 and 1, got 95"):
        t_interval([1.0, 2.0], level=95)
    with pytest.raises(BadInput, match="average within each replicate"):
        t_interval(np.ones((4, 2)))
    with pytest.raises(BadInput, match="one number per sample"):
        bootstrap_interval([1.0, 2.0, 3.0], lambda samples: np.median(samples, axis=-1, keepdims=True))
    with pytest.raises(BadInput, match="is nan, not a finite number"):
        bootstrap_interval([0.0, 0.0], lambda samples: np.full(len(samples), np.nan))
    with pytest.raises(BadInput, match=r"not finite in .* resamples"):  # two points: half the lines have no slope
        bootstrap_interval([[0.0, 0.0], [1.0, 1.0]], slope)


@pytest.mark.parametrize("n", [6, 8, 12, 30])
def test_the_signed_rank_interval_is_that_of_wilcoxon(n):
    values = np.random.default_rng(n).normal(0.3, 1, size=n)
    low, high = walsh_bounds(values)
    for outside, inside in ((low - 1e-9, low + 1e-9), (high + 1e-9, high - 1e-9)):
        assert stats.wilcoxon(values - outside, method="exact").pvalue <= 0.05
        assert stats.wilcoxon(values - inside, method="exact").pvalue > 0.05


def test_few_replicates_have_the_range_as_their_signed_rank_interval():
    ends = walsh_bounds(np.array([[0.3, 0.1, 0.2], [1.0, 2.0, 3.0]]))
    np.testing.assert_array_equal(ends, [[0.1, 1.0], [0.3, 3.0]])


def test_bootstrap_is_set_by_its_seed():
    values = line(np.random.default_rng(0), 12)
    first, again, other = (bootstrap_interval(values, slope, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first.low < first.estimate < first.high
    assert (other.low, other.high) == pytest.approx((first.low, first.high), abs=0.15)


@given(st.lists(finite, min_size=2, max_size=30), st.integers(0, 5))
@settings(derandomize=True, deadline=None, max_examples=50)
def test_bootstrap_widens_with_its_level_and_stays_in_range(values, seed):
    narrow, wide = (bootstrap_interval(values, median, level, seed, resamples=99) for level in (0.8, 0.99))
    assert min(values) <= wide.low <= narrow.low <= narrow.high <= wide.high <= max(values)


SHAPES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewness 1": lambda rng, shape: rng.gamma(4, size=shape) - 4,
}


@pytest.mark.parametrize("n, shape", [(4, "normal"), (12, "normal"), (12, "skewness 1")])
def test_t_interval_covers(n, shape):
    mean, error = mean_and_error(SHAPES[shape](np.random.default_rng(n), (40_000, n)))
    low, high = t_bounds(mean, error, n)
    assert 0.93 <= np.mean((low <= 0) & (high >= 0)) <= 0.96


def bootstrap_coverage(draw, statistic, truth, n, trials):
    rng = np.random.default_rng(n)
    hits = 0
    for _ in range(trials):
        interval = bootstrap_interval(draw(rng, n), statistic, resamples=999)
        hits += interval.low <= truth <= interval.high
    return hits / trials


@pytest.mark.parametrize(
    "draw, statistic, truth, n",
    [
        pytest.param(normal, median, 0.0, 12, id="median"),
        pytest.param(skewed, median, 1.0, 12, id="median, skewed"),
        pytest.param(line, slope, 0.5, 12, id="slope"),
        pytest.param(errors_and_variances, pooled_r2, 0.7, 20, id="pooled R2"),
    ],
)
def test_bootstrap_covers_where_it_is_recommended(draw, statistic, truth, n):
    assert bootstrap_coverage(draw, statistic, truth, n, trials=700) >= 0.93


def test_bootstrap_does_not_cover_a_spread():
    """Where the documentation says that it fails, it does; a method that mends this may change both."""
    assert bootstrap_coverage(normal, spread, 1.0, n=12, trials=300) < 0.9
