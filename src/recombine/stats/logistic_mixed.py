"""Mixed logistic regression: points of one group share a random intercept, drawn from a normal distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from recombine.errors import BadInput
from recombine.stats.columns import Codes, Floats, codes, numbers
from recombine.stats.intervals import LEVEL, Interval

NODES = 15
"""Nodes of the quadrature over a group's intercept."""
MAX_STEPS = 500
GRADIENT_TOLERANCE = 1e-6
FIRST_SPREAD = 1.0
"""The spread at which fitting starts."""
NO_SPREAD = 1e-2
"""A smaller spread counts as 0: the likelihood is flat there."""
LARGEST = 15.0
"""The largest weight of a standardised column, in log-odds. Beyond it the column is taken to separate the outcomes."""
STEP = 1e-4
"""The step of the finite differences for the curvature."""


@dataclass(frozen=True, eq=False)
class MixedLogistic:
    """A fitted mixed logistic regression. Weights are log-odds per unit of the columns as given."""

    names: tuple[str, ...]
    intercept: float
    weights: Floats
    covariance: Floats
    """The covariance of the weights' estimates."""
    spread: float
    """The standard deviation of the groups' intercepts, in log-odds."""
    rows: int
    groups: int

    def interval(self, name: str, level: float = LEVEL) -> Interval:
        """The weight of a column with its Wald interval."""
        weight, error = float(self.weights[self.names.index(name)]), self.error(name)
        half = float(special.ndtri((1 + level) / 2)) * error
        return Interval(weight, weight - half, weight + half, self.groups, level, "mixed logistic, Wald")

    def error(self, name: str) -> float:
        """The standard error of a weight."""
        index = self.names.index(name)
        return math.sqrt(float(self.covariance[index, index]))

    def difference(self, first: str, second: str) -> tuple[float, float]:
        """The difference of two weights and its standard error."""
        a, b = self.names.index(first), self.names.index(second)
        covariance = self.covariance
        variance = float(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b])
        return float(self.weights[a] - self.weights[b]), math.sqrt(max(variance, 0.0))


def fit_logistic_mixed(
    columns: Mapping[str, npt.ArrayLike],
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    *,
    penalty: float = 0.0,
    spread: float | None = None,
) -> MixedLogistic:
    """Fit a logistic regression with a random intercept per group, by maximum likelihood.

    Intercepts are integrated out by adaptive Gauss-Hermite quadrature. Intervals are Wald's, from the observed
    information, and include the uncertainty of the spread. Simulated coverage at .95, of a column that varies within and
    of one that varies between groups: .95 and .96 with 60 groups of 4, .96 and .93 with 30 groups of 6.

    With `spread=0` this is ordinary logistic regression. It does not use scikit-learn, which has no standard errors: here
    they follow from the curvature of the same loss.

    Args:
        columns: The predictors by name.
        y: The outcome of each point, 0 or 1.
        group: The group of each point.
        penalty: Adds `penalty / 2` times the squared weights of standardised columns to the loss. A small penalty keeps
            weights finite where a column separates the outcomes.
        spread: Fixes the standard deviation of intercepts instead of fitting it.

    Returns:
        Weights with their covariance, and the spread.
    """
    given = numbers(2, **{"the outcome": y, **columns})
    outcome, table = given[0], np.stack(given[1:], axis=1) if columns else np.zeros((len(given[0]), 0))
    grouped, groups = codes(group, len(outcome))
    _check(outcome, table, tuple(columns), penalty, spread)
    order = np.argsort(grouped, kind="stable")
    mean, scale = table.mean(0), table.std(0)
    design = np.concatenate([np.ones((len(table), 1)), (table - mean) / scale], axis=1)
    loss = _Loss(design[order], outcome[order], grouped[order], penalty, spread)
    where = loss.lowest()
    weights = where[1 : design.shape[1]]
    if np.abs(weights).max(initial=0.0) > LARGEST:
        name = tuple(columns)[int(np.abs(weights).argmax())]
        raise BadInput(
            f"{name!r} separates the outcomes without error, so its weight is not finite.",
            fix="give a small penalty, e.g. 0.01, or leave the column out",
        )
    fitted_spread = abs(float(where[-1])) if spread is None else spread
    # Without spread, its uncertainty does not affect the weights.
    inner = slice(1, design.shape[1])
    curvature = loss.curvature(where)
    used = curvature[: design.shape[1], : design.shape[1]] if fitted_spread < NO_SPREAD else curvature
    covariance = np.linalg.pinv(used, hermitian=True)[inner, inner]
    return MixedLogistic(
        tuple(columns),
        float(where[0] - (mean / scale) @ weights),
        weights / scale,
        covariance / np.outer(scale, scale),
        0.0 if spread is None and fitted_spread < NO_SPREAD else fitted_spread,
        len(outcome),
        len(groups),
    )


def independent(columns: Mapping[str, npt.ArrayLike]) -> tuple[list[str], list[str]]:
    """Split columns into those that are linearly independent of an intercept and the columns before them, and the rest.

    Args:
        columns: The columns by name, in order of priority.

    Returns:
        The names of the independent columns, and the names of the redundant ones.
    """
    kept, redundant = [], []
    basis = None
    for name, values in columns.items():
        column = np.asarray(values, dtype=float)
        basis = np.full((len(column), 1), 1 / math.sqrt(len(column))) if basis is None else basis
        rest = column - column.mean()
        size = float(np.linalg.norm(rest))
        for _ in range(2):  # Twice, because rounding remains after the first.
            rest = rest - basis @ (basis.T @ rest)
        if float(np.linalg.norm(rest)) <= 1e-7 * max(size, 1e-9 * float(np.abs(column).max(initial=0.0)), 1e-300):
            redundant.append(name)
            continue
        kept.append(name)
        basis = np.concatenate([basis, (rest / np.linalg.norm(rest))[:, None]], axis=1)
    return kept, redundant


