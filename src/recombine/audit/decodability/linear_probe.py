"""A linear probe for classes: exact discriminant analysis for a whole path of ridge strengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Num
from scipy import special

from recombine.probes.ridge import RidgePath

STRENGTHS = tuple(10.0**power for power in range(-4, 3))
"""Ridge strengths, as shares of the mean variance of a feature. One is chosen on other combinations."""

Features = Float[np.ndarray, "row feature"]
LogOdds = Float[np.ndarray, "n value"]
Means = Float[np.ndarray, "value value"]
Counts = Num[np.ndarray, " value"]


class LinearProbe:
    """Regularised linear discriminant analysis of several questions at once, with a uniform prior over values.

    A question has one column per value. Either its values exclude each other, or each value is a question by itself
    (present or absent?). The largest output of a ridge map to one-hot values would never name the middle values of an
    ordered factor (counts, sizes). So the class means and their common covariance are used. They follow from the same
    ridge map, for all strengths and questions from one eigendecomposition.
    """

    def __init__(self, features: Features, questions: list[Bool[np.ndarray, "row _"]], exclusive: list[bool]) -> None:
        features = np.asarray(features, np.float64)
        self._exclusive = exclusive
        self._rows = len(features)
        self._counts = [question.sum(0) for question in questions]
        targets = np.concatenate(questions, axis=1).astype(np.float64)
        self._ridge = RidgePath(features, targets)
        self._ends = np.cumsum([0, *(question.shape[1] for question in questions)])
        # The mean features of the rows with each value. Values without rows are removed later.
        self._means = targets.T @ features / np.maximum(targets.sum(0), 1)[:, None]
        centred = features - self._ridge.feature_mean
        # A strength is a share of the mean sum of squares of a feature. Any scale works if nothing varies.
        self._scale = float((centred**2).sum() / max(1, features.shape[1])) or 1.0

    def log_odds(self, features: Features, strength: float, which: Sequence[int] | None = None) -> list[LogOdds]:
        """For each question (or those in `which`): the log-probability of each value, or its log-odds if values do not exclude each other.

        NaN marks values that no fitted row has, and non-exclusive values that all fitted rows have or none has.
        """
        chosen = strength * self._scale
        outputs = self._ridge.predict(features, chosen) - self._ridge.target_mean
        means = self._ridge.predict(self._means, chosen) - self._ridge.target_mean
        results = []
        for index in range(len(self._counts)) if which is None else which:
            block = slice(self._ends[index], self._ends[index + 1])
            evaluate = self._one_of if self._exclusive[index] else self._each
            results.append(evaluate(outputs[:, block], means[block, block], self._counts[index]))
        return results

    def _one_of(self, outputs: LogOdds, means: Means, counts: Counts) -> LogOdds:
        """Log-probabilities of values that exclude each other."""
        # T is the total scatter with the ridge, M the centred means, N the counts: outputs are x T^-1 M' N. The scatter
        # within classes is T - M' N M, so by Woodbury's identity x A^-1 M' = (x T^-1 M') (1 - N M T^-1 M')^-1.
        result = np.full(outputs.shape, np.nan)
        present = np.flatnonzero(counts)
        sizes = counts[present].astype(np.float64)
        gram = means[np.ix_(present, present)] / sizes
        gram = (gram + gram.T) / 2
        inner = np.linalg.inv(np.eye(len(present)) - sizes[:, None] * gram)
        freedom = max(1, self._rows - len(present))
        towards = freedom * (outputs[:, present] / sizes) @ inner
        lengths = freedom * np.diag(gram @ inner)
        result[:, present] = special.log_softmax(towards - lengths / 2, axis=1)
        return result

    def _each(self, outputs: LogOdds, means: Means, counts: Counts) -> LogOdds:
        """The log-odds of each value by itself: two classes, for which the identity is a division."""
        size = counts.astype(np.float64)
        absent = self._rows - size
        with np.errstate(divide="ignore", invalid="ignore"):
            # The centred means of the rows with and without the value have opposite signs.
            with_value, without = np.diag(means), -np.diag(means) * size / absent
            weight = size * absent / self._rows
            odds = (outputs - (with_value + without) / 2) / weight / (1 - (with_value - without))
            return np.where((size > 0) & (absent > 0), max(1, self._rows - 2) * odds, np.nan)
