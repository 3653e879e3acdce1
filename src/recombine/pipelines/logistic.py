"""Logistic regression: a probe that tells which concept is there, or which of them all."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy import optimize, special

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
"""Of the penalty on squared weights, for features of unit variance and a mean loss. One is chosen on validation prompts."""
MOST_ROUNDS = 200
ENOUGH = 1e-5
"""The slope at which fitting ends."""


class Scaled:
    """Features at unit variance. Where there are more than rows, the directions are kept in which the rows lie: nothing is lost."""

    def __init__(self, features: Float[np.ndarray, "row feature"]) -> None:
        features = np.asarray(features, np.float64)
        self._mean, spread = features.mean(0), features.std(0)
        # What is the same in all rows says nothing; a tiny spread is rounding.
        quiet = spread <= 1e-6 * np.maximum(1e-12, np.abs(self._mean))
        self._scale = np.where(quiet, 0.0, 1 / np.where(quiet, 1, spread))
        self._turn = None
        self.rows: Float[np.ndarray, "row direction"] = self.of(features)
        if features.shape[1] > len(features):
            self._turn = np.linalg.svd(self.rows, full_matrices=False)[2].T
            self.rows = self.rows @ self._turn

    def of(self, features: Float[np.ndarray, "n feature"]) -> Float[np.ndarray, "n direction"]:
        """Other rows on the same scale."""
        scaled = (np.asarray(features, np.float64) - self._mean) * self._scale
        return scaled if self._turn is None else scaled @ self._turn


class LogisticProbe:
    """One regression a concept (is it there or not?), or one for all values of a slot.

    Rare answers weigh as much as frequent ones, so that nobody is right by always saying no.
    """

    def __init__(
        self, scaled: Scaled, member: Bool[np.ndarray, "row value"], strength: float, exclusive: bool
    ) -> None:
        self._scaled, self._exclusive = scaled, exclusive
        # Values that all rows have or none cannot be told.
        self._told = np.asarray(member.any(0) if exclusive else member.any(0) & ~member.all(0))
        self._weights = _fitted(scaled.rows, member[:, self._told].astype(np.float64), strength, exclusive)

    def log_odds(self, features: Float[np.ndarray, "n feature"]) -> Float[np.ndarray, "n value"]:
        """The logarithm of each value's probability; of its odds where values do not exclude each other. As `LinearProbe`."""
        out = self._scaled.of(features) @ self._weights[:-1] + self._weights[-1]
        found = np.full((len(out), len(self._told)), np.nan)
        found[:, self._told] = special.log_softmax(out, axis=1) if self._exclusive else out
        return found


def _fitted(
    scaled: Float[np.ndarray, "row feature"],
    targets: Float[np.ndarray, "row value"],
    strength: float,
    exclusive: bool,
) -> Float[np.ndarray, "weight value"]:
    """Weights, the last row the level."""
    rows, values = targets.shape
    if not values:
        return np.zeros((scaled.shape[1] + 1, 0))
    weight = _balance(targets, exclusive)
    given = np.concatenate([scaled, np.ones((rows, 1))], axis=1)
    penalty = np.append(np.full(scaled.shape[1], strength), 0.0)[:, None]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(-1, values)
        out = given @ weights
        if exclusive:
            logs = special.log_softmax(out, axis=1)
            value = -(weight * targets * logs).sum()
            slope = (weight * targets).sum(1, keepdims=True) * np.exp(logs) - weight * targets
        else:
            value = (weight * (np.logaddexp(0, out) - targets * out)).sum()
            slope = weight * (special.expit(out) - targets)
        value += (penalty * weights**2).sum() / 2
        return float(value), (given.T @ slope + penalty * weights).reshape(-1)

    start = np.zeros(given.shape[1] * values)
    options = {"maxiter": MOST_ROUNDS, "gtol": ENOUGH}
    return optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x.reshape(-1, values)


def _balance(targets: Float[np.ndarray, "row value"], exclusive: bool) -> Float[np.ndarray, "row value"]:
    """The weight of each row in each regression: all answers of a question weigh the same together."""
    size = targets.sum(0)
    if exclusive:
        return np.broadcast_to(1 / (len(size) * size), targets.shape)
    return np.where(targets > 0, 0.5 / size, 0.5 / (len(targets) - size))
