"""The baselines that forecasts of losses must beat."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput
from recombine.stats.columns import Floats, numbers

COVERS = (0.7, 0.9)
"""The range of the coverage of good 80 % intervals."""


def last_value(
    loss: npt.ArrayLike,
    number: npt.ArrayLike,
    parameters: npt.ArrayLike | None = None,
    *,
    at: float,
    at_parameters: float | None = None,
) -> float:
    """The baseline of no change: the mean loss of the runs whose log sizes are nearest to the target's.

    Args:
        loss: The loss of each run.
        number: The number of training combinations of each run.
        parameters: The number of parameters of each run, if the forecast depends on it.
        at: The number of training combinations to forecast.
        at_parameters: The number of parameters to forecast, if `parameters` are given.

    Returns:
        The forecast loss.
    """
    log_loss, logs, target = _logs(loss, number, parameters, at, at_parameters)
    distance = np.linalg.norm(logs - target, axis=1)
    return float(np.exp(log_loss)[distance <= distance.min() + 1e-9].mean())


def log_linear(
    loss: npt.ArrayLike,
    number: npt.ArrayLike,
    parameters: npt.ArrayLike | None = None,
    *,
    at: float,
    at_parameters: float | None = None,
) -> float:
    """The baseline of a power law without a floor: a line of log loss on log sizes, by least squares.

    Takes and returns the same as `last_value`.
    """
    log_loss, logs, target = _logs(loss, number, parameters, at, at_parameters)
    if np.any(np.ptp(logs, axis=0) == 0):
        raise BadInput("A line needs at least 2 different sizes.", fix="add sizes, or leave parameters out")
    middle = logs.mean(0)  # where sizes are collinear, least squares takes the smallest slopes
    slopes = np.linalg.lstsq(logs - middle, log_loss - log_loss.mean(), rcond=None)[0]
    return math.exp(float(log_loss.mean() + (target - middle) @ slopes))


def _logs(
    loss: npt.ArrayLike, number: npt.ArrayLike, parameters: npt.ArrayLike | None, at: float, at_parameters: float | None
) -> tuple[Floats, Floats, Floats]:
    """Log loss, log sizes (points, sizes) and the log sizes of the forecast."""
    if (parameters is None) != (at_parameters is None):
        raise BadInput("Give parameters for all runs and for the forecast, or for none.")
    columns = numbers(1, loss=loss, number=number, **({} if parameters is None else {"parameters": parameters}))
    target = np.array([at] if at_parameters is None else [at, at_parameters], dtype=float)
    if min(*(column.min() for column in columns), target.min()) <= 0:
        raise BadInput("Losses and sizes must be positive.")
    return np.log(columns[0]), np.log(np.stack(columns[1:], axis=1)), np.log(target)
