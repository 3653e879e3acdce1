"""The probe against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from recombine.pipelines.probing import LogisticProbe, Scaled


def scaled(features, other):
    return (other - features.mean(0)) / features.std(0)


@pytest.mark.parametrize("wide", [5, 60])
def test_one_regression_a_concept(wide):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, wide)) * rng.uniform(0.1, 10, wide)
    member = np.stack([features[:, 0] + rng.normal(size=40) > 1, rng.random(40) < 0.2], axis=1)
    new = rng.normal(size=(7, wide))
    found = LogisticProbe(Scaled(features), member, 0.1, exclusive=False).log_odds(new)
    for value in range(2):
        # Weights of answers sum to 1 here, to the number of rows there.
        model = LogisticRegression(C=10 / 40, class_weight="balanced", tol=1e-8, max_iter=5000)
        model.fit(scaled(features, features), member[:, value])
        assert np.allclose(found[:, value], model.decision_function(scaled(features, new)), atol=2e-4)


@pytest.mark.parametrize("wide", [4, 50])
def test_one_regression_for_all_values(wide):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(45, wide))
    labels = np.repeat([0, 1, 2], [5, 10, 30])
    features[:, 0] += labels
    new = rng.normal(size=(6, wide))
    found = LogisticProbe(Scaled(features), np.eye(3, dtype=bool)[labels], 0.05, exclusive=True).log_odds(new)
    model = LogisticRegression(C=20 / 45, class_weight="balanced", tol=1e-8, max_iter=5000)
    model.fit(scaled(features, features), labels)
    assert np.allclose(found, model.predict_log_proba(scaled(features, new)), atol=2e-4)


def test_two_values_that_exclude_each_other_are_a_softmax():
    rng = np.random.default_rng(2)
    features, labels = rng.normal(size=(30, 4)), np.repeat([0, 1], [10, 20])
    member = np.eye(2, dtype=bool)[labels]
    member[:3] = False  # Rows without a value have no say.
    found = LogisticProbe(Scaled(features), member, 0.1, exclusive=True).log_odds(features)
    assert np.allclose(np.exp(found).sum(1), 1)
    # A third value that is hardly ever there makes scikit-learn fit a softmax with two sets of weights.
    rows, share = scaled(features, features), np.where(labels == 1, 1 / 40, 1 / 14)
    share[:3] = 0
    given, tiny = np.vstack([rows, np.zeros((1, 4))]), np.append(share, 1e-9)
    model = LogisticRegression(C=10, tol=1e-9, max_iter=5000)
    model.fit(given, np.append(labels, 2), sample_weight=tiny)
    odds = model.decision_function(rows)
    assert np.allclose(found[:, 1] - found[:, 0], odds[:, 1] - odds[:, 0], atol=1e-3)


def test_what_nobody_or_everybody_has_cannot_be_told():
    features = np.random.default_rng(0).normal(size=(10, 3))
    member = np.zeros((10, 3), bool)
    member[:, 1], member[:5, 2] = True, True
    found = LogisticProbe(Scaled(features), member, 0.1, exclusive=False).log_odds(features)
    assert np.isnan(found[:, :2]).all() and np.isfinite(found[:, 2]).all()


def test_features_that_do_not_vary_say_nothing():
    features = np.ones((10, 4)) * 1e4
    member = np.arange(10)[:, None] < 3
    found = LogisticProbe(Scaled(features), member, 0.1, exclusive=False).log_odds(features + 5)
    assert np.allclose(found, 0, atol=1e-4)  # Both answers weigh the same, so there is nothing to choose by.
