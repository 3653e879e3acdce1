"""Corrections, against their definitions and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from recombine.errors import BadInput
from recombine.stats.correction import benjamini_hochberg, holm

unit = st.floats(0, 1, allow_nan=False)
p_values = st.lists(unit | st.sampled_from([0.0, 0.01, 0.05, 1.0]), min_size=1, max_size=12)


def holm_rejects(p, alpha):
    """Holm by its definition: from the smallest p on, stop at the first that misses its own threshold."""
    rejected = np.zeros(len(p), dtype=bool)
    for step, index in enumerate(np.argsort(p, kind="stable")):
        if p[index] > alpha / (len(p) - step):
            break
        rejected[index] = True
    return rejected


def hochberg_rejects(p, alpha):
    """Benjamini and Hochberg by their definition: all up to the largest p that meets its own threshold."""
    meeting = [value for value in p if value <= alpha * sum(other <= value for other in p) / len(p)]
    return np.asarray(p) <= max(meeting, default=-1)


@given(p_values, st.floats(0.001, 0.5))
@settings(derandomize=True, deadline=None)
def test_adjusted_values_reject_as_the_definitions_do(p, alpha):
    for adjust, rejects in ((holm, holm_rejects), (benjamini_hochberg, hochberg_rejects)):
        adjusted = adjust(p)
        apart = ~np.isclose(adjusted, alpha, rtol=1e-9)  # at equality rounding may decide either way
        np.testing.assert_array_equal((adjusted <= alpha)[apart], rejects(p, alpha)[apart])


@given(p_values)
@settings(derandomize=True, deadline=None)
def test_benjamini_hochberg_is_that_of_scipy(p):
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p), rtol=1e-12)


@given(p_values, st.randoms(use_true_random=False))
@settings(derandomize=True, deadline=None)
def test_order_and_bounds(p, random):
    for adjust in (holm, benjamini_hochberg):
        shuffled = random.sample(range(len(p)), len(p))
        np.testing.assert_array_equal(adjust(p)[shuffled], adjust([p[index] for index in shuffled]))
    assert np.all(holm(p) >= benjamini_hochberg(p))
    assert np.all(benjamini_hochberg(p) >= p)
    assert np.all(holm(p) <= 1)


def test_worked_examples():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    np.testing.assert_allclose(benjamini_hochberg([0.01, 0.04, 0.03]), [0.03, 0.04, 0.04])
    assert holm([]).shape == benjamini_hochberg([]).shape == (0,)
    assert holm([0.2]) == benjamini_hochberg([0.2]) == [0.2]


@pytest.mark.parametrize("p", [[0.1, np.nan], [-0.1], [1.1], [[0.1], [0.2]]])
def test_bad_p_values_are_refused(p):
    for adjust in (holm, benjamini_hochberg):
        with pytest.raises(BadInput, match="from 0 to 1"):
            adjust(p)


def test_benjamini_hochberg_controls_the_share_of_false_findings():
    """30 questions, of which 10 have a real effect: of what is found, 5 % times 20/30 is false on average."""
    rng = np.random.default_rng(0)
    shift = np.repeat([0.0, 3.0], [20, 10])
    shares = []
    for z in rng.normal(shift, size=(2000, 30)):
        found = benjamini_hochberg(2 * stats.norm.sf(np.abs(z))) <= 0.05
        shares.append(found[:20].sum() / max(found.sum(), 1))
    assert 0.02 <= np.mean(shares) <= 0.04
