"""A law of loss by data and parameters, E + A N^-a + B P^-b: fitted, forecast with an interval, and inverted."""

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
"""How many times the largest fitted size a law may be asked about. Further out it is a guess, not a forecast."""
PREDICTIVE = 0.8

KNEE = 0.05
EXPONENTS = (1e-3, 10.0)
DEEPEST_FLOOR = 1e-6
MOST_STEPS = 150


@dataclass(frozen=True, eq=False)
class Law:
    """A fitted law, with refits to resampled residuals that say how far it can be trusted."""

    floor: float
    """E: what no number of combinations and parameters gets below."""
    data: tuple[float, float]
    """A and a: amplitude and exponent of the number of training combinations."""
    size: tuple[float, float] | None
    """B and b: amplitude and exponent of the number of parameters; None where it was not fitted."""
    smallest: float
    """The smallest number of combinations that was fitted."""
    largest: tuple[float, ...]
    """The largest number of combinations, and of parameters, that was fitted."""
    points: int
    spread: float
    """The standard deviation of log loss around the law."""
    best: Floats
    """The law in the form in which it is fitted: log E, then log amplitude at `origin` and log exponent of each term."""
    refits: Floats
    """The same for each resample."""
    noise: Floats
    """One residual for each resample: what a new observation differs by from its law."""
    origin: Floats
    """The mean log sizes of the points."""


@dataclass(frozen=True)
class Forecast:
    """What a law expects of a new run."""

    median: float
    low: float
    high: float
    level: float = PREDICTIVE


