"""A linear probe that tells classes: discriminant analysis, exact, for a whole path of ridge strengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Num
from scipy import special

from recombine.probes.ridge import RidgePath

STRENGTHS = tuple(10.0**power for power in range(-4, 3))
"""Of the ridge, as shares of the mean variance of a feature. One is chosen on other combinations."""


class LinearProbe:
    """Regularised linear discriminant analysis of several questions at once, all values equally likely beforehand.

    A question has a column for each value. Its values exclude each other, or each is a question of its own (is it
    there or not?). The largest output of a ridge map to one-hot values would do for few values; of values that lie in
    a row (counts, sizes) it never names the middle ones. So the classes' means and their common spread are used,
    which follow from the same map: of all strengths and questions from one eigendecomposition.
    """

    def __init__(
        self,
        features: Float[np.ndarray, "row feature"],
        questions: list[Bool[np.ndarray, "row _"]],
        exclusive: list[bool],
    ) -> None:
        features = np.asarray(features, np.float64)
        self._exclusive = exclusive
        self._rows = len(features)
        self._counts = [question.sum(0) for question in questions]
        targets = np.concatenate(questions, axis=1).astype(np.float64)
        self._ridge = RidgePath(features, targets)
        self._ends = np.cumsum([0, *(question.shape[1] for question in questions)])
        # The mean features of the rows with each value. Values without rows are taken out later.
        self._means = targets.T @ features / np.maximum(targets.sum(0), 1)[:, None]
        centred = features - self._ridge.feature_mean
        # What a strength is a share of: a feature's sum of squares, in the mean. Where nothing varies, anything does.
        self._scale = float((centred**2).sum() / max(1, features.shape[1])) or 1.0

    def log_odds(
        self, features: Float[np.ndarray, "n feature"], strength: float, which: Sequence[int] | None = None
    ) -> list[Float[np.ndarray, "n value"]]:
        """For each question (or for some) the logarithm of each value's probability; of its odds where values do not exclude.

        Values that no fitted row had are not numbers; so is a value that all had or none, where none exclude.
        """
        chosen = strength * self._scale
        outputs = self._ridge.predict(features, chosen) - self._ridge.target_mean
        means = self._ridge.predict(self._means, chosen) - self._ridge.target_mean
        found = []
        for index in range(len(self._counts)) if which is None else which:
            block = slice(self._ends[index], self._ends[index + 1])
            tell = self._one_of if self._exclusive[index] else self._each
            found.append(tell(outputs[:, block], means[block, block], self._counts[index]))
        return found

    def _one_of(
        self,
        outputs: Float[np.ndarray, "n value"],
        means: Float[np.ndarray, "value value"],
        counts: Num[np.ndarray, " value"],
    ) -> Float[np.ndarray, "n value"]:
        """The values' log-probabilities."""
        # T is the total scatter with the ridge, M the centred means, N the counts: outputs are x T^-1 M' N. The scatter
        # within classes is T - M' N M, so by Woodbury's identity x A^-1 M' = (x T^-1 M') (1 - N M T^-1 M')^-1.
        found = np.full(outputs.shape, np.nan)
        there = np.flatnonzero(counts)
        sizes = counts[there].astype(np.float64)
        gram = means[np.ix_(there, there)] / sizes
        gram = (gram + gram.T) / 2
        inner = np.linalg.inv(np.eye(len(there)) - sizes[:, None] * gram)
        freedom = max(1, self._rows - len(there))
        towards = freedom * (outputs[:, there] / sizes) @ inner
        lengths = freedom * np.diag(gram @ inner)
        found[:, there] = special.log_softmax(towards - lengths / 2, axis=1)
        return found

    def _each(
        self,
        outputs: Float[np.ndarray, "n value"],
        means: Float[np.ndarray, "value value"],
        counts: Num[np.ndarray, " value"],
    ) -> Float[np.ndarray, "n value"]:
        """The log-odds of each value: the same with two classes, where the identity is a division."""
        size = counts.astype(np.float64)
        absent = self._rows - size
        with np.errstate(divide="ignore", invalid="ignore"):
            # Centred means of the rows with the value and without it lie on either side of zero.
            one, other = np.diag(means), -np.diag(means) * size / absent
            weight = size * absent / self._rows
            odds = (outputs - (one + other) / 2) / weight / (1 - (one - other))
            return np.where((size > 0) & (absent > 0), max(1, self._rows - 2) * odds, np.nan)
