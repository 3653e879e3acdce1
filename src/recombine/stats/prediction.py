"""Who predicts failure best: logistic regression fitted on some runs, scored on others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from recombine.errors import BadInput
from recombine.stats.columns import Floats, codes, numbers
from recombine.stats.intervals import LEVEL

SMALLEST = float(np.finfo(float).eps)
"""A chance is never taken to be nearer to 0 or 1 than this, so one sure and wrong prediction is not infinitely bad."""
MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class Logistic:
    """A fitted logistic regression, with the standardisation that was learned with it."""

    mean: Floats
    scale: Floats
    intercept: float
    weights: Floats
    """For standardised columns."""

    def probability(self, columns: npt.ArrayLike) -> Floats:
        """The chance of a 1 for each row."""
        given = _table(columns)
        if given.shape[1] != len(self.mean):
            raise BadInput(f"{len(self.mean)} columns were fitted, got {given.shape[1]}.")
        return special.expit(self.intercept + (given - self.mean) / self.scale @ self.weights)


def fit_logistic(columns: npt.ArrayLike, y: npt.ArrayLike, penalty: float = 1.0) -> Logistic:
    """Logistic regression by Newton's method, with half the `penalty` times the squared weights added to the loss.

    Columns are standardised first; the intercept is not penalised. Columns that are equal share their weight, one
    that does not vary gets none.
    """
    given = _table(columns)
    (outcome,) = numbers(2, y=y)
    _check_outcome(outcome)
    if len(given) != len(outcome):
        raise BadInput(f"There are {len(given)} rows and {len(outcome)} outcomes.")
    if outcome.min() == outcome.max():
        raise BadInput(
            f"All {len(outcome)} outcomes are {outcome[0]:g}, so nothing tells them apart.",
            fix="fit on runs that have both",
        )
    if not penalty > 0:
        raise BadInput(f"The penalty must be positive, got {penalty}.", fix="1 is usual")
    mean, scale = given.mean(0), given.std(0)
    scale = np.where(scale > 1e-12 * np.maximum(1, np.abs(mean)), scale, np.inf)
    design = np.concatenate([np.ones((len(given), 1)), (given - mean) / scale], axis=1)
    ridge = np.append(0.0, np.full(given.shape[1], penalty))
    where = np.zeros(design.shape[1])
    where[0] = special.logit(outcome.mean())
    for _ in range(MOST_STEPS):
        chance = special.expit(design @ where)
        gradient = design.T @ (chance - outcome) + ridge * where
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(curvature, -gradient)
        rate, before = 1.0, _penalised(where, design, outcome, ridge)
        while rate > 1e-8 and _penalised(where + rate * step, design, outcome, ridge) > before:
            rate /= 2
        where = where + rate * step
        if np.abs(step).max() < 1e-10:
            break
    return Logistic(mean, scale, float(where[0]), where[1:])


def log_loss(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """The mean of minus the log chance that was given to what came."""
    chance, outcome = _chances(p, y)
    bounded = np.clip(chance, SMALLEST, 1 - SMALLEST)
    return float(-np.mean(outcome * np.log(bounded) + (1 - outcome) * np.log1p(-bounded)))


def brier(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """The mean squared difference between the chance and what came."""
    chance, outcome = _chances(p, y)
    return float(np.mean((chance - outcome) ** 2))


class CalibrationBin(NamedTuple):
    """Predictions of about the same chance, and what came of them."""

    predicted: float
    """Their mean."""
    observed: float
    """The share that came true."""
    low: float
    high: float
    """The ends of Wilson's interval of that share."""
    number: int


def calibration_table(
    p: npt.ArrayLike, y: npt.ArrayLike, bins: int = 10, level: float = LEVEL
) -> list[CalibrationBin]:
    """Predictions in `bins` of equal width from 0 to 1, empty ones left out."""
    chance, outcome = _chances(p, y)
    if bins < 1:
        raise BadInput(f"At least 1 bin is needed, got {bins}.")
    at = np.minimum((chance * bins).astype(np.intp), bins - 1)
    table = []
    for index in np.unique(at):
        predicted, came = chance[at == index], outcome[at == index]
        share, count = float(came.mean()), len(came)
        low, high = wilson(share, count, level)
        table.append(CalibrationBin(float(predicted.mean()), share, low, high, count))
    return table