class _Loss:
    """The negative log-likelihood and its gradient. Rows are sorted by group."""

    def __init__(self, design: Floats, outcome: Floats, group: Codes, penalty: float, spread: float | None) -> None:
        self._design, self._outcome, self._group, self._spread = design, outcome, group, spread
        self._first = np.flatnonzero(np.append(True, np.diff(group) > 0))
        self._ridge = np.append(0.0, np.full(design.shape[1] - 1, penalty))
        self._nodes, weights = np.polynomial.hermite.hermgauss(NODES)
        self._log_weights = np.log(weights) + self._nodes**2

    def lowest(self) -> Floats:
        """The minimum of the loss: the intercept, the weights, and the spread if it is not fixed."""
        count = self._design.shape[1]
        start = np.zeros(count + (self._spread is None))
        start[0] = special.logit(self._outcome.mean())
        if self._spread is None:
            start[-1] = FIRST_SPREAD
        options = {"maxiter": MAX_STEPS, "gtol": GRADIENT_TOLERANCE}
        where = optimize.minimize(self, start, jac=True, method="BFGS", options=options).x
        if np.abs(where).max() <= LARGEST:
            # BFGS ends where its line search fails; one step of Newton's method goes on from there.
            value, gradient = self(where)
            step = -np.linalg.pinv(self.curvature(where), hermitian=True) @ gradient
            if self(where + step)[0] <= value:
                where = where + step
        return where

    def __call__(self, where: Floats) -> tuple[float, Floats]:
        count = self._design.shape[1]
        weights = where[:count]
        # The loss does not depend on the sign of the spread, which may end on either side of 0.
        spread = float(where[-1]) if self._spread is None else self._spread
        base = self._design @ weights
        middle, width = self._modes(base, spread)
        nodes = middle[:, None] + math.sqrt(2) * width[:, None] * self._nodes
        intercepts = nodes[self._group]
        odds = base[:, None] + spread * intercepts
        log_likelihood = self._outcome[:, None] * odds - np.logaddexp(0, odds)
        joint = np.add.reduceat(log_likelihood, self._first) - nodes**2 / 2 + self._log_weights
        total = np.asarray(special.logsumexp(joint, axis=1))
        # The constant: that of the normal density, less the square root of pi in the quadrature's weights.
        value = -(total + np.log(width)).sum() + len(total) * math.log(math.pi) / 2
        share = np.exp(joint - total[:, None])[self._group]
        residual = self._outcome[:, None] - special.expit(odds)
        gradient = -self._design.T @ (share * residual).sum(1) + self._ridge * weights
        value += float(self._ridge @ weights**2) / 2
        if self._spread is None:
            gradient = np.append(gradient, -(share * residual * intercepts).sum())
        return float(value), gradient

    def _modes(self, base: Floats, spread: float) -> tuple[Floats, Floats]:
        """The mode of each group's intercept, in units of the spread, and the width there: by Newton's method."""
        middle = np.zeros(len(self._first))
        for _ in range(50):
            chance = special.expit(base + spread * middle[self._group])
            gradient = spread * np.add.reduceat(self._outcome - chance, self._first) - middle
            curvature = 1 + spread**2 * np.add.reduceat(chance * (1 - chance), self._first)
            step = np.clip(gradient / curvature, -2, 2)
            middle = middle + step
            if np.abs(step).max() < 1e-10:
                break
        chance = special.expit(base + spread * middle[self._group])
        curvature = 1 + spread**2 * np.add.reduceat(chance * (1 - chance), self._first)
        return middle, 1 / np.sqrt(curvature)

    def curvature(self, where: Floats) -> Floats:
        """Second derivatives, from finite differences of the gradient."""
        rows = []
        for index in range(len(where)):
            offset = np.zeros(len(where))
            offset[index] = STEP
            rows.append((self(where + offset)[1] - self(where - offset)[1]) / (2 * STEP))
        matrix = np.stack(rows)
        return (matrix + matrix.T) / 2


def _check(outcome: Floats, table: Floats, names: tuple[str, ...], penalty: float, spread: float | None) -> None:
    if not np.isin(outcome, (0, 1)).all():
        raise BadInput("Outcomes must be 0 or 1.", fix="give 1 for each right answer and 0 for each wrong one")
    if outcome.min() == outcome.max():
        raise BadInput(
            f"All {len(outcome)} outcomes are {outcome[0]:g}, so there is nothing to fit.",
            fix="use questions that are sometimes answered correctly",
        )
    if not penalty >= 0 or (spread is not None and not 0 <= spread < math.inf):
        raise BadInput(f"Penalty and spread must be 0 or more, got {penalty} and {spread}.")
    _, redundant = independent(dict(zip(names, table.T, strict=True)))
    if redundant:
        raise BadInput(
            f"The column {redundant[0]!r} is constant, or a linear combination of the columns before it.",
            fix="leave it out; `independent` finds such columns",
        )
