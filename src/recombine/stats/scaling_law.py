"""Scaling laws of loss by data and parameters, E + A N^-a + B P^-b: fitted, extrapolated with intervals, inverted."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from recombine.errors import BadInput
from recombine.stats.columns import Floats, numbers

REACH = 4.0
"""The largest size that a law forecasts, relative to the largest fitted size. Further out it is a guess."""
PREDICTIVE = 0.8
"""The default level of forecast intervals."""

KNEE = 0.05
"""The residual of log loss from which Huber's loss is linear."""
EXPONENTS = (1e-3, 10.0)
"""The smallest and the largest exponent."""
DEEPEST_FLOOR = 1e-6
"""The smallest floor, relative to the smallest loss."""
MAX_STEPS = 150


@dataclass(frozen=True, eq=False)
class Law:
    """A fitted scaling law, with refits to resampled residuals that give its uncertainty."""

    floor: float
    """E: the loss in the limit of infinite data and parameters."""
    data: tuple[float, float]
    """A and a: amplitude and exponent in the number of training combinations."""
    size: tuple[float, float] | None
    """B and b: amplitude and exponent in the number of parameters; None if not fitted."""
    smallest: float
    """The smallest fitted number of combinations."""
    largest: tuple[float, ...]
    """The largest fitted number of combinations, and of parameters."""
    points: int
    spread: float
    """The standard deviation of log loss around the law."""
    best: Floats
    """The fitted parameters: log E, then log amplitude at `origin` and log exponent of each term."""
    refits: Floats
    """The same for each resample."""
    noise: Floats
    """One residual per resample: the deviation of a new run from the law."""
    origin: Floats
    """The mean log sizes of the points."""


@dataclass(frozen=True)
class Forecast:
    """The predicted loss of a new run, with its interval."""

    median: float
    low: float
    high: float
    level: float = PREDICTIVE


@dataclass(frozen=True)
class Needed:
    """The number of combinations that a target loss needs, with its interval."""

    number: float
    low: float
    high: float
    """Infinite where the interval ends beyond the reach of the law, or where the target may never be reached."""
    status: Literal["reachable", "already reached", "below the floor"]
    level: float = PREDICTIVE


def fit_law(
    loss: npt.ArrayLike,
    number: npt.ArrayLike,
    parameters: npt.ArrayLike | None = None,
    *,
    knee: float = KNEE,
    resamples: int = 400,
    seed: int = 0,
) -> Law:
    """Fit E + A N^-a, or E + A N^-a + B P^-b where `parameters` are given, to log loss.

    Residuals of log loss beyond `knee` count linearly (Huber), so that single bad runs do not bend the law. Fitting starts
    from many points. The law is then refitted to its own values plus resampled residuals, which are scaled up for the
    degrees of freedom of the fit.

    Args:
        loss: The loss of each run. Runs must be independent: average over replicates, or fit a law to each.
        number: The number of training combinations of each run.
        parameters: The number of parameters of each run, to fit the second term.
        knee: The residual from which the loss is linear.
        resamples: The number of refits.
        seed: The seed of the resampling.

    Returns:
        The law. `forecast` extrapolates it, `needed` inverts it.

    Example:
        ```python
        law = fit_law(loss=[0.9, 0.5, 0.3, 0.2], number=[40, 80, 160, 320])
        forecast(law, 640)
        needed(law, target=0.15)
        ```
    """
    columns = {"loss": loss, "number": number} | ({} if parameters is None else {"parameters": parameters})
    unknown = 3 if parameters is None else 5
    checked = numbers(unknown + 1, **columns)
    for name, column in zip(columns, checked, strict=True):
        if column.min() <= 0:
            raise BadInput(f"{name!r} must be positive, but its smallest value is {column.min():g}.")
        if name != "loss" and len(np.unique(column)) < 3:
            raise BadInput(
                f"{name!r} has {len(np.unique(column))} different values, a law needs at least 3.",
                fix="add sizes, or leave parameters out" if name == "parameters" else "add sizes",
            )
    log_loss, logs = np.log(checked[0]), np.log(np.stack(checked[1:], axis=1))
    origin = logs.mean(0)
    where = logs - origin
    fits, cost = _descend(_starts(log_loss, where.shape[1]), log_loss[None], where, knee, 1e-13)
    best = fits[int(np.argmin(cost))]
    fitted = _log_law(best[None], where)[0]
    residuals = (log_loss - fitted) * math.sqrt(len(log_loss) / (len(log_loss) - unknown))
    rng = np.random.default_rng(seed)
    drawn = fitted + residuals[rng.integers(len(log_loss), size=(resamples, len(log_loss)))]
    refits, _ = _descend(np.repeat(best[None], resamples, axis=0), drawn, where, knee, 1e-7)
    exponents = np.exp(best[2::2])
    terms = [
        (math.exp(log_amplitude + power * middle), float(power))
        for log_amplitude, power, middle in zip(best[1::2], exponents, origin, strict=True)
    ]
    return Law(
        floor=math.exp(best[0]),
        data=terms[0],
        size=terms[1] if len(terms) > 1 else None,
        smallest=float(checked[1].min()),
        largest=tuple(float(column.max()) for column in checked[1:]),
        points=len(log_loss),
        spread=float(np.sqrt(np.mean(residuals**2))),
        best=best,
        refits=refits,
        noise=residuals[rng.integers(len(log_loss), size=resamples)],
        origin=origin,
    )


