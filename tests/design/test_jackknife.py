"""The jackknife: pseudo-values of a statistic of all replicates together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from recombine.design.replicates import jackknife

SEEDS = range(5, 25)


def drawn(rows=1, seed=0):
    draw = np.random.default_rng(seed)
    replicate = np.repeat(SEEDS, rows)
    x = draw.standard_normal(len(replicate))
    return pd.DataFrame({"replicate": replicate, "x": x, "y": x + draw.standard_normal(len(x))})


def correlation(frame):
    return float(np.corrcoef(frame["x"], frame["y"])[0, 1])


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=9))
def test_of_a_mean_the_values_come_back(values):
    frame = pd.DataFrame({"replicate": range(len(values)), "x": values})
    found = jackknife(frame, lambda part: float(part["x"].mean()), range(len(values)), 1)
    np.testing.assert_allclose(found, values, atol=1e-8)


def test_the_interval_of_a_correlation_is_about_that_of_fisher():
    frame = drawn()
    found = jackknife(frame, correlation, SEEDS, 1)
    fisher = stats.pearsonr(frame["x"], frame["y"]).confidence_interval()
    assert found.mean() == pytest.approx(correlation(frame), abs=0.03)
    half = stats.t.ppf(0.975, len(SEEDS) - 1) * stats.sem(found)
    assert half == pytest.approx((fisher.high - fisher.low) / 2, rel=0.4)


def test_the_interval_holds_what_it_promises():
    """A normal pair with slope 1 and equal noise: the correlation is 1/sqrt(2)."""
    inside = []
    for seed in range(100):
        found = jackknife(drawn(seed=seed), correlation, SEEDS, 1)
        half = stats.t.ppf(0.975, len(SEEDS) - 1) * stats.sem(found)
        inside.append(abs(found.mean() - 0.5**0.5) <= half)
    assert 0.88 <= np.mean(inside) <= 0.99


def test_an_incomplete_replicate_takes_no_part():
    frame = drawn(rows=2)
    broken = frame.drop(index=frame.index[frame["replicate"] == 8][0])
    found = jackknife(broken, correlation, SEEDS, 2)
    assert np.flatnonzero(np.isnan(found)).tolist() == [3]
    without = frame[frame["replicate"] != 8]
    rest = jackknife(without, correlation, [seed for seed in SEEDS if seed != 8], 2)
    np.testing.assert_allclose(found[np.isfinite(found)], rest)


def test_one_replicate_alone_has_no_number():
    assert np.isnan(jackknife(drawn().head(1), correlation, SEEDS, 1)).all()
    assert np.isnan(jackknife(drawn().head(0), correlation, SEEDS, 1)).all()
