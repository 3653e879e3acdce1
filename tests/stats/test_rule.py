"""The rule: against a slow implementation of its definition, with error rates as promised."""

from __future__ import annotations

import functools
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import stats

from recombine.stats.intervals import mean_and_error
from recombine.stats.rule import Direction, Outcome, decide

DIRECTIONS = get_args(Direction)
MARGIN = 0.5

directions = st.sampled_from(DIRECTIONS)
means = st.floats(-3, 3)
errors = st.floats(0.001, 2)
counts = st.integers(2, 30)
margins = st.floats(0, 2)


def slow_word(direction, low, high, margin):
    """The table of the design, read out case by case."""
    if direction == "above":
        return "supported" if low > margin else "contradicted" if high < margin else "inconclusive"
    if direction == "below":
        return "supported" if high < margin else "contradicted" if low > margin else "inconclusive"
    if -margin <= low and high <= margin:
        return "equivalent"
    side = "over" if low > margin else "under" if high < -margin else None
    if side is None:
        return "inconclusive"
    if direction == "equivalent":
        return "contradicted"
    return "supported" if (side == "over") == (direction == "greater") else "contradicted"


def interval(mean, error, n, alpha):
    return stats.t.interval(1 - alpha, n - 1, loc=mean, scale=error)


@given(directions, means, errors, counts, margins)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_outcomes_and_p_follow_the_definition(direction, mean, error, n, margin):
    found = decide(direction, mean, error, n, margin)
    assert found.outcome == slow_word(direction, found.low, found.high, margin)
    np.testing.assert_allclose([found.low, found.high], interval(mean, error, n, 0.05), rtol=1e-9, atol=1e-12)
    # p is the smallest alpha that still gives the word (the wanted one where there is none).
    word = str(found.outcome)
    if word == "inconclusive":
        word = "equivalent" if direction == "equivalent" else "supported"
    else:
        assert found.p <= 0.05 + 1e-9
    assume(1e-9 < found.p < 1 - 1e-6)
    assert slow_word(direction, *interval(mean, error, n, found.p * (1 + 1e-6)), margin) == word
    assert slow_word(direction, *interval(mean, error, n, found.p * (1 - 1e-6)), margin) != word


@given(directions, means, means)
@settings(derandomize=True, deadline=None)
def test_without_variance_the_interval_is_a_point(direction, mean, margin):
    margin = margin if direction in ("above", "below") else abs(margin)
    found = decide(direction, mean, 0.0, 5, margin)
    assert found.low == found.high == mean
    assert found.outcome == slow_word(direction, mean, mean, margin)
    assert found.p == (1 if found.outcome == "inconclusive" else 0)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_without_variance_on_the_margin(direction):
    found = decide(direction, MARGIN, 0.0, 5, MARGIN)
    assert found.outcome == ("inconclusive" if direction in ("above", "below") else "equivalent")


@given(means, errors, counts, margins)
@settings(derandomize=True, deadline=None)
def test_mirror_images(mean, error, n, margin):
    for one, other, theirs in (("greater", "less", margin), ("above", "below", -margin)):
        first, second = decide(one, mean, error, n, margin), decide(other, -mean, error, n, theirs)
        assert (first.outcome, first.p) == (second.outcome, second.p)
        assert (first.low, first.high) == (-second.high, -second.low)
    first, second = (decide("equivalent", sign * mean, error, n, margin) for sign in (1, -1))
    assert (first.outcome, first.p) == (second.outcome, second.p)


@given(st.sampled_from(["greater", "less", "equivalent"]), means, errors, counts, margins, margins)
@settings(derandomize=True, deadline=None)
def test_a_wider_margin_only_weakens(direction, mean, error, n, margin, more):
    """It never turns a finding round, and only ever moves words towards equivalence."""
    narrow, wide = (str(decide(direction, mean, error, n, m).outcome) for m in (margin, margin + more))
    allowed = {
        "supported": {"supported", "inconclusive", "equivalent"},
        "contradicted": {"contradicted", "inconclusive", "equivalent"},
        "inconclusive": {"inconclusive", "equivalent"},
        "equivalent": {"equivalent"},
    }
    assert wide in allowed[narrow]