def forecast(
    law: Law, number: float, parameters: float | None = None, *, level: float = PREDICTIVE, beyond: bool = False
) -> Forecast:
    """Predict the loss of a new run: the median over refits, with the noise of a single run.

    Args:
        law: The fitted law.
        number: The number of training combinations.
        parameters: The number of parameters, if the law was fitted with them.
        level: The level of the predictive interval.
        beyond: Allow sizes of more than `REACH` times the largest fitted one.

    Returns:
        The median with its interval.
    """
    sizes = _checked_sizes(law, number, parameters, beyond)
    predicted = _log_law(law.refits, np.log(sizes)[None] - law.origin)[:, 0] + law.noise
    tail = _tail(law, level)
    low, middle, high = np.exp(np.quantile(predicted, [tail, 0.5, 1 - tail]))
    return Forecast(float(middle), float(low), float(high), level)


def needed(
    law: Law, target: float, parameters: float | None = None, *, level: float = PREDICTIVE, beyond: bool = False
) -> Needed:
    """Invert a law: the number of combinations at which the expected loss is `target`.

    Args:
        law: The fitted law.
        target: The loss to reach.
        parameters: The number of parameters, if the law was fitted with them.
        level: The level of the interval.
        beyond: Allow more than `REACH` times the largest fitted number of combinations; an error otherwise.

    Returns:
        The number with its interval. Its status says whether the target is below the floor of the law.
    """
    if not (math.isfinite(target) and target > 0):
        raise BadInput(f"A target is a positive loss, got {target}.")
    _checked_sizes(law, law.largest[0], parameters, beyond)
    number = float(_inverted(law, law.best[None], target, parameters)[0])
    tail = _tail(law, level)
    low, high = np.quantile(_inverted(law, law.refits, target, parameters), [tail, 1 - tail], method="nearest")
    furthest = math.inf if beyond else REACH * law.largest[0]
    low, high = min(low, furthest), high if high <= furthest else math.inf
    if math.isinf(number):
        return Needed(math.inf, float(low), math.inf, "below the floor", level)
    if number > furthest:
        raise BadInput(
            f"A loss of {target:g} needs about {number:.3g} combinations, but the law was fitted up to "
            f"{law.largest[0]:g} and extrapolates up to {furthest:g}.",
            fix="fit larger runs, or use beyond=True and treat the result as a guess",
        )
    status = "already reached" if number <= law.smallest else "reachable"
    return Needed(number, float(low), float(high), status, level)


def _tail(law: Law, level: float) -> float:
    """The share of refits outside each end: smaller than nominal, as t intervals are wider than normal ones."""
    if not 0 < level < 1:
        raise BadInput(f"The level of an interval lies between 0 and 1, got {level}.", fix="0.8 is usual here")
    return float(special.ndtr(special.stdtrit(law.points - len(law.best), (1 - level) / 2)))


def _checked_sizes(law: Law, number: float, parameters: float | None, beyond: bool) -> Floats:
    """The sizes to forecast, within the reach of the law."""
    if (parameters is None) != (law.size is None):
        raise BadInput(
            "The law was fitted " + ("without parameters." if law.size is None else "with parameters."),
            fix="leave parameters out" if law.size is None else "give the number of parameters",
        )
    sizes = np.array([number] if parameters is None else [number, parameters], dtype=float)
    if not np.all(np.isfinite(sizes) & (sizes > 0)):
        raise BadInput(f"Sizes must be positive, got {sizes.tolist()}.")
    for name, size, largest in zip(("combinations", "parameters"), sizes, law.largest, strict=False):
        if size > REACH * largest * (1 + 1e-9) and not beyond:
            raise BadInput(
                f"{size:g} {name} are more than {REACH:g} times the {largest:g} that the law was fitted on.",
                fix="fit larger runs, or use beyond=True and treat the result as a guess",
            )
    return sizes


