"""Predictors of failure: the scores against scikit-learn and scipy, and the race."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import special, stats
from sklearn.metrics import brier_score_loss, log_loss as sklearn_log_loss

from recombine.errors import BadInput
from recombine.stats.logistic import fit_logistic
from recombine.stats.prediction import brier, calibration_error, calibration_table, log_loss, race, wilson

chances = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30)


@given(chances)
@settings(derandomize=True, deadline=None)
def test_scores_are_those_of_scikit_learn(rows):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    assert log_loss(p, y) == pytest.approx(sklearn_log_loss(y, p, labels=[0, 1]), abs=1e-9)
    assert brier(p, y) == pytest.approx(brier_score_loss(y, p, pos_label=1) if np.ptp(y) else np.mean((p - y) ** 2))


@given(chances, st.integers(1, 12))
@settings(derandomize=True, deadline=None)
def test_calibration_tables_hold_every_prediction_once(rows, bins):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    table = calibration_table(p, y, bins)
    number = np.array([row.number for row in table])
    assert number.sum() == len(p) and len(table) <= bins and number.min() > 0
    assert np.dot(number, [row.observed for row in table]) == pytest.approx(y.sum())
    assert np.dot(number, [row.predicted for row in table]) == pytest.approx(p.sum())
    for row in table:
        assert -1e-12 <= row.low <= row.observed + 1e-12 and row.observed - 1e-12 <= row.high <= 1 + 1e-12
    error = calibration_error(p, y, bins)
    assert abs(p.mean() - y.mean()) - 1e-9 <= error <= 1
    assert calibration_error(p, y, 1) == pytest.approx(abs(p.mean() - y.mean()))


@pytest.mark.parametrize("ones, count", [(0, 5), (3, 10), (10, 10), (40, 100)])
def test_wilson_is_that_of_scipy(ones, count):
    theirs = stats.binomtest(ones, count).proportion_ci(method="wilson")
    assert wilson(ones / count, count) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_calibration_worked_example():
    table = calibration_table([0.1, 0.2, 0.9, 1.0], [0, 1, 1, 1], bins=2)
    assert [(row.predicted, row.observed, row.number) for row in table] == [
        (pytest.approx(0.15), 0.5, 2),
        (pytest.approx(0.95), 1.0, 2),
    ]
    assert calibration_error([0.1, 0.2, 0.9, 1.0], [0, 1, 1, 1], bins=2) == pytest.approx((0.35 + 0.05) / 2)


def runs(seed=0, number=16, rows=60):
    """A good predictor, a useless one, and one that only knows the run."""
    rng = np.random.default_rng(seed)
    group = np.repeat([f"run {index:02}" for index in range(number)], rows)
    good = rng.normal(size=number * rows)
    y = (rng.uniform(size=len(good)) < special.expit(2 * good)).astype(float)
    return {"good": good, "useless": rng.normal(size=(len(good), 2))}, y, group


def test_race():
    predictors, y, group = runs()
    train = np.unique(group)[:8]
    found = race(predictors, y, group, np.append(train, train))
    assert found.groups.tolist() == np.unique(group)[8:].tolist()
    assert found.gain["good"].shape == (8,) and found.gain["good"].min() > 0.05
    assert abs(found.gain["useless"].mean()) < 0.03
    for name in predictors:
        np.testing.assert_allclose(found.gain[name], found.base_loss - found.loss[name])
    # Nothing of an unseen run is used but its own rows: standardisation and fit come from the training runs.
    inside = np.isin(group, train)
    fitted = fit_logistic(predictors["good"][inside], y[inside])
    first = group == found.groups[0]
    assert found.loss["good"][0] == pytest.approx(log_loss(fitted.probability(predictors["good"][first]), y[first]))
    np.testing.assert_allclose(found.chances["good"], fitted.probability(predictors["good"][~inside]))
    np.testing.assert_array_equal(found.outcome, y[~inside])
    assert calibration_error(found.chances["good"], found.outcome) < 0.1


def test_unseen_runs_with_one_outcome_are_scored():
    predictors, y, group = runs()
    y[group == "run 15"] = 1
    found = race(predictors, y, group, np.unique(group)[:8])
    assert all(np.isfinite(losses).all() for losses in found.loss.values())
    assert found.base_loss[-1] == pytest.approx(-np.log(found.base_rate))


def test_bad_input_is_refused():
    predictors, y, group = runs()
    with pytest.raises(BadInput, match=r"training runs \['run 99'\]"):
        race(predictors, y, group, ["run 00", "run 99"])
    with pytest.raises(BadInput, match="16 of 16 runs are for training"):
        race(predictors, y, group, np.unique(group))
    with pytest.raises(BadInput, match="'short' has 3 rows"):
        race({"short": [1, 2, 3]}, y, group, ["run 00"])
    with pytest.raises(BadInput, match="fit on runs that have both"):
        race(predictors, np.where(group == "run 00", 0, y), group, ["run 00"])
    with pytest.raises(BadInput, match="between 0 and 1"):
        brier([1.2], [1])
    with pytest.raises(BadInput, match="At least 1 bin"):
        calibration_table([0.5], [1], 0)