@given(directions, means, errors, counts, margins, st.integers(-20, 20))
@settings(derandomize=True, deadline=None)
def test_units_do_not_matter(direction, mean, error, n, margin, power):
    first = decide(direction, mean, error, n, margin)
    second = decide(direction, *(np.ldexp([mean, error], power)), n, np.ldexp(margin, power))
    assert first.outcome == second.outcome
    assert first.p == pytest.approx(second.p)


def test_arrays_broadcast():
    found = decide("greater", np.zeros((3, 1)), np.ones(4), 12, 0.1)
    assert found.outcome.shape == found.low.shape == found.high.shape == found.p.shape == (3, 4)


SHAPES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewness 0.7": lambda rng, shape: (rng.gamma(8, size=shape) - 8) / np.sqrt(8),
    "skewness -0.7": lambda rng, shape: (8 - rng.gamma(8, size=shape)) / np.sqrt(8),
}


@functools.cache
def noise(n, shape):
    return SHAPES[shape](np.random.default_rng(0), (10_000, n))


def rates(direction, truth, n, spread, shape="normal"):
    """How often each word is given to the mean of n effects around a known truth."""
    words = decide(direction, *mean_and_error(truth + spread * noise(n, shape)), n, MARGIN).outcome
    return {word: float(np.mean(words == word)) for word in get_args(Outcome)}


FALSE_WORDS = [
    # direction, true effect, the words that would be false
    ("greater", MARGIN, {"supported", "contradicted"}),
    ("greater", 0.0, {"supported", "contradicted"}),
    ("greater", -MARGIN, {"supported", "contradicted"}),
    ("greater", 2 * MARGIN, {"contradicted", "equivalent"}),
    ("less", -MARGIN, {"supported", "contradicted"}),
    ("less", 0.0, {"supported", "contradicted"}),
    ("less", MARGIN, {"supported", "contradicted"}),
    ("equivalent", MARGIN * 1.0001, {"equivalent"}),
    ("equivalent", -MARGIN * 1.0001, {"equivalent"}),
    ("equivalent", MARGIN, {"contradicted"}),
    ("equivalent", 0.0, {"contradicted"}),
    ("above", MARGIN, {"supported", "contradicted"}),
    ("above", 0.0, {"supported"}),
    ("below", MARGIN, {"supported", "contradicted"}),
    ("below", 2 * MARGIN, {"supported"}),
]


@pytest.mark.parametrize("n", [4, 12])
@pytest.mark.parametrize("spread", [0.1, 1.0])
@pytest.mark.parametrize("direction, truth, false", FALSE_WORDS)
def test_false_outcomes_are_rare(direction, truth, false, n, spread):
    found = rates(direction, truth, n, spread)
    # Both sides of `above` and `below` at the threshold are false there, so their two halves of alpha add up to
    # alpha itself; the allowance is 3 standard errors of the simulation.
    assert sum(found[word] for word in false) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 10_000)
    for word in false:
        assert found[word] <= 0.03


@pytest.mark.parametrize("shape", ["skewness 0.7", "skewness -0.7"])
@pytest.mark.parametrize("direction, truth, false", FALSE_WORDS)
def test_false_outcomes_are_rare_with_skewed_effects(direction, truth, false, shape):
    """All of the error is then on one side: .042 instead of .025 here, .052 at a skewness of 1."""
    found = rates(direction, truth, 12, 0.2, shape)
    for word in false:
        assert found[word] <= 0.05


@pytest.mark.parametrize(
    "direction, truth, word",
    [
        ("greater", 2 * MARGIN, "supported"),
        ("greater", -2 * MARGIN, "contradicted"),
        ("greater", 0.0, "equivalent"),
        ("less", -2 * MARGIN, "supported"),
        ("equivalent", 0.0, "equivalent"),
        ("equivalent", -2 * MARGIN, "contradicted"),
        ("above", 2 * MARGIN, "supported"),
        ("below", 0.0, "supported"),
    ],
)
def test_clear_effects_are_found(direction, truth, word):
    assert rates(direction, truth, 12, 0.3)[word] > 0.99
