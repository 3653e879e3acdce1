"""Exact ridge regression with many outputs and an intercept, for a whole path of strengths."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

STRENGTHS = tuple(10.0**power for power in range(-4, 5))
"""The strengths to choose from on validation combinations."""


class RidgePath:
    """Ridge regression of `targets` on `features`: minimises |y - Xw - b|^2 + strength |w|^2.

    One eigendecomposition (in double precision) serves every strength and every output, which makes it faster than
    scikit-learn's Ridge over a path of strengths.

    Args:
        features: The predictors, (rows, columns).
        targets: The outputs, (rows, outputs).

    Example:
        ```python
        ridge = RidgePath(features, targets)
        r2 = {strength: mean_r2(targets, ridge.predict(features, strength)) for strength in (0.1, 1.0, 10.0)}
        ```
    """

    def __init__(self, features: Float[np.ndarray, "n d"], targets: Float[np.ndarray, "n k"]) -> None:
        features, targets = np.asarray(features, np.float64), np.asarray(targets, np.float64)
        self.feature_mean, self.target_mean = features.mean(0), targets.mean(0)
        centred, centred_targets = features - self.feature_mean, targets - self.target_mean
        # The smaller of the two Gram matrices.
        self._dual = centred.shape[0] < centred.shape[1]
        gram = centred @ centred.T if self._dual else centred.T @ centred
        self._values, self._vectors = np.linalg.eigh(gram)
        self._values = np.maximum(self._values, 0.0)
        self._centred = centred
        self._projected = self._vectors.T @ (centred_targets if self._dual else centred.T @ centred_targets)

    def weights(self, strength: float) -> Float[np.ndarray, "d k"]:
        """The weights at one positive strength."""
        solved = self._vectors @ (self._projected / (self._values + strength)[:, None])
        return self._centred.T @ solved if self._dual else solved

    def predict(self, features: Float[np.ndarray, "n d"], strength: float) -> Float[np.ndarray, "n k"]:
        """Predictions at one strength."""
        centred = np.asarray(features, np.float64) - self.feature_mean
        return centred @ self.weights(strength) + self.target_mean


def mean_r2(targets: Float[np.ndarray, "n k"], predictions: Float[np.ndarray, "n k"]) -> float:
    """Compute R2 averaged over outputs. Outputs that do not vary in `targets` are left out.

    Args:
        targets: The true outputs.
        predictions: The predicted outputs.

    Returns:
        The mean R2; NaN if no output varies.
    """
    targets = np.asarray(targets, np.float64)
    spread = ((targets - targets.mean(0)) ** 2).sum(0)
    error = ((targets - predictions) ** 2).sum(0)
    varies = spread > 1e-12 * len(targets)
    return float(np.mean(1 - error[varies] / spread[varies])) if varies.any() else float("nan")
