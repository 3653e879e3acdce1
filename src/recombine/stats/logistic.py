"""Logistic regression by scikit-learn. The mixed model, with a random intercept per group, is in `logistic_mixed`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from recombine.errors import BadInput
from recombine.stats.columns import Floats, numbers

FEW_COLUMNS = 50
"""Two classes and at most this many columns are fitted by Newton's method: exact, and as fast as L-BFGS."""
TOLERANCE = {"newton-cholesky": 1e-12, "lbfgs": 1e-6}
MAX_STEPS = 5000


@dataclass(frozen=True, eq=False)
class Logistic:
    """A fitted logistic regression, with the standardisation of its columns."""

    mean: Floats
    scale: Floats
    intercept: float
    weights: Floats
    """For standardised columns."""

    def probability(self, columns: npt.ArrayLike) -> Floats:
        """The probability of a 1 for each row."""
        table = as_table(columns)
        if table.shape[1] != len(self.mean):
            raise BadInput(f"{len(self.mean)} columns were fitted, got {table.shape[1]}.")
        return special.expit(self.intercept + (table - self.mean) / self.scale @ self.weights)


def fit_logistic(columns: npt.ArrayLike, y: npt.ArrayLike, penalty: float = 1.0) -> Logistic:
    """Fit a logistic regression with an L2 penalty on standardised columns.

    The loss is the summed log loss plus `penalty / 2` times the squared weights; the intercept is not penalised.
    Equal columns share their weight, and a column that does not vary has weight 0.

    Args:
        columns: The predictors, (rows,) or (rows, columns).
        y: The outcome of each row, 0 or 1.
        penalty: The strength of the penalty, positive.

    Returns:
        The fitted model. `probability(columns)` predicts new rows.

    Example:
        ```python
        model = fit_logistic([[0.1], [0.4], [0.5], [0.9]], [0, 0, 1, 1])
        model.probability([[0.7]])
        ```
    """
    table = as_table(columns)
    (outcome,) = numbers(2, y=y)
    check_outcome(outcome)
    if len(table) != len(outcome):
        raise BadInput(f"There are {len(table)} rows and {len(outcome)} outcomes.")
    if outcome.min() == outcome.max():
        raise BadInput(
            f"All {len(outcome)} outcomes are {outcome[0]:g}, so there is nothing to fit.",
            fix="fit on runs that have both outcomes",
        )
    if not penalty > 0:
        raise BadInput(f"The penalty must be positive, got {penalty}.", fix="1 is usual")
    mean, scale = table.mean(0), table.std(0)
    scale = np.where(scale > 1e-12 * np.maximum(1, np.abs(mean)), scale, np.inf)
    weights, intercept = logistic_weights((table - mean) / scale, outcome, penalty)
    return Logistic(mean, scale, float(intercept[0]), weights[:, 0])


def logistic_weights(
    features: Floats, labels: npt.NDArray, penalty: float, row_weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Minimise the summed log loss plus `penalty / 2` times the squared weights, without any scaling of features.

    Args:
        features: Predictors, (rows, columns).
        labels: The class of each row; there must be at least two classes.
        penalty: The strength of the penalty, positive.
        row_weights: The weight of each row's loss; 1 by default.

    Returns:
        Weights (columns, classes) and intercepts (classes) of a softmax over the sorted classes. With two classes there
        is one column: the log-odds of the second class.
    """
    from sklearn.exceptions import ConvergenceWarning  # slow to import
    from sklearn.linear_model import LogisticRegression

    newton = features.shape[1] <= FEW_COLUMNS and len(np.unique(labels)) == 2
    solver = "newton-cholesky" if newton else "lbfgs"
    model = LogisticRegression(C=1 / penalty, solver=solver, tol=TOLERANCE[solver], max_iter=MAX_STEPS)
    with warnings.catch_warnings():
        # At the optimum a line search cannot improve further; Newton's method then hands over to L-BFGS.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, labels, sample_weight=row_weights)
    return np.asarray(model.coef_.T), np.asarray(model.intercept_)


def as_table(columns: npt.ArrayLike) -> Floats:
    """Finite predictors as (rows, columns); a flat array is one column."""
    table = np.asarray(columns, dtype=float)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or not np.isfinite(table).all():
        raise BadInput(f"Predictors must be finite, (rows,) or (rows, columns); got the shape {table.shape}.")
    return table


def check_outcome(outcome: Floats) -> None:
    """Outcomes must be 0 or 1."""
    if not np.all((outcome == 0) | (outcome == 1)):
        raise BadInput("Outcomes must be 0 or 1.", fix="compare the score with a threshold first")
