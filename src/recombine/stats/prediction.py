"""Predictors of failure: logistic regressions fitted on some runs and scored on others; log loss and calibration."""

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
from recombine.stats.logistic import as_table, check_outcome, fit_logistic

SMALLEST = float(np.finfo(float).eps)
"""Probabilities are clipped this far from 0 and 1, so that the log loss of a wrong prediction is finite."""


def log_loss(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Compute the mean negative log-likelihood of outcomes.

    Args:
        p: The predicted probability of a 1.
        y: The outcomes, 0 or 1.

    Returns:
        The mean over all predictions, in nats.
    """
    probability, outcome = _checked(p, y)
    bounded = np.clip(probability, SMALLEST, 1 - SMALLEST)
    return float(-np.mean(outcome * np.log(bounded) + (1 - outcome) * np.log1p(-bounded)))


def brier(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Compute the Brier score: the mean squared difference between probability and outcome.

    Args:
        p: The predicted probability of a 1.
        y: The outcomes, 0 or 1.

    Returns:
        The score; 0 is perfect.
    """
    probability, outcome = _checked(p, y)
    return float(np.mean((probability - outcome) ** 2))


class CalibrationBin(NamedTuple):
    """Predictions of about the same probability, and their outcomes."""

    predicted: float
    """The mean predicted probability."""
    observed: float
    """The share of outcomes that are 1."""
    low: float
    high: float
    """The ends of Wilson's interval of the share."""
    number: int


def calibration_table(p: npt.ArrayLike, y: npt.ArrayLike, bins: int = 10, level: float = LEVEL) -> list[CalibrationBin]:
    """Compare predicted probabilities with the share of outcomes, in bins of equal width from 0 to 1.

    Args:
        p: The predicted probability of a 1.
        y: The outcomes, 0 or 1.
        bins: The number of bins.
        level: The level of the intervals.

    Returns:
        One entry per bin that is not empty.
    """
    probability, outcome = _checked(p, y)
    if bins < 1:
        raise BadInput(f"At least 1 bin is needed, got {bins}.")
    bin_of = np.minimum((probability * bins).astype(np.intp), bins - 1)
    table = []
    for index in np.unique(bin_of):
        predicted, observed = probability[bin_of == index], outcome[bin_of == index]
        share, count = float(observed.mean()), len(observed)
        low, high = wilson(share, count, level)
        table.append(CalibrationBin(float(predicted.mean()), share, low, high, count))
    return table


def calibration_error(p: npt.ArrayLike, y: npt.ArrayLike, bins: int = 10) -> float:
    """Compute the expected calibration error: |probability - share| averaged over bins, weighted by their size.

    Args:
        p: The predicted probability of a 1.
        y: The outcomes, 0 or 1.
        bins: The number of bins of equal width.

    Returns:
        The error; 0 is perfectly calibrated.
    """
    table = calibration_table(p, y, bins)
    total = sum(row.number for row in table)
    return sum(row.number * abs(row.predicted - row.observed) for row in table) / total


def wilson(share: float, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Compute Wilson's interval of a share.

    Args:
        share: The observed share, 0 to 1.
        count: The number of trials.
        level: The level of the interval.

    Returns:
        The lower and the upper end.
    """
    z = float(special.ndtri((1 + level) / 2))
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return (0.0 if share == 0 else middle - half), (1.0 if share == 1 else middle + half)


@dataclass(frozen=True, eq=False)
class Race:
    """The log loss of several predictors on runs that they were not fitted on."""

    groups: npt.NDArray
    """The runs that are scored."""
    base_rate: float
    """The share of 1 in the fitting runs."""
    base_loss: Floats
    """The log loss of the base rate in each scored run."""
    loss: dict[str, Floats]
    """The log loss in each scored run, by predictor."""
    gain: dict[str, Floats]
    """The base rate's log loss less the predictor's: one number per run, for intervals and paired differences."""
    chances: dict[str, Floats]
    """The predicted probability of each row of the scored runs, by predictor, in the order of the data."""
    outcome: Floats
    """The outcomes of these rows."""


def race(
    predictors: Mapping[str, npt.ArrayLike],
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    train_groups: npt.ArrayLike,
    penalty: float = 1.0,
) -> Race:
    """Fit each predictor on some runs by logistic regression, and score it on all others.

    Runs are never split, so a predictor gains nothing from knowing the run. The base rate is (ones + 1/2) / (rows + 1) of
    the fitting runs, so it is never 0 or 1.

    Args:
        predictors: One column, or several, per predictor.
        y: The outcome of each row, 0 or 1.
        group: The run of each row.
        train_groups: The runs to fit on.
        penalty: The L2 penalty of the regressions.

    Returns:
        The log loss of each predictor in each run that was not fitted on.
    """
    (outcome,) = numbers(2, y=y)
    check_outcome(outcome)
    grouped, groups = codes(group, len(outcome))
    wanted = np.unique(np.asarray(train_groups))
    unknown = wanted[~np.isin(wanted, groups)]
    if len(unknown):
        raise BadInput(f"No row belongs to the training runs {unknown.tolist()}.")
    seen = np.isin(groups, wanted)
    if not seen.any() or seen.all():
        raise BadInput(f"{int(seen.sum())} of {len(groups)} runs are for training.", fix="keep runs on both sides")
    train = seen[grouped]
    base = (outcome[train].sum() + 0.5) / (train.sum() + 1)
    unseen = np.flatnonzero(~seen)
    rows = [grouped == index for index in unseen]
    base_loss = np.array([log_loss(np.full(row.sum(), base), outcome[row]) for row in rows])
    loss, chances = {}, {}
    for name, columns in predictors.items():
        given = as_table(columns)
        if len(given) != len(outcome):
            raise BadInput(f"Predictor {name!r} has {len(given)} rows, but there are {len(outcome)} outcomes.")
        fitted = fit_logistic(given[train], outcome[train], penalty)
        loss[name] = np.array([log_loss(fitted.probability(given[row]), outcome[row]) for row in rows])
        chances[name] = fitted.probability(given[~train])
    gain = {name: base_loss - losses for name, losses in loss.items()}
    return Race(groups[unseen], float(base), base_loss, loss, gain, chances, outcome[~train])


def _checked(p: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    probability, outcome = numbers(1, p=p, y=y)
    check_outcome(outcome)
    if probability.min() < 0 or probability.max() > 1:
        raise BadInput(f"Probabilities lie between 0 and 1, got {probability.min():g} to {probability.max():g}.")
    return probability, outcome
