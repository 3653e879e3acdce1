"""What a forecast must beat, and whether forecasts as a whole are any good."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput
from recombine.stats.columns import Floats, numbers
from recombine.stats.scaling_law import PREDICTIVE, Forecast

FEWEST = 20
"""How many forecasts it takes to call them good."""
COVERS = (0.7, 0.9)
"""The share of 80 % intervals that must hold what came."""


@dataclass(frozen=True)
class ForecastSkill:
    """How good forecasts were."""

    skill: dict[str, float]
    """1 less the ratio of mean squared errors to those of each baseline: 1 perfect, 0 no better than it."""
    coverage: float
    """The share of what came that lay in its interval."""
    number: int
    shortfalls: tuple[str, ...]
    """Which bars were missed, in words; none if all were met."""

    @property
    def met(self) -> bool:
        """Whether there were enough forecasts, with honest intervals, better than every baseline."""
        return not self.shortfalls


def last_value(
    loss: npt.ArrayLike,
    number: npt.ArrayLike,
    parameters: npt.ArrayLike | None = None,
    *,
    at: float,
    at_parameters: float | None = None,
) -> float:
    """The baseline that expects no change: the mean loss of the runs nearest in log sizes to the one asked about."""
    log_loss, logs, asked = _logs(loss, number, parameters, at, at_parameters)
    distance = np.linalg.norm(logs - asked, axis=1)
    return float(np.exp(log_loss)[distance <= distance.min() + 1e-9].mean())


def log_linear(
    loss: npt.ArrayLike,
    number: npt.ArrayLike,
    parameters: npt.ArrayLike | None = None,
    *,
    at: float,
    at_parameters: float | None = None,
) -> float:
    """The baseline of a power law without a floor: a straight line of log loss on log sizes, by least squares."""
    log_loss, logs, asked = _logs(loss, number, parameters, at, at_parameters)
    if np.any(np.ptp(logs, axis=0) == 0):
        raise BadInput("A line needs at least 2 different sizes.", fix="add sizes, or leave parameters out")
    middle = logs.mean(0)  # least squares takes the smallest slopes where sizes go together
    slopes = np.linalg.lstsq(logs - middle, log_loss - log_loss.mean(), rcond=None)[0]
    return math.exp(float(log_loss.mean() + (asked - middle) @ slopes))


def judge_forecasts(
    actual: npt.ArrayLike,
    forecasts: Sequence[Forecast],
    baselines: Mapping[str, npt.ArrayLike],
    scale: Literal["log", "plain"] = "log",
) -> ForecastSkill:
    """Skill against each baseline, coverage of the intervals, and which bars were missed.

    Errors are of log loss, so that small losses count as much as large ones, or of the loss itself (`plain`).
    The bars: at least 20 forecasts, 80 % intervals that cover .7 to .9, some skill against every baseline.
    """
    medians = [forecast.median for forecast in forecasts]
    came, said, *others = numbers(1, actual=actual, forecasts=medians, **baselines)
    if any(abs(forecast.level - PREDICTIVE) > 1e-9 for forecast in forecasts):
        raise BadInput(
            f"Forecasts are judged by intervals at {PREDICTIVE}.", fix="leave their level as it is"
        )
    if not baselines:
        raise BadInput("Forecasts without a baseline have no skill.", fix="give last_value and log_linear")
    if scale == "log" and min(column.min() for column in (came, said, *others)) <= 0:
        raise BadInput("Losses must be positive.", fix='leave those out, or say scale="plain"')
    transform = np.log if scale == "log" else np.asarray
    error = float(np.mean((transform(said) - transform(came)) ** 2))
    theirs = {
        name: float(np.mean((transform(other) - transform(came)) ** 2))
        for name, other in zip(baselines, others, strict=True)
    }
    skill = {name: _skill(error, other) for name, other in theirs.items()}
    inside = [forecast.low <= value <= forecast.high for forecast, value in zip(forecasts, came, strict=True)]
    coverage = float(np.mean(inside))
    shortfalls = []
    if len(came) < FEWEST:
        shortfalls.append(f"{len(came)} of at least {FEWEST} forecasts")
    if not COVERS[0] <= coverage <= COVERS[1]:
        shortfalls.append(f"intervals cover {coverage:.2f}, not {COVERS[0]:g} to {COVERS[1]:g}")
    shortfalls += [f"no skill against {name}: {value:.2f}" for name, value in skill.items() if not value > 0]
    return ForecastSkill(skill, coverage, len(came), tuple(shortfalls))


def _skill(error: float, other: float) -> float:
    if other > 0:
        return 1 - error / other
    return 0.0 if error == 0 else -math.inf


def _logs(
    loss: npt.ArrayLike,
    number: npt.ArrayLike,
    parameters: npt.ArrayLike | None,
    at: float,
    at_parameters: float | None,
) -> tuple[Floats, Floats, Floats]:
    """Log loss, log sizes (points, sizes) and the log sizes asked about."""
    if (parameters is None) != (at_parameters is None):
        raise BadInput("Parameters must be given for all runs and for the one asked about, or for none.")
    columns = numbers(
        1, loss=loss, number=number, **({} if parameters is None else {"parameters": parameters})
    )
    asked = np.array([at] if at_parameters is None else [at, at_parameters], dtype=float)
    if min(*(column.min() for column in columns), asked.min()) <= 0:
        raise BadInput("Losses and sizes must be positive.")
    return np.log(columns[0]), np.log(np.stack(columns[1:], axis=1)), np.log(asked)
