"""Rank correlation within groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from recombine.errors import BadInput
from recombine.stats.columns import codes
from recombine.stats.rank import partial_rank, ranks_within

points = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 2)), min_size=6, max_size=25)


@given(points)
@settings(derandomize=True, deadline=None)
def test_ranks_are_those_of_scipy_in_each_group(given_points):
    x, _, labels = (np.array(column, dtype=float) for column in zip(*given_points, strict=True))
    group, groups = codes(labels, len(x))
    ranks = ranks_within(x, group)
    for index in range(len(groups)):
        inside = group == index
        np.testing.assert_allclose(ranks[inside], (stats.rankdata(x[inside]) - 0.5) / inside.sum())


@given(points)
@settings(derandomize=True, deadline=None)
def test_one_group_is_spearman(given_points):
    x, y, _ = (np.array(column, dtype=float) for column in zip(*given_points, strict=True))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        with pytest.raises(BadInput, match="does not vary"):
            partial_rank(x, y, np.zeros(len(x)))
        return
    found = partial_rank(x, y, np.zeros(len(x)))
    assert found.estimate == pytest.approx(stats.spearmanr(x, y).statistic)
    assert -1 <= found.low <= found.estimate <= found.high <= 1


def simpson(rng, groups=6, size=40):
    """Both follow the group, and nothing else joins them."""
    group = np.repeat(np.arange(groups), size)
    x, y = (3 * group + rng.normal(size=len(group)) for _ in range(2))
    return x, y, group


def test_a_common_cause_is_taken_out():
    x, y, group = simpson(np.random.default_rng(0))
    assert stats.spearmanr(x, y).statistic > 0.9
    found = partial_rank(x, y, group)
    assert found.low < 0 < found.high and abs(found.estimate) < 0.15
    # As a covariate, in one group, it is taken out as well (nearly: as ranks, on a line).
    assert abs(partial_rank(x, y, np.zeros(len(x)), [group]).estimate) < 0.3


@given(st.integers(0, 1000))
@settings(derandomize=True, deadline=None, max_examples=20)
def test_only_order_within_groups_counts(seed):
    x, y, group = simpson(np.random.default_rng(seed), 3, 8)
    first = partial_rank(x, y, group)
    moved = partial_rank(np.exp(x / 3) + 100 * (group == 1), y**3 - 7 * group, group.astype(str))
    assert moved.estimate == pytest.approx(first.estimate)
    assert partial_rank(-x, y, group).estimate == pytest.approx(-first.estimate)
    assert partial_rank(y, x, group).estimate == pytest.approx(first.estimate)


def test_covariates_are_taken_out_as_by_the_formula():
    rng = np.random.default_rng(1)
    z = rng.normal(size=50)
    x, y = z + rng.normal(size=50), z + rng.normal(size=50)
    xy, xz, yz = (stats.spearmanr(a, b).statistic for a, b in ((x, y), (x, z), (y, z)))
    expected = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    found = partial_rank(x, y, np.zeros(50), [z])
    assert found.estimate == pytest.approx(expected)
    # n - 3, and one less for the covariate.
    half = 1.959964 * np.sqrt((1 + expected**2 / 2) / 46)
    assert np.arctanh([found.low, found.high]) == pytest.approx(np.arctanh(expected) + half * np.array([-1, 1]))


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_fisher_covers(correlation):
    rng = np.random.default_rng(0)
    true = 6 / np.pi * np.arcsin(correlation / 2)
    inside = []
    for _ in range(600):
        x, other, group = simpson(rng, 3, 20)
        y = correlation * (x - 3 * group) + np.sqrt(1 - correlation**2) * (other - 3 * group) + 3 * group
        found = partial_rank(x, y, group)
        inside.append(found.low <= true <= found.high)
    assert 0.925 <= np.mean(inside) <= 0.975


def test_replicates_are_resampled_whole():
    """What replicates share makes points alike: Fisher's interval is then too narrow, the bootstrap's is not."""
    rng = np.random.default_rng(0)
    replicate, group = np.tile(np.arange(12), 6), np.repeat(np.arange(6), 12)
    fisher, whole = [], []
    for _ in range(40):
        x, y = (rng.normal(size=12)[replicate] + 0.3 * rng.normal(size=72) for _ in range(2))
        for found, kept in (
            (partial_rank(x, y, group), fisher),
            (partial_rank(x, y, group, replicate=replicate, resamples=150), whole),
        ):
            kept.append(found.low <= 0 <= found.high)
    assert np.mean(fisher) < 0.75
    assert np.mean(whole) > 0.9
    again = partial_rank(x, y, group, replicate=replicate, resamples=150)
    assert again == found and found.replicates == 12 and found.method == "bootstrap"


def test_too_little_is_refused():
    with pytest.raises(BadInput, match="degrees of freedom"):
        partial_rank([1, 2, 3, 1, 2], [1, 2, 3, 2, 1], [0, 0, 0, 1, 1], [[1, 3, 2, 5, 4]])
    with pytest.raises(BadInput, match="does not vary within groups"):
        partial_rank([1, 1, 2, 2], [1, 2, 3, 4], [0, 0, 1, 1])


def test_a_perfect_order_is_not_certain():
    lows = []
    for count in (4, 8, 30):
        found = partial_rank(np.arange(count), np.arange(count), np.zeros(count))
        assert found.estimate == pytest.approx(1) and found.high == found.estimate
        mirrored = partial_rank(np.arange(count), -np.arange(count), np.zeros(count))
        assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))
        lows.append(found.low)
    assert lows == sorted(lows) and lows[0] < 0 < lows[1] and lows[2] > 0.99
