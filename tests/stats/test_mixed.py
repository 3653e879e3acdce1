"""Slopes within crossed groups, against regressions with dummy variables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.stats.columns import codes
from recombine.stats.mixed import within, within_slope


def crossed(rng, replicates=12, sizes=4, each=2, slope=0.5, differing=0.3):
    """Points of replicates (each with a teacher) at sizes that move both x and y; slopes differ."""
    replicate = np.repeat(np.arange(replicates), sizes * each)
    size = np.tile(np.repeat(np.arange(sizes), each), replicates)
    x = rng.normal(size=len(size)) + size + rng.normal(size=replicates)[replicate]
    slopes = slope + differing * rng.normal(size=replicates)
    levels = size**2 + 3 * rng.normal(size=replicates)[replicate]
    return x, slopes[replicate] * x + levels + 0.5 * rng.normal(size=len(size)), size, replicate


def dummies(*factors):
    return np.concatenate([(factor[:, None] == np.unique(factor)).astype(float) for factor in factors], axis=1)


def ordinary(y, *columns):
    return np.linalg.lstsq(np.column_stack(columns), y, rcond=None)[0]


@given(st.integers(0, 10_000), st.integers(1, 3))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_within_equals_residuals_of_dummy_regression(seed, number):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=40)
    factors = [rng.integers(3 + index, size=40) for index in range(number)]
    design = dummies(*factors)
    expected = values - design @ ordinary(values, design)
    found = within(values, [codes(factor, 40)[0] for factor in factors])
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_the_slope_is_that_with_dummies(seed):
    rng = np.random.default_rng(seed)
    x, y, size, replicate = crossed(rng)
    keep = rng.uniform(size=len(x)) < 0.8  # unbalanced
    x, y, size, replicate = (column[keep] for column in (x, y, size, replicate))
    covariate = rng.normal(size=len(x)) + 0.3 * x
    factors = {"size": size, "teacher": replicate}
    found = within_slope(x, y, factors, replicate)
    assert found.slope.estimate == pytest.approx(ordinary(y, x, dummies(size, replicate))[0], abs=1e-8)
    found = within_slope(x, y, factors, replicate, [covariate])
    assert found.slope.estimate == pytest.approx(ordinary(y, x, covariate, dummies(size, replicate))[0], abs=1e-8)
    plain = within_slope(x, y, {}, replicate)
    assert plain.slope.estimate == pytest.approx(ordinary(y, x, np.ones(len(x)))[0])


def test_the_error_is_that_of_leaving_replicates_out():
    """Exactly so where the factor has levels of its own in each replicate."""
    x, y, _, replicate = crossed(np.random.default_rng(0))
    found = within_slope(x, y, {"teacher": replicate}, replicate)
    without = [
        ordinary(y[inside], x[inside], dummies(replicate[inside]))[0]
        for inside in (replicate != left_out for left_out in range(12))
    ]
    assert found.error == pytest.approx(np.sqrt(((np.array(without) - found.slope.estimate) ** 2).sum()))
    assert found.slope.replicates == 12


@given(st.integers(0, 1000), st.floats(0.1, 10), st.floats(-5, 5))
@settings(derandomize=True, deadline=None, max_examples=25)
def test_levels_do_not_matter_and_units_scale(seed, scale, shift):
    rng = np.random.default_rng(seed)
    x, y, size, replicate = crossed(rng, 4, 3)
    factors = {"size": size, "teacher": replicate}
    first = within_slope(x, y, factors, replicate)
    moved = within_slope(x + shift * size, scale * y + shift * replicate, factors, replicate.astype(str))
    assert moved.slope.estimate == pytest.approx(scale * first.slope.estimate, abs=1e-7)
    assert moved.error == pytest.approx(scale * first.error, abs=1e-7)


@pytest.mark.parametrize("differing", [0.0, 0.3])
def test_intervals_cover(differing):
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(500):
        x, y, size, replicate = crossed(rng, differing=differing)
        found = within_slope(x, y, {"size": size, "teacher": replicate}, replicate).slope
        inside.append(found.low <= 0.5 <= found.high)
    assert 0.925 <= np.mean(inside) <= 0.985


def test_a_common_cause_is_taken_out():
    rng = np.random.default_rng(0)
    replicate, size = np.repeat(np.arange(20), 8), np.tile(np.arange(8), 20)
    x, y = (size + 0.3 * rng.normal(size=160) for _ in range(2))
    assert within_slope(x, y, {}, replicate).slope.low > 0.9
    found = within_slope(x, y, {"size": size}, replicate).slope
    assert found.low < 0 < found.high


def test_bad_input_is_refused():
    x, y, size, replicate = crossed(np.random.default_rng(0))
    with pytest.raises(BadInput, match="x does not vary within size"):
        within_slope(3.3 * size, y, {"size": size}, replicate)
    with pytest.raises(BadInput, match="at least 2 of them, got 1"):
        within_slope(x, y, {"size": size}, np.zeros(len(x)))
    with pytest.raises(BadInput, match="single replicate only"):
        within_slope(np.where(replicate == 0, x, 0), y, {"teacher": replicate}, replicate)
    with pytest.raises(BadInput, match="'size' has shape"):
        within_slope(x, y, {"size": size[:-1]}, replicate)
    chain = np.arange(600)
    with pytest.raises(BadInput, match="leave a factor out"):
        within_slope(chain**2, chain, {"one": chain // 2, "other": (chain + 1) // 2}, chain)