@dataclass(frozen=True)
class Needed:
    """How many combinations a law expects to be needed for a target, ends of the interval included."""

    number: float
    low: float
    high: float
    """Infinite where the interval reaches beyond what the law may be asked, or where it may never be reached."""
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
    """Fits E + A N^-a, or E + A N^-a + B P^-b where `parameters` are given, to log loss.

    Residuals of log loss beyond the `knee` count linearly (Huber), so single bad runs do not bend the law. Many
    starts are tried. The law is then refitted to its own values plus resampled residuals, made larger by what a fit
    takes away. Points must be independent: average over replicates, or fit a law to each.
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
    tried, cost = _descend(_starts(log_loss, where.shape[1]), log_loss[None], where, knee, 1e-13)
    best = tried[int(np.argmin(cost))]
    fitted = _log_law(best[None], where)[0]
    residuals = (log_loss - fitted) * math.sqrt(len(log_loss) / (len(log_loss) - unknown))
    rng = np.random.default_rng(seed)
    drawn = fitted + residuals[rng.integers(len(log_loss), size=(resamples, len(log_loss)))]
    refits, _ = _descend(np.repeat(best[None], resamples, axis=0), drawn, where, knee, 1e-7)
    exponents = np.exp(best[2::2])
    terms = [
        (math.exp(at + power * middle), float(power))
        for at, power, middle in zip(best[1::2], exponents, origin, strict=True)
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
    law: Law,
    number: float,
    parameters: float | None = None,
    *,
    level: float = PREDICTIVE,
    beyond: bool = False,
) -> Forecast:
    """The loss of a new run: the middle of what the refits say, noise of a single run included, and its interval."""
    asked = _asked(law, number, parameters, beyond)
    said = _log_law(law.refits, np.log(asked)[None] - law.origin)[:, 0] + law.noise
    tail = _tail(law, level)
    low, middle, high = np.exp(np.quantile(said, [tail, 0.5, 1 - tail]))
    return Forecast(float(middle), float(low), float(high), level)


def needed(
    law: Law,
    target: float,
    parameters: float | None = None,
    *,
    level: float = PREDICTIVE,
    beyond: bool = False,
) -> Needed:
    """How many combinations it takes until the expected loss is at most `target`, at this number of parameters.

    A target below the floor (what is left with endless combinations) is said to be so. One that needs more than
    `REACH` times the largest number of combinations fitted is refused.
    """
    if not (math.isfinite(target) and target > 0):
        raise BadInput(f"A target is a positive loss, got {target}.")
    _asked(law, law.largest[0], parameters, beyond)
    found = float(_inverted(law, law.best[None], target, parameters)[0])
    tail = _tail(law, level)
    low, high = np.quantile(
        _inverted(law, law.refits, target, parameters), [tail, 1 - tail], method="nearest"
    )
    furthest = math.inf if beyond else REACH * law.largest[0]
    low, high = min(low, furthest), high if high <= furthest else math.inf
    if math.isinf(found):
        return Needed(math.inf, float(low), math.inf, "below the floor", level)
    if found > furthest:
        raise BadInput(
            f"A loss of {target:g} needs about {found:.3g} combinations, but the law was fitted up to "
            f"{law.largest[0]:g} and may be asked up to {furthest:g}.",
            fix="fit larger runs, or say beyond=True and call it a guess",
        )
    status = "already reached" if found <= law.smallest else "reachable"
    return Needed(found, float(low), float(high), status, level)


def _tail(law: Law, level: float) -> float:
    """The share of refits outside each end: as much less than nominal as t intervals are wider than normal ones."""
    if not 0 < level < 1:
        raise BadInput(
            f"The level of an interval lies between 0 and 1, got {level}.", fix="0.8 is usual here"
        )
    return float(special.ndtr(special.stdtrit(law.points - len(law.best), (1 - level) / 2)))


def _asked(law: Law, number: float, parameters: float | None, beyond: bool) -> Floats:
    """The sizes that a law is asked about, if it may be."""
    if (parameters is None) != (law.size is None):
        raise BadInput(
            "The law was fitted " + ("without parameters." if law.size is None else "with parameters."),
            fix="leave parameters out" if law.size is None else "say for how many parameters",
        )
    asked = np.array([number] if parameters is None else [number, parameters], dtype=float)
    if not np.all(np.isfinite(asked) & (asked > 0)):
        raise BadInput(f"Sizes must be positive, got {asked.tolist()}.")
    for name, size, largest in zip(("combinations", "parameters"), asked, law.largest, strict=False):
        if size > REACH * largest * (1 + 1e-9) and not beyond:
            raise BadInput(
                f"{size:g} {name} are more than {REACH:g} times the {largest:g} that the law was fitted on.",
                fix="fit larger runs, or say beyond=True and call it a guess",
            )
    return asked


def _inverted(law: Law, fits: Floats, target: float, parameters: float | None) -> Floats:
    """For each fit the number of combinations at which its loss is the target; infinite where that is never."""
    left = target - np.exp(fits[:, 0])
    if parameters is not None:
        left = left - np.exp(fits[:, 3] - np.exp(fits[:, 4]) * (math.log(parameters) - law.origin[1]))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.exp(law.origin[0] + (fits[:, 1] - np.log(left)) / np.exp(fits[:, 2]))
    return np.where(left > 0, found, np.inf)


def _starts(log_loss: Floats, terms: int) -> Floats:
    """First guesses: several floors below the smallest loss, several exponents, the rest shared among the terms."""
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


def _descend(
    fits: Floats, log_loss: Floats, where: Floats, knee: float, tolerance: float
) -> tuple[Floats, Floats]:
    """Levenberg-Marquardt from many starts, or for many resamples, at once: where each ends and its Huber cost."""
    low, high = np.full(fits.shape[1], -50.0), np.full(fits.shape[1], 50.0)
    low[0], high[0] = log_loss.min() + math.log(DEEPEST_FLOOR), log_loss.max()
    low[2::2], high[2::2] = np.log(EXPONENTS)
    damping, done = np.full(len(fits), 1e-2), np.zeros(len(fits), dtype=bool)
    cost, gradient, curvature = _slopes(fits, log_loss, where, knee)
    for _ in range(MOST_STEPS):
        ridge = damping[:, None] * (np.einsum("fii->fi", curvature) + 1e-9)
        step = np.linalg.solve(curvature + ridge[:, :, None] * np.eye(fits.shape[1]), -gradient[:, :, None])
        there = np.clip(fits + np.clip(step[:, :, 0], -3, 3), low, high)
        new_cost, new_gradient, new_curvature = _slopes(there, log_loss, where, knee)
        better = new_cost < cost
        done |= better & (cost - new_cost <= tolerance * cost) | (damping > 1e8)
        fits = np.where(better[:, None], there, fits)
        gradient = np.where(better[:, None], new_gradient, gradient)
        curvature = np.where(better[:, None, None], new_curvature, curvature)
        cost = np.where(better, new_cost, cost)
        damping = np.clip(np.where(better, damping / 3, damping * 4), 1e-9, 1e9)
        if done.all():
            break
    return fits, cost


def _slopes(fits: Floats, log_loss: Floats, where: Floats, knee: float) -> tuple[Floats, Floats, Floats]:
    """Huber's cost of each fit, its gradient, and its curvature by Gauss and Newton."""
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
