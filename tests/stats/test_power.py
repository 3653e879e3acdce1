"""The number of replicates that decides a claim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.stats.power import MOST, POWER, needed_replicates, needed_to_decide
from recombine.stats.rule import decide
from recombine.stats.verdicts import Claim, judge


def standardised(mean, spread):
    """Effects with exactly this mean and standard deviation."""
    draws = np.random.default_rng(0).normal(size=10)
    return mean + spread * (draws - draws.mean()) / draws.std(ddof=1)


@pytest.mark.parametrize(
    "direction, margin, mean, wanted",
    [
        ("greater", 0.05, 0.09, "supported"),
        ("greater", 0.05, -0.1, "contradicted"),
        ("greater", 0.2, 0.05, "equivalent"),
        ("equivalent", 0.1, 0.02, "equivalent"),
        ("above", 0.5, 0.56, "supported"),
        ("below", 0.5, 0.56, "contradicted"),
    ],
)
def test_that_many_replicates_decide_with_the_stated_probability(direction, margin, mean, wanted):
    count = needed_replicates(direction, margin, standardised(mean, 0.06))
    draws = np.random.default_rng(1).normal(mean, 0.06, size=(4000, count))
    decision = decide(direction, draws.mean(1), draws.std(1, ddof=1) / np.sqrt(count), count, margin)
    share = (decision.outcome == wanted).mean()
    assert POWER - 0.04 < share < 0.95


def test_an_effect_on_its_margin_is_never_decided():
    assert needed_replicates("greater", 0.05, standardised(0.05, 0.1)) is None
    assert needed_replicates("greater", 0.05, [0.3]) is None and needed_replicates("greater", 0.05, []) is None
    assert needed_replicates("greater", 0.05, [0.3, 0.3, np.nan]) == 2


@given(st.floats(0.06, 1), st.floats(0.001, 1), st.floats(1.1, 5))
@settings(derandomize=True, deadline=None)
def test_more_spread_needs_more_replicates(mean, spread, factor):
    few, many = (
        needed_replicates("greater", 0.05, standardised(mean, size)) or MOST + 1 for size in (spread, spread * factor)
    )
    assert few <= many


@pytest.mark.parametrize("direction, margin", [("greater", 0.05), ("equivalent", 0.1), ("below", 0.5)])
def test_a_recorded_interval_tells_as_much_as_the_effects(direction, margin):
    effects = standardised(0.09, 0.06)
    claim = Claim("c", "s", "It is so.", direction, margin)
    assert needed_to_decide(judge(claim, effects)) == needed_replicates(direction, margin, effects)
    assert needed_to_decide(judge(claim, [0.3])) is None


def test_a_claim_on_several_scales_needs_the_most_of_them():
    scales = (("R2", 0.05), ("log error", 0.2))
    claim = Claim("c", "s", "It is so.", "greater", 0.05, scales=scales)
    effects = [standardised(0.09, 0.06), standardised(0.5, 0.4)]
    alone = [needed_replicates("greater", margin, own) for (_, margin), own in zip(scales, effects, strict=True)]
    assert needed_to_decide(judge(claim, effects)) == max(alone) and len(set(alone)) == 2
