"""The size at which a score reaches a threshold, and slopes of such sizes when some are censored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from recombine.errors import BadInput, did_you_mean
from recombine.stats.columns import Floats, numbers
from recombine.stats.intervals import LEVEL, Interval

Censored = Literal["no", "right", "left"]
"""`right`: the true value is larger than the one given; `left`: it is that value or smaller."""

ROUNDING = 1e-12
MAX_STEPS = 200


@dataclass(frozen=True)
class Reached:
    """The size at which a threshold is reached; if censored, the end of the curve beyond which it lies."""

    size: float
    censored: Censored


def reached(sizes: npt.ArrayLike, scores: npt.ArrayLike, threshold: float) -> Reached:
    """Find the first size at which the score is at least the threshold, interpolated linearly in log size.

    Scores are first replaced by their isotonic regression, so that noise cannot cross the threshold several times. For a
    score that falls, negate scores and threshold.

    Args:
        sizes: Positive sizes in ascending order.
        scores: The score at each size.
        threshold: The score to reach.

    Returns:
        The size. A curve that stays below the threshold is censored `right` at its largest size; one that starts at the
        threshold or above it is censored `left` at its smallest size.
    """
    from scipy.optimize import isotonic_regression

    size, score = numbers(1, sizes=sizes, scores=scores)
    if not math.isfinite(threshold):
        raise BadInput(f"A threshold must be a finite number, got {threshold}.")
    if size[0] <= 0 or not np.all(np.diff(size) > 0):
        raise BadInput(
            f"Sizes must be positive and ascending, got {size.tolist()}.",
            fix="sort the curve by size, and average the scores of equal sizes",
        )
    curve = isotonic_regression(score).x
    enough = curve >= threshold - ROUNDING * max(1.0, abs(threshold))
    if not enough[-1]:
        return Reached(float(size[-1]), "right")
    after = int(np.argmax(enough))
    if after == 0:
        return Reached(float(size[0]), "left")
    low, high = curve[after - 1], curve[after]
    share = min((threshold - low) / (high - low), 1.0)
    return Reached(float(size[after - 1] * (size[after] / size[after - 1]) ** share), "no")


@dataclass(frozen=True)
class CensoredSlope:
    """A line through points, some of which are censored."""

    slope: Interval
    error: float
    """The standard error of the slope."""
    intercept: float
    spread: float
    """The standard deviation of points around the line."""
    censored: int
    """The number of censored points."""


def censored_slope(
    x: npt.ArrayLike, y: npt.ArrayLike, censored: Sequence[Censored], level: float = LEVEL
) -> CensoredSlope:
    """Fit the slope of y on x by maximum likelihood with normal errors, where some y are censored (Tobit).

    Dropping the censored points would flatten the line. The degrees of freedom are the number of uncensored points
    less 2. Without censoring this is ordinary least squares with its t interval.

    Args:
        x: The predictor of each point.
        y: The outcome of each point; for a censored point its bound.
        censored: How each point is censored.
        level: The level of the interval.

    Returns:
        The line, with the interval of its slope.
    """
    at, value = numbers(3, x=x, y=y)
    for word in set(censored) - set(get_args(Censored)):
        raise BadInput(f"A point is censored {word!r}.", fix=did_you_mean(str(word), get_args(Censored)))
    side = np.array([{"no": 0, "right": 1, "left": -1}[word] for word in censored], dtype=float)
    if len(side) != len(at):
        raise BadInput(f"There are {len(at)} points, but {len(side)} entries in `censored`.")
    known = side == 0
    if known.sum() < 3 or np.ptp(at[known]) == 0:
        raise BadInput(
            f"{int(known.sum())} of {len(at)} points are not censored, at {len(np.unique(at[known]))} different x.",
            fix="a slope needs at least 3 uncensored points at 2 different x: extend the curves, or lower the threshold",
        )
    # Standardised, so that Newton's method starts well in any units.
    x_mean, x_scale = at[known].mean(), at[known].std()
    y_mean, y_scale = value[known].mean(), value[known].std() or 1.0
    design = np.stack([np.ones_like(at), (at - x_mean) / x_scale], axis=1)
    target = (value - y_mean) / y_scale
    beta, sigma, error = _fitted(design, target, side)
    freedom = int(known.sum()) - 2
    # Maximum likelihood divides by n, the unbiased estimate of the variance by n - 2.
    widen = math.sqrt((freedom + 2) / freedom)
    slope, error = float(beta[1] * y_scale / x_scale), float(error * widen * y_scale / x_scale)
    half = float(special.stdtrit(freedom, (1 + level) / 2)) * error
    interval = Interval(slope, slope - half, slope + half, len(at), level, "censored t")
    intercept = float(y_mean + y_scale * beta[0] - slope * x_mean)
    return CensoredSlope(interval, error, intercept, float(sigma * widen * y_scale), int((~known).sum()))


def power_law(
    x: npt.ArrayLike, y: npt.ArrayLike, censored: Sequence[Censored], level: float = LEVEL
) -> CensoredSlope | None:
    """Fit y as a power of x: the slope is the exponent, on the logarithms of both.

    Args:
        x: The positive predictor of each point.
        y: The positive outcome of each point; for a censored point its bound.
        censored: How each point is censored.
        level: The level of the interval.

    Returns:
        The line through the logarithms; None where too few points are uncensored.
    """
    try:
        log_x, log_y = ([math.log(value) for value in np.asarray(values, dtype=float)] for values in (x, y))
        return censored_slope(log_x, log_y, censored, level)
    except BadInput:
        return None


def _fitted(design: Floats, target: Floats, side: Floats) -> tuple[Floats, float, float]:
    """The maximum-likelihood coefficients, spread, and standard error of the slope."""
    known = side == 0
    line = np.asarray(np.linalg.lstsq(design[known], target[known], rcond=None)[0], dtype=np.float64)
    rest = target - design @ line
    if np.abs(rest[known]).max() < 1e-9 and np.all(side * rest <= 1e-9):
        return (line, 0.0, 0.0)  # an exact line that no censored point contradicts: the likelihood has no maximum
    # In 1 / spread and coefficients / spread the likelihood is concave (Olsen 1978): Newton finds its maximum.
    start = 1 / max(float(rest.std()), 1e-3)
    where: Floats = np.append(line * start, start).astype(np.float64)
    for _ in range(MAX_STEPS):
        value, gradient, curvature = _likelihood(where, design, target, side)
        step = np.asarray(np.linalg.solve(curvature, gradient), dtype=np.float64)
        rate = 1.0
        while rate > 1e-10 and not _higher(where + rate * step, value, design, target, side):
            rate /= 2
        where = where + rate * step
        if rate <= 1e-10 or float(gradient @ step) < 1e-12:
            break
    covariance = np.linalg.inv(_likelihood(where, design, target, side)[2])
    per = 1 / where[-1]
    change = np.array([0.0, per, -where[1] * per**2])  # the derivative of the slope by the fitted parameters
    return where[:-1] * per, float(per), math.sqrt(float(change @ covariance @ change))


def _higher(where: Floats, than: float, design: Floats, target: Floats, side: Floats) -> bool:
    return bool(where[-1] > 0) and _likelihood(where, design, target, side)[0] >= than


def _likelihood(where: Floats, design: Floats, target: Floats, side: Floats) -> tuple[float, Floats, Floats]:
    """The log-likelihood, its gradient and its negative Hessian in (coefficients / spread, 1 / spread)."""
    scaled = where[-1] * target - design @ where[:-1]
    known = side == 0
    depth = -side * scaled  # how far the line lies on the side of the censored value
    log_probability = special.log_ndtr(depth)
    mills = np.exp(-0.5 * depth**2 - 0.5 * math.log(2 * math.pi) - log_probability)
    value = np.where(known, math.log(where[-1]) - 0.5 * scaled**2, log_probability).sum()
    first = np.where(known, -scaled, -side * mills)
    second = np.where(known, 1.0, mills * (mills + depth))
    along = np.concatenate([-design, target[:, None]], axis=1)
    gradient, curvature = along.T @ first, (along * second[:, None]).T @ along
    gradient[-1] += known.sum() / where[-1]
    curvature[-1, -1] += known.sum() / where[-1] ** 2
    return float(value), gradient, curvature
