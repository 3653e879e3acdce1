"""Shares of answers in groups."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.stats.prediction import wilson
from recombine.stats.shares import clustered_share


def test_independent_answers_have_wilsons_interval():
    values = np.array([1, 1, 0, 1, 0, 0, 0, 0])
    found = clustered_share(values, np.arange(8))
    assert found.estimate == 3 / 8 and (found.low, found.high) == wilson(3 / 8, 8)


def test_answers_that_are_all_the_same_within_groups_count_once():
    values = np.random.default_rng(0).integers(2, size=40)
    once = clustered_share(values, np.arange(40))
    copied = clustered_share(np.repeat(values, 5), np.repeat(np.arange(40), 5))
    assert copied.high - copied.low == pytest.approx(once.high - once.low, rel=0.05)


def test_all_answers_right():
    found = clustered_share(np.ones(100), np.repeat(np.arange(10), 10))
    assert (found.estimate, found.low, found.high) == (1.0, *wilson(1.0, 10))


def test_it_covers_where_groups_differ():
    """Simulated: 40 groups of 5 whose chances differ a lot; Wilson's own interval would cover about .78."""
    held, naive = 0, 0
    for number in range(400):
        rng = np.random.default_rng([3, number])
        chance = rng.beta(0.4, 0.6, size=40)
        values = (rng.uniform(size=(40, 5)) < chance[:, None]).reshape(-1)
        found = clustered_share(values, np.repeat(np.arange(40), 5))
        held += found.low <= 0.4 <= found.high
        low, high = wilson(float(values.mean()), 200)
        naive += low <= 0.4 <= high
    assert 0.92 <= held / 400 <= 0.98 and naive / 400 < 0.85


def test_values_other_than_0_and_1_are_refused():
    with pytest.raises(BadInput, match="values of 0 or 1"):
        clustered_share([0.5], [1])
