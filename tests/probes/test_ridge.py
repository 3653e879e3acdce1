"""Traps 2 and 3 of the paper's code: the intercept is kept, the solution is exact, all outputs in one solve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from recombine.probes import ridge as module
from recombine.probes.ridge import RidgePath, mean_r2

STRENGTHS = [1e-4, 1e-2, 1.0, 1e2, 1e4]


def activations(rng: np.random.Generator, number: int, units: int) -> np.ndarray:
    """As after a ReLU: many exact zeros, a unit that is always zero and one that never changes."""
    made = np.maximum(rng.normal(size=(number, units)), 0).astype(np.float32)
    made[:, 0] = 0.0
    made[:, 1] = 2.5
    return made


@pytest.mark.parametrize(("number", "units"), [(40, 8), (40, 40), (15, 60), (200, 30)])
@pytest.mark.parametrize("strength", STRENGTHS)
def test_agrees_with_scikit_learn(number: int, units: int, strength: float):
    rng = np.random.default_rng(number + units)
    features = activations(rng, number, units)
    targets = features[:, 2:7] @ rng.normal(size=(5, 4)) + 3.0 + 0.1 * rng.normal(size=(number, 4))
    fresh = activations(rng, 50, units)
    theirs = Ridge(alpha=strength, solver="svd").fit(features.astype(float), targets)
    mine = RidgePath(features, targets)
    np.testing.assert_allclose(mine.weights(strength), theirs.coef_.T, atol=1e-8, rtol=1e-6)
    np.testing.assert_allclose(mine.predict(fresh, strength), theirs.predict(fresh.astype(float)), atol=1e-8)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(2, 30), st.integers(1, 30), st.integers(1, 5), st.sampled_from(STRENGTHS), st.integers(0, 2**32 - 1))
def test_agrees_with_scikit_learn_on_any_shape(number: int, units: int, outputs: int, strength: float, seed: int):
    rng = np.random.default_rng(seed)
    features = np.maximum(rng.normal(size=(number, units)), 0)
    targets = rng.normal(size=(number, outputs)) + 1
    theirs = Ridge(alpha=strength, solver="svd").fit(features, targets).predict(features)
    found = RidgePath(features, targets).predict(features, strength)
    np.testing.assert_allclose(found, theirs.reshape(found.shape), atol=1e-8)


def test_the_intercept_is_not_penalised():
    """Activations that are all zero still give the mean, and a shift of the targets is a shift of the answer."""
    targets = np.array([[1.0, -2.0], [3.0, -2.0], [5.0, -2.0]])
    silent = RidgePath(np.zeros((3, 4)), targets)
    np.testing.assert_allclose(silent.predict(np.zeros((1, 4)), 1.0), [[3.0, -2.0]])
    rng = np.random.default_rng(0)
    features, noise = activations(rng, 20, 6), rng.normal(size=(20, 2))
    for strength in STRENGTHS:
        shifted = RidgePath(features, noise + 100).predict(features, strength)
        np.testing.assert_allclose(shifted, RidgePath(features, noise).predict(features, strength) + 100)


def test_the_solution_satisfies_its_equation():
    """(X'X + s) w = X'y for centred X and y, whichever Gram matrix was decomposed."""
    rng = np.random.default_rng(3)
    for number, units in ((50, 10), (10, 50)):
        features, targets = activations(rng, number, units).astype(float), rng.normal(size=(number, 3))
        x, y = features - features.mean(0), targets - targets.mean(0)
        for strength in STRENGTHS:
            weights = RidgePath(features, targets).weights(strength)
            np.testing.assert_allclose(x.T @ (x @ weights) + strength * weights, x.T @ y, atol=1e-8)


def test_one_decomposition_serves_all_outputs_and_strengths(monkeypatch: pytest.MonkeyPatch):
    calls = []
    solve = np.linalg.eigh

    def counted(matrix: np.ndarray) -> object:
        calls.append(matrix.shape)
        return solve(matrix)

    monkeypatch.setattr(module.np.linalg, "eigh", counted)
    rng = np.random.default_rng(0)
    path = RidgePath(rng.normal(size=(100, 7)), rng.normal(size=(100, 30)))
    for strength in STRENGTHS:
        path.predict(rng.normal(size=(5, 7)), strength)
    assert calls == [(7, 7)]
    RidgePath(rng.normal(size=(6, 70)), rng.normal(size=(6, 30)))
    assert calls[1:] == [(6, 6)], "the smaller of the two Gram matrices"


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_mean_r2_agrees_with_scikit_learn(number: int, outputs: int, seed: int):
    rng = np.random.default_rng(seed)
    targets = rng.normal(size=(number, outputs))
    predictions = targets + rng.normal(size=(number, outputs)) * rng.uniform(0, 2)
    assert mean_r2(targets, predictions) == pytest.approx(r2_score(targets, predictions), rel=1e-9, abs=1e-9)


def test_outputs_that_do_not_vary_are_left_out():
    rng = np.random.default_rng(0)
    targets, predictions = rng.normal(size=(2, 20, 3))
    targets[:, 1] = 0.7
    assert mean_r2(targets, predictions) == pytest.approx(r2_score(targets[:, [0, 2]], predictions[:, [0, 2]]))
    assert np.isnan(mean_r2(np.ones((4, 2)), np.ones((4, 2))))