def _inverted(law: Law, fits: Floats, target: float, parameters: float | None) -> Floats:
    """The number of combinations at which each fit has the target loss; infinite where it never has."""
    left = target - np.exp(fits[:, 0])
    if parameters is not None:
        left = left - np.exp(fits[:, 3] - np.exp(fits[:, 4]) * (math.log(parameters) - law.origin[1]))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        number = np.exp(law.origin[0] + (fits[:, 1] - np.log(left)) / np.exp(fits[:, 2]))
    return np.where(left > 0, number, np.inf)


def _starts(log_loss: Floats, terms: int) -> Floats:
    """Starting points: several floors below the smallest loss and several exponents; the terms share the rest."""
    smallest, middle = math.exp(log_loss.min()), math.exp(float(np.median(log_loss)))
    starts = []
    for share in (0.01, 0.5, 0.95):
        left = math.log(max(middle - share * smallest, 0.05 * middle) / terms)
        for exponents in itertools.product((0.1, 0.3, 0.8, 1.5), repeat=terms):
            start = [math.log(share * smallest)]
            for exponent in exponents:
                start += [left, math.log(exponent)]
            starts.append(start)
    return np.array(starts)


def _terms(fits: Floats, where: Floats) -> Floats:
    """The terms of the law, floor first, of shape (fits, points, 1 + sizes). `where`: log sizes from the origin."""
    powers = fits[:, None, 1::2] - np.exp(fits[:, None, 2::2]) * where
    floor = np.broadcast_to(fits[:, None, :1], (*powers.shape[:2], 1))
    return np.exp(np.minimum(np.concatenate([floor, powers], axis=2), 300.0))


def _log_law(fits: Floats, where: Floats) -> Floats:
    return np.log(_terms(fits, where).sum(-1))


def _descend(fits: Floats, log_loss: Floats, where: Floats, knee: float, tolerance: float) -> tuple[Floats, Floats]:
    """Levenberg-Marquardt from many starts, or for many resamples, at once: the fits and their Huber costs."""
    low, high = np.full(fits.shape[1], -50.0), np.full(fits.shape[1], 50.0)
    low[0], high[0] = log_loss.min() + math.log(DEEPEST_FLOOR), log_loss.max()
    low[2::2], high[2::2] = np.log(EXPONENTS)
    damping, done = np.full(len(fits), 1e-2), np.zeros(len(fits), dtype=bool)
    cost, gradient, curvature = _derivatives(fits, log_loss, where, knee)
    for _ in range(MAX_STEPS):
        ridge = damping[:, None] * (np.einsum("fii->fi", curvature) + 1e-9)
        step = np.linalg.solve(curvature + ridge[:, :, None] * np.eye(fits.shape[1]), -gradient[:, :, None])
        proposed = np.clip(fits + np.clip(step[:, :, 0], -3, 3), low, high)
        new_cost, new_gradient, new_curvature = _derivatives(proposed, log_loss, where, knee)
        better = new_cost < cost
        done |= better & (cost - new_cost <= tolerance * cost) | (damping > 1e8)
        fits = np.where(better[:, None], proposed, fits)
        gradient = np.where(better[:, None], new_gradient, gradient)
        curvature = np.where(better[:, None, None], new_curvature, curvature)
        cost = np.where(better, new_cost, cost)
        damping = np.clip(np.where(better, damping / 3, damping * 4), 1e-9, 1e9)
        if done.all():
            break
    return fits, cost


def _derivatives(fits: Floats, log_loss: Floats, where: Floats, knee: float) -> tuple[Floats, Floats, Floats]:
    """Huber's cost of each fit, its gradient, and its Gauss-Newton curvature."""
    terms = _terms(fits, where)
    total = terms.sum(-1, keepdims=True)
    share = terms / total
    residual = np.log(total[..., 0]) - log_loss
    slopes = np.empty((*residual.shape, fits.shape[1]))
    slopes[..., 0] = share[..., 0]
    slopes[..., 1::2] = share[..., 1:]
    slopes[..., 2::2] = -np.exp(fits[:, None, 2::2]) * where * share[..., 1:]
    size = np.abs(residual)
    cost = np.where(size <= knee, 0.5 * residual**2, knee * (size - 0.5 * knee)).sum(1)
    weight = np.minimum(1.0, knee / np.maximum(size, 1e-300))
    weighted = slopes * weight[..., None]
    return cost, np.einsum("fpi,fp->fi", weighted, residual), np.einsum("fpi,fpj->fij", weighted, slopes)
