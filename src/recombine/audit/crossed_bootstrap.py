"""Whether combinations matter beyond their parts: the variance of their effects, tested and bounded by simulation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import special

from recombine.audit.crossed import FLOOR, Crossed, Effects, Scores
from recombine.stats.intervals import LEVEL, Interval

MOST_DRAWS = 199
LEAST_DRAWS = 39
LEAST_BOUNDING = 99
"""Tables that are drawn for the interval, at least: with 39 it was too narrow (simulated coverage .7)."""

WORK = 5e7
"""So many steps (as `effort` counts them) a round of the simulated tables may take; larger tables get fewer of them."""

RANGE = (1e-5, 100.0)
"""Combination variances that are looked at; a score without bounds is in units of the spread between combinations."""


@dataclasses.dataclass(frozen=True)
class Tested:
    """What simulation says of the combination variance."""

    variance: Interval
    p: float
    draws: int
    free: Effects
    """Fitted with a combination variance."""
    null: Effects
    """Fitted with parts alone."""
    simulated: Scores
    """Tables in which parts add up and nothing else happens."""


def effort(model: Crossed) -> float:
    """About how many steps one round of fitting a table takes."""
    a, b = model.sizes
    return a * b**2 + b**3 + 200.0 * len(model.design.cells)


def draws_for(model: Crossed) -> int:
    """How many tables are simulated: 199, fewer for large ones."""
    return int(np.clip(WORK / effort(model), LEAST_DRAWS, MOST_DRAWS))


def tables_for(model: Crossed, draws: int | None = None) -> tuple[int, int]:
    """How many tables are simulated for the test and for the interval."""
    number = draws_for(model) if draws is None else draws
    return number, max(number, LEAST_BOUNDING) if draws is None else draws


def combination_test(
    model: Crossed,
    scores: Scores,
    freedom: int,
    seed: int = 0,
    draws: int | None = None,
    level: float = LEVEL,
) -> Tested:
    """Tests that the combination variance is zero and bounds it, by parametric bootstrap.

    The statistic is the estimated variance T. For the test, tables are drawn from the fitted parts alone (as they
    were estimated, not drawn anew: part effects need not be normal) and fitted again;
    p = (1 + #{T* >= T}) / (1 + draws). For the interval, tables are drawn with a range of combination variances s;
    a probit line of {T* > T} on log s that rises from p is the chance of a larger statistic, and s where it is
    .025, .5 and .975 are the lower end, for binary scores the (median-unbiased) estimate, as the fit's own is too
    small there, and the upper end. A table that adds up better than half of the additive ones is bounded like one
    that does as well as half of them: luck does not make the bound.
    Simulated rates stand in docs/methods-audit.md.
    """
    rng = np.random.default_rng(seed)
    number, bounding = tables_for(model, draws)
    free, null = model.fit(scores), model.fit(scores, 0.0)
    observed = float(free.combination_variance[0])

    def drawn(additive: Float[np.ndarray, " cell"], own: Float[np.ndarray, " draw"]) -> Scores:
        eta = additive + np.sqrt(own)[:, None] * rng.standard_normal((len(own), len(additive)))
        mean = model.scatter.draw(rng, eta, scores.count, float(scores.noise[0]))
        noise = scores.noise[0] * rng.chisquare(max(freedom, 1), len(own)) / max(freedom, 1)
        return Scores(mean, scores.count, noise)

    simulated = drawn(null.additive[0], np.zeros(number))
    chance = model.fit(simulated).combination_variance
    p = (1 + int((chance >= observed).sum())) / (1 + number)
    reference = max(observed, float(np.median(chance)))
    least = (1 + int((chance >= reference).sum())) / (1 + number)

    def larger(own: Float[np.ndarray, " draw"]) -> Float[np.ndarray, " draw"]:
        return (model.fit(drawn(free.additive[0], own)).combination_variance > reference).astype(float)

    residual = float((1 - null.weight * null.leverage).sum())
    steepest = 0.5 * float(np.log(max(residual, 1.0) / 2))
    low, middle, high = _inverted(larger, bounding, (1 - level) / 2, least, steepest)
    estimate = middle if model.scatter.binary else observed
    if observed <= 10 * FLOOR or (model.scatter.binary and p > 0.5):
        estimate = 0.0
    interval = Interval(
        float(np.clip(estimate, low, high)),
        low,
        high,
        len(scores.count),
        level,
        "inverted parametric bootstrap",
    )
    return Tested(interval, p, number, free, null, simulated)


def _inverted(
    larger: Callable[[Float[np.ndarray, " draw"]], Float[np.ndarray, " draw"]],
    number: int,
    tail: float,
    p: float,
    steepest: float,
) -> tuple[float, float, float]:
    """Variances at which a larger statistic has the chance `tail`, a half, and 1 - `tail`; p is that at none.

    No line is steeper than that of n effects that are seen without error: the log of their variance has a spread of sqrt(2 / n).
    """
    ends = np.log(RANGE)
    first = np.linspace(ends[0], ends[1], max(number // 3, 13))
    hits = larger(np.exp(first))
    line = _probit(first, hits, p, steepest)
    low, high = (np.clip(_at(line, chance, p), *ends) for chance in (tail / 4, 1 - tail / 4))
    low, high = min(low, high - 1.0), max(high, low + 1.0)
    second = np.linspace(low, high, max(number - len(first), 13))
    at, hits = np.append(first, second), np.append(hits, larger(np.exp(second)))
    line = _probit(at, hits, p, steepest)

    def variance(chance: float) -> float:
        where = _at(line, chance, p)
        return 0.0 if where == -np.inf else float(np.exp(np.clip(where, *ends)))

    return variance(tail), variance(0.5), variance(1 - tail)


Line = tuple[float, float]
"""A probit line: its middle and its slope."""


def _at(line: Line, chance: float, least: float) -> float:
    """Where a probit line that rises from `least` to 1 reaches a chance; minus infinity where it starts above."""
    inside = (chance - least) / (1 - least) if least < 1 else -1.0
    return line[0] + float(special.ndtri(inside)) / line[1] if inside > 0 else -np.inf


def _probit(
    at: Float[np.ndarray, " n"], hits: Float[np.ndarray, " n"], least: float, steepest: float
) -> Line:
    """The most likely line, on a grid that is made finer twice."""
    middles, slopes = np.linspace(at.min() - 2, at.max() + 2, 60), np.linspace(-2.0, steepest, 20)
    found = 0.0, 0.0
    for _ in range(3):
        middle, slope = (values.ravel() for values in np.meshgrid(middles, slopes))
        chance = least + (1 - least) * special.ndtr(np.exp(slope)[:, None] * (at - middle[:, None]))
        chance = np.clip(chance, 1e-9, 1 - 1e-9)
        fit = (hits * np.log(chance) + (1 - hits) * np.log(1 - chance)).sum(1) - 0.02 * slope**2
        best = int(np.argmax(fit))
        found = float(middle[best]), float(slope[best])
        reach = middles[1] - middles[0], slopes[1] - slopes[0]
        middles = found[0] + np.linspace(-1, 1, 21) * reach[0]
        slopes = np.minimum(found[1] + np.linspace(-1, 1, 11) * reach[1], steepest)
    return found[0], float(np.exp(found[1]))
