"""The probe is discriminant analysis, exactly, and knows values that lie in a row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from recombine.audit.decodability.linear_probe import LinearProbe


def drawn(rows: int, features: int, values: int, seed: int = 0):
    """Equally many rows of each value, their features shifted by the value."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % values
    shift = rng.normal(size=(values, features))
    return rng.normal(size=(rows, features)) * rng.uniform(0.5, 2, features) + shift[labels], labels


@pytest.mark.parametrize(("rows", "features"), [(60, 7), (30, 80)])
@pytest.mark.parametrize("strength", [0.01, 1.0])
def test_against_scikit_learn(rows: int, features: int, strength: float):
    values, labels = drawn(rows, features, 3)
    new, _ = drawn(25, features, 3, seed=1)
    # Theirs is (1 - s) S + s tr(S) / d: the same up to the whole, with a share of S within instead of in all.
    within = sum(((values[labels == k] - values[labels == k].mean(0)) ** 2).sum() for k in range(3))
    total = ((values - values.mean(0)) ** 2).sum()
    ratio = strength * total / within
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=ratio / (1 + ratio), priors=np.full(3, 1 / 3)).fit(
        values, labels
    )
    # Their spread divides by n, ours by n - 3, and is without the (1 - s).
    whole = (rows - 3) / rows / (1 + ratio)
    expected = special.log_softmax(theirs.decision_function(new) * whole, axis=1)
    (found,) = LinearProbe(values, [labels[:, None] == np.arange(3)], [True]).log_odds(new, strength)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_there_or_not_is_the_case_of_two_values():
    values, labels = drawn(50, 6, 2)
    labels = np.where(np.arange(50) < 12, 1, 0) * labels
    new, _ = drawn(20, 6, 2, seed=1)
    member = labels[:, None] == np.arange(2)
    both, alone = LinearProbe(values, [member, member[:, 1:]], [True, False]).log_odds(new, 0.1)
    np.testing.assert_allclose(alone[:, 0], both[:, 1] - both[:, 0], rtol=1e-8)


def test_questions_do_not_disturb_each_other():
    values, labels = drawn(40, 5, 4)
    other = np.arange(40)[:, None] // 10 == np.arange(4)
    member = labels[:, None] == np.arange(4)
    together = LinearProbe(values, [member, other], [True, True]).log_odds(values, 0.1)
    for question, found in zip((member, other), together, strict=True):
        (alone,) = LinearProbe(values, [question], [True]).log_odds(values, 0.1)
        np.testing.assert_allclose(found, alone, rtol=1e-9)
    (second,) = LinearProbe(values, [member, other], [True, True]).log_odds(values, 0.1, [1])
    np.testing.assert_array_equal(second, together[1])


def test_ordered_values_are_distinguished():
    """Counts along one line: the largest output of a map to one-hot values would never name the middle ones."""
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 5
    values = labels[:, None] * np.array([[1.0, 2.0, 0.5]]) + 0.05 * rng.normal(size=(200, 3))
    (found,) = LinearProbe(values, [labels[:, None] == np.arange(5)], [True]).log_odds(values, 1e-3)
    assert (found.argmax(1) == labels).all()


def test_values_that_were_not_fitted_are_not_numbers():
    values, labels = drawn(30, 4, 3)
    member = np.column_stack([labels[:, None] == np.arange(3), np.zeros(30, bool)])
    one_of, each = LinearProbe(values, [member, member], [True, False]).log_odds(values, 0.1)
    assert np.isnan(one_of[:, 3]).all() and np.isfinite(one_of[:, :3]).all()
    np.testing.assert_allclose(np.exp(one_of[:, :3]).sum(1), 1)
    assert np.isnan(each[:, 3]).all() and np.isfinite(each[:, :3]).all()


def test_the_unit_of_the_activations_does_not_matter():
    values, labels = drawn(30, 4, 3)
    member = [labels[:, None] == np.arange(3)]
    (one,) = LinearProbe(values, member, [True]).log_odds(values, 0.1)
    (other,) = LinearProbe(1e-4 * values + 3, member, [True]).log_odds(1e-4 * values + 3, 0.1)
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_what_does_not_vary_says_nothing():
    (found,) = LinearProbe(np.ones((6, 3)), [np.arange(6)[:, None] % 3 == np.arange(3)], [True]).log_odds(
        np.ones((2, 3)), 0.1
    )
    np.testing.assert_allclose(np.exp(found), 1 / 3)
