"""Strata of combinations, and the gap between trained and held-out ones, where the truth is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from recombine.audit import strata as adjusted
from recombine.audit.strata import adjusted_gap, between, gap_finding, mean_score, raw_gap, stratum_of

GAP = 0.15


def simulated(make_cells, seed, *, confounded, levels=12, gap=GAP, noise=0.05, **more):
    """Scores that are a sum of parts, less a gap where held out; hard parts are held out more often if confounded."""
    rng = np.random.default_rng(seed)
    rows = list(itertools.product(range(levels), range(levels)))
    first, second = rng.normal(0, 0.2, levels), rng.normal(0, 0.2, levels)
    parts = np.array([first[a] + second[b] for a, b in rows])
    odds = 1 / (1 + np.exp(-(6 * parts if confounded else 0 * parts)))
    trained = rng.random(len(rows)) < odds
    scores = 0.6 + parts + gap * trained + rng.normal(0, noise, len(rows)) * (1 + np.abs(parts))
    return make_cells(rows, scores, trained=trained, **more)


def test_the_adjusted_gap_recovers_the_truth_and_the_raw_one_does_not(make_cells):
    raw, held_still, missed = [], [], 0
    for seed in range(60):
        found = gap_finding(simulated(make_cells, seed, confounded=True), 0)
        raw.append(found.raw.estimate)
        held_still.append(found.adjusted.estimate)
        missed += not found.adjusted.low <= GAP <= found.adjusted.high
        assert "observational" in found.note
    assert np.mean(raw) > GAP + 0.1
    assert np.mean(held_still) == pytest.approx(GAP, abs=0.005)
    assert missed <= 8, "about .95 of the intervals hold the truth"


def test_raw_and_adjusted_agree_where_nothing_confounds(make_cells):
    found = [gap_finding(simulated(make_cells, seed, confounded=False), 0) for seed in range(30)]
    assert np.mean([one.raw.estimate for one in found]) == pytest.approx(GAP, abs=0.03)
    assert np.mean([one.adjusted.estimate for one in found]) == pytest.approx(GAP, abs=0.01)
    assert np.mean([np.ptp([one.raw.low, one.raw.high]) for one in found]) > np.mean(
        [np.ptp([one.adjusted.low, one.adjusted.high]) for one in found]
    )


def test_the_interval_is_hc3(make_cells):
    """Against the formula written out with a dense design."""
    cells = simulated(make_cells, 3, confounded=True, levels=5)
    found, why = adjusted_gap(cells, 0, cells.trained, ~cells.trained)
    dummies = [np.eye(5)[cells.constituents[:, slot] - 5 * slot] for slot in range(2)]
    design = np.column_stack([cells.trained, dummies[0], dummies[1][:, 1:]])
    fit, *_ = np.linalg.lstsq(design, cells.mean[:, 0])
    inverse = np.linalg.inv(design.T @ design)
    hat = np.einsum("ij,jk,ik->i", design, inverse, design)
    residual = (cells.mean[:, 0] - design @ fit) / (1 - hat)
    error = np.sqrt((inverse @ (design.T * residual**2) @ design @ inverse)[0, 0])
    half = stats.t.ppf(0.975, len(design) - design.shape[1]) * error
    assert why == ""
    assert found.estimate == pytest.approx(fit[0])
    assert (found.low, found.high) == pytest.approx((fit[0] - half, fit[0] + half))


def test_very_many_parts_give_the_same_estimate(make_cells, monkeypatch):
    cells = simulated(make_cells, 4, confounded=True)
    exact, _ = adjusted_gap(cells, 0, cells.trained, ~cells.trained)
    monkeypatch.setattr(adjusted, "DENSE", 3)
    other, _ = adjusted_gap(cells, 0, cells.trained, ~cells.trained)
    assert other.estimate == pytest.approx(exact.estimate, abs=1e-6)
    assert other.high - other.low == pytest.approx(exact.high - exact.low, rel=0.2)
    assert (exact.method, other.method) == ("parts held constant, HC3", "parts held constant, HC1")


def test_confounded_parts_are_refused(make_cells):
    rows = list(itertools.product(range(6), range(6)))
    cells = make_cells(rows, np.linspace(0, 1, 36), trained=[a < 3 for a, _ in rows])
    found = gap_finding(cells, 0)
    assert found.adjusted is None and found.raw is not None
    assert "determine whether it is held out" in found.note


def test_too_few_combinations_are_refused(make_cells):
    found = gap_finding(make_cells([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")], trained=[1, 0, 0, 1]), 0)
    assert found.adjusted is None and "too few combinations" in found.note


def test_strata(make_cells):
    rows = [("a", "x", "1"), ("a", "y", "2"), ("b", "x", "2"), ("b", "y", "1"), ("a", "x", "2"), ("a", "z", "1")]
    trained = [True, True, True, False, False, False]
    cells = make_cells(rows, [0.9, 0.8, 0.7, 0.2, 0.6, 0.1], trained=trained, rows=4)
    assert stratum_of(cells) == (*["trained"] * 3, "some pairs unmet", "all pairs met", "a part unseen")
    found = gap_finding(cells, 0)
    assert [one.name for one in found.strata] == ["trained", "all pairs met", "some pairs unmet", "a part unseen"]
    assert [one.combinations for one in found.strata] == [3, 1, 1, 1]
    assert [one.rows for one in found.strata] == [12, 4, 4, 4]
    assert found.strata[0].score.estimate == pytest.approx(0.8) and found.strata[1].score is None
    gap = between(cells, 0, "trained", "all pairs met")
    assert gap.raw is None and gap.adjusted is None


def test_a_part_in_a_new_role_is_not_unseen(make_cells):
    cells = make_cells(
        [("dog", "cat"), ("cat", "cow"), ("cow", "dog"), ("emu", "cat")],
        [0.9, 0.9, 0.2, 0.3],
        roles=("f0", "f1"),
        trained=[True, True, False, False],
    )
    assert stratum_of(cells)[2:] == ("some pairs unmet", "a part unseen")


def test_one_side_only(make_cells):
    rows = [("a", "x"), ("b", "y"), ("a", "y")]
    found = gap_finding(make_cells(rows, [1.0, 0.5, 0.2], trained=[True] * 3), 0)
    assert found.raw is None and "No held-out combination was evaluated" in found.note
    # Trained on combinations that nobody scored.
    found = gap_finding(make_cells(rows, [np.nan, 0.5, 0.2], trained=[True, False, False]), 0)
    assert found.raw is None and "No trained combination was evaluated" in found.note
    assert gap_finding(make_cells(rows, [1.0, 0.5, 0.2]), 0) is None


def test_means_and_raw_gaps():
    rng = np.random.default_rng(0)
    one, two = rng.normal(0.7, 0.1, 9), rng.normal(0.5, 0.2, 14)
    found = raw_gap(one, two, binary=False)
    expected = stats.ttest_ind(one, two, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    interval = mean_score(one, binary=False)
    expected = stats.t.interval(0.95, 8, one.mean(), stats.sem(one))
    assert (interval.low, interval.high) == pytest.approx(expected)


def test_all_solved_is_not_certain():
    found = mean_score(np.ones(5), binary=True)
    expected = stats.binomtest(5, 5).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    gap = raw_gap(np.ones(5), np.array([0.0, 0.5, 0.5, 1.0]), binary=True)
    assert gap.estimate == pytest.approx(0.5) and gap.low < 0.5 < gap.high
    assert mean_score(np.zeros(5), binary=True).high == pytest.approx(1 - expected.low)
    assert mean_score(np.array([0.9, 1.0, 1.0]), binary=True).high == 1
