"""Sizes of effects with intervals: a contrast by t, the spread of several effects by the noncentral F distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from recombine.stats.intervals import LEVEL, Interval

FAR = 300.0
"""Beyond this noncentrality an approximation is used: the exact sums lose their digits."""

Noise = tuple[float, float]
"""The variance of a mean score around its expectation, and the degrees of freedom of that variance (may be infinite)."""


def contrast_size(estimate: float, variance: float, freedom: float, count: int, method: str) -> tuple[Interval, float]:
    """A contrast with its t interval, and its two-sided p value."""
    error = math.sqrt(max(variance, 0.0))
    quantile = special.ndtri((1 + LEVEL) / 2) if math.isinf(freedom) else special.stdtrit(freedom, (1 + LEVEL) / 2)
    half = float(quantile) * error
    p = 1.0 if estimate == 0 else 0.0
    if error > 0:
        ratio = -abs(estimate) / error
        p = 2 * float(special.ndtr(ratio) if math.isinf(freedom) else special.stdtr(freedom, ratio))
    return Interval(estimate, estimate - half, estimate + half, count, LEVEL, method), p


def spread_size(squares: float, rank: int, noise: Noise, count: int, method: str) -> tuple[Interval, float]:
    """The standard deviation of effects over combinations with its interval, and the p value of no effects.

    Args:
        squares: The sum of squares of the estimated effects over combinations.
        rank: Its degrees of freedom.
        noise: The variance of a mean score, and its degrees of freedom.
        count: The number of combinations.
        method: What the interval is called.
    """
    variance, freedom = noise
    estimate = math.sqrt(max(0.0, squares - rank * variance) / count)
    if variance <= 0:
        return Interval(estimate, estimate, estimate, count, LEVEL, method), 0.0 if squares > 0 else 1.0
    ratio = squares / rank / variance
    p = 1.0 - _chance(ratio, rank, freedom, 0.0)
    # A ratio below its median without effects is treated like that median, so that luck does not narrow the bound.
    most = max(ratio, _median(rank, freedom))
    ends = [_noncentrality(each, rank, freedom, (1 + sign * LEVEL) / 2) for each, sign in ((ratio, 1), (most, -1))]
    low, high = (math.sqrt(end * variance / count) for end in ends)
    return Interval(float(np.clip(estimate, low, high)), low, high, count, LEVEL, method), max(p, 0.0)


def _chance(ratio: float, rank: int, freedom: float, away: float) -> float:
    """The probability of a smaller ratio of mean squares if the effects have this noncentrality."""
    if not away:
        return _central(ratio, rank, freedom)
    if away > FAR:
        # Patnaik (1949): a scaled central distribution with the same mean and variance of the numerator.
        larger, wider = 1 + away / rank, (rank + away) ** 2 / (rank + 2 * away)
        return _central(ratio / larger, wider, freedom)
    exact = (
        special.chndtr(ratio * rank, rank, away) if math.isinf(freedom) else special.ncfdtr(rank, freedom, away, ratio)
    )
    return float(exact)


def _central(ratio: float, rank: float, freedom: float) -> float:
    if math.isinf(freedom):
        return float(special.chdtr(rank, ratio * rank))
    return float(special.fdtr(rank, freedom, ratio))


def _median(rank: int, freedom: float) -> float:
    """The median ratio of mean squares without effects."""
    if math.isinf(freedom):
        return float(special.chdtri(rank, 0.5)) / rank
    return float(special.fdtri(rank, freedom, 0.5))


def _noncentrality(ratio: float, rank: int, freedom: float, chance: float) -> float:
    """The noncentrality at which a smaller ratio has the given probability; 0 if it is less likely even without effects."""
    if _chance(ratio, rank, freedom, 0.0) <= chance:
        return 0.0
    from scipy import optimize  # Slow to import.

    most = 10.0 + 4 * ratio * rank
    while _chance(ratio, rank, freedom, most) > chance and most < 1e12:
        most *= 2
    root: Any = optimize.brentq(lambda away: _chance(ratio, rank, freedom, away) - chance, 1e-12, most)
    return float(root)
