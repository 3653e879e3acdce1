"""Logistic regression: the gradient of its loss is zero in any units, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import special

from recombine.errors import BadInput
from recombine.stats.logistic import FEW_COLUMNS, fit_logistic, logistic_weights


def data(seed=0, rows=200):
    rng = np.random.default_rng(seed)
    columns = rng.normal(5, [1, 10, 0.1], size=(rows, 3))
    probability = special.expit(columns @ [1.0, -0.2, 3.0] - 18)
    return columns, (rng.uniform(size=rows) < probability).astype(float)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_of_the_penalised_loss_is_zero(seed, penalty):
    columns, y = data(seed)
    model = fit_logistic(columns, y, penalty)
    scaled = (columns - columns.mean(0)) / columns.std(0)
    surprise = special.expit(scaled @ model.weights + model.intercept) - y
    np.testing.assert_allclose(scaled.T @ surprise + penalty * model.weights, 0, atol=1e-8)
    assert surprise.sum() == pytest.approx(0, abs=1e-8)
    np.testing.assert_allclose(model.probability(columns), y + surprise, atol=1e-10)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("width", [3, FEW_COLUMNS + 10])
def test_rows_may_have_weights_and_there_may_be_many_classes(width, classes):
    rng = np.random.default_rng(width)
    features, labels = rng.normal(size=(90, width)), rng.integers(0, classes, 90)
    shares = rng.uniform(0.5, 1.5, 90)
    weights, intercept = logistic_weights(features, labels, 0.7, shares)
    out = features @ weights + intercept
    if classes == 2:
        surprise = special.expit(out) - labels[:, None]
    else:
        surprise = special.softmax(out, axis=1) - np.eye(classes)[labels]
    surprise = surprise * shares[:, None]
    np.testing.assert_allclose(features.T @ surprise + 0.7 * weights, 0, atol=1e-3)
    np.testing.assert_allclose(surprise.sum(0), 0, atol=1e-3)


def test_separable_equal_and_constant_columns():
    x, y = np.linspace(-1, 1, 20), np.repeat([0.0, 1.0], 10)
    separable = fit_logistic(x, y)
    assert np.all(np.diff(separable.probability(x)) > 0) and np.isfinite(separable.weights).all()
    twice = fit_logistic(np.stack([x, x, np.full(20, 0.1)], axis=1), y)
    assert twice.weights[0] == pytest.approx(twice.weights[1])
    assert twice.weights[2] == 0
    assert np.isfinite(twice.probability([[0.3, 0.3, 9.0]])).all()


@given(st.integers(0, 500), st.floats(0.1, 50), st.floats(-100, 100))
@settings(derandomize=True, deadline=None, max_examples=30)
def test_units_do_not_matter(seed, scale, shift):
    columns, y = data(seed, 40)
    if np.ptp(y) == 0:
        return
    first = fit_logistic(columns, y).probability(columns)
    second = fit_logistic(scale * columns + shift, y).probability(scale * columns + shift)
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize(
    ("columns", "y", "penalty", "message"),
    [
        ([1, 2], [0.5, 1], 1, "must be 0 or 1"),
        ([1, 2], [0, 1], 0, "penalty must be positive"),
        ([1, 2], [0, 1, 1], 1, "2 rows and 3 outcomes"),
        ([1, np.nan], [0, 1], 1, "must be finite"),
        ([1, 2], [1, 1], 1, "fit on runs that have both"),
    ],
)
def test_bad_input_is_refused(columns, y, penalty, message):
    with pytest.raises(BadInput, match=message):
        fit_logistic(columns, y, penalty)


def test_new_rows_must_have_the_fitted_columns():
    with pytest.raises(BadInput, match="1 columns were fitted, got 2"):
        fit_logistic([1, 2], [0, 1]).probability([[1, 2]])