def calibration_error(p: npt.ArrayLike, y: npt.ArrayLike, bins: int = 10) -> float:
    """The expected calibration error: the mean distance of chance and share over bins, weighted by their numbers."""
    table = calibration_table(p, y, bins)
    total = sum(row.number for row in table)
    return sum(row.number * abs(row.predicted - row.observed) for row in table) / total


def wilson(share: float, count: int, level: float = LEVEL) -> tuple[float, float]:
    """The ends of Wilson's interval of a share."""
    z = float(special.ndtri((1 + level) / 2))
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return (0.0 if share == 0 else middle - half), (1.0 if share == 1 else middle + half)


@dataclass(frozen=True, eq=False)
class Race:
    """How well each predictor did on runs that it was not fitted on."""

    groups: npt.NDArray
    """The unseen runs."""
    base_rate: float
    """The share of 1 in the runs that were fitted."""
    base_loss: Floats
    """For each unseen run the log-loss of always saying the base rate."""
    loss: dict[str, Floats]
    """For each predictor the log-loss in each unseen run."""
    gain: dict[str, Floats]
    """How much smaller than the base rate's it is: one number a run, for intervals and paired differences."""
    chances: dict[str, Floats]
    """For each predictor the chance it gave to each row of the unseen runs, in their order in the data."""
    outcome: Floats
    """What came in these rows."""


def race(
    predictors: Mapping[str, npt.ArrayLike],
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    train_groups: npt.ArrayLike,
    penalty: float = 1.0,
) -> Race:
    """Fits each predictor (a column, or several) on some runs and scores it on all others, run by run.

    Runs are split whole, so nothing that is particular to a run helps. A run in which all outcomes are equal has a
    log-loss like any other. The base rate is (ones + 1/2) / (rows + 1) of the training runs, never 0 or 1.
    """
    (outcome,) = numbers(2, y=y)
    _check_outcome(outcome)
    grouped, groups = codes(group, len(outcome))
    wanted = np.unique(np.asarray(train_groups))
    unknown = wanted[~np.isin(wanted, groups)]
    if len(unknown):
        raise BadInput(f"No row belongs to the training runs {unknown.tolist()}.")
    seen = np.isin(groups, wanted)
    if not seen.any() or seen.all():
        raise BadInput(
            f"{int(seen.sum())} of {len(groups)} runs are for training.", fix="leave runs on both sides"
        )
    train = seen[grouped]
    base = (outcome[train].sum() + 0.5) / (train.sum() + 1)
    unseen = np.flatnonzero(~seen)
    rows = [grouped == index for index in unseen]
    base_loss = np.array([log_loss(np.full(row.sum(), base), outcome[row]) for row in rows])
    loss, chances = {}, {}
    for name, columns in predictors.items():
        given = _table(columns)
        if len(given) != len(outcome):
            raise BadInput(
                f"Predictor {name!r} has {len(given)} rows, but there are {len(outcome)} outcomes."
            )
        fitted = fit_logistic(given[train], outcome[train], penalty)
        loss[name] = np.array([log_loss(fitted.probability(given[row]), outcome[row]) for row in rows])
        chances[name] = fitted.probability(given[~train])
    gain = {name: base_loss - losses for name, losses in loss.items()}
    return Race(groups[unseen], float(base), base_loss, loss, gain, chances, outcome[~train])


def _penalised(where: Floats, design: Floats, outcome: Floats, ridge: Floats) -> float:
    score = design @ where
    return float((np.logaddexp(0, score) - outcome * score).sum() + 0.5 * (ridge * where**2).sum())


def _table(columns: npt.ArrayLike) -> Floats:
    given = np.asarray(columns, dtype=float)
    given = given[:, None] if given.ndim == 1 else given
    if given.ndim != 2 or not np.isfinite(given).all():
        raise BadInput(f"Predictors must be finite, (rows,) or (rows, columns); got the shape {given.shape}.")
    return given


def _check_outcome(outcome: Floats) -> None:
    if not np.all((outcome == 0) | (outcome == 1)):
        raise BadInput("Outcomes must be 0 or 1.", fix="compare the score with a threshold first")


def _chances(p: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    chance, outcome = numbers(1, p=p, y=y)
    _check_outcome(outcome)
    if chance.min() < 0 or chance.max() > 1:
        raise BadInput(f"Chances lie between 0 and 1, got {chance.min():g} to {chance.max():g}.")
    return chance, outcome
