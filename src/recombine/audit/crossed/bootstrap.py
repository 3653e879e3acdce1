"""Do combinations matter beyond their values? A test and an interval of their variance, by simulation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import special

from recombine.audit.crossed.model import FLOOR, Crossed, Effects, Scores
from recombine.stats.intervals import LEVEL, Interval

MOST_DRAWS = 199
LEAST_DRAWS = 39
LEAST_BOUNDING = 99
"""The fewest tables for the interval: with 39 it was too narrow (simulated coverage 0.7)."""

WORK = 5e7
"""The budget of one iteration over the simulated tables, in units of the approximate cost of one table; larger tables are simulated less often."""

Draws = Float[np.ndarray, " draw"]
RANGE = (1e-5, 100.0)
"""The range of combination variances; an unbounded score is in units of the spread between combinations."""


@dataclasses.dataclass(frozen=True)
class Tested:
    """The test and the interval of the combination variance."""

    variance: Interval
    p: float
    draws: int
    null: Effects
    """Fitted without a combination variance."""
    simulated: Scores
    """Simulated tables without interactions."""


def tables_for(model: Crossed, draws: int | None = None) -> tuple[int, int]:
    """How many tables are simulated for the test (199, and fewer for large tables), and how many for the interval."""
    if draws is not None:
        return draws, draws
    a, b = model.sizes
    effort = a * b**2 + b**3 + 200.0 * len(model.design.cells)
    number = int(np.clip(WORK / effort, LEAST_DRAWS, MOST_DRAWS))
    return number, max(number, LEAST_BOUNDING)


def combination_test(model: Crossed, scores: Scores, freedom: int, seed: int = 0, draws: int | None = None) -> Tested:
    """Test that the combination variance is zero, and compute its interval, by parametric bootstrap.

    The statistic is the estimated variance T. For the test, tables are simulated from the fitted values alone and
    fitted again; p = (1 + #{T* >= T}) / (1 + draws). The values' effects stay as estimated, because they need not be
    normal. For the interval, tables are simulated with a range of combination variances s. A probit line of {T* > T} on
    log s, which rises from p, is the probability of a larger statistic. The interval ends at the s where it is 0.025
    and 0.975. For binary scores the estimate is the s where it is 0.5, because the fit's own estimate is too small. A
    table that is more additive than half of the additive simulations is treated like their median, so that luck does
    not narrow the bound. docs/methods-audit.md has simulated rates.

    `scores` is a batch of one table, `freedom` are the degrees of freedom of its noise, `draws` are as in `tables_for`.
    """
    rng = np.random.default_rng(seed)
    number, bounding = tables_for(model, draws)
    free, null = model.fit(scores), model.fit(scores, 0.0)
    observed = float(free.combination_variance[0])

    def drawn(additive: Float[np.ndarray, " cell"], own: Draws) -> Scores:
        eta = additive + np.sqrt(own)[:, None] * rng.standard_normal((len(own), len(additive)))
        mean = model.scatter.draw(rng, eta, scores.count, float(scores.noise[0]))
        noise = scores.noise[0] * rng.chisquare(max(freedom, 1), len(own)) / max(freedom, 1)
        return Scores(mean, scores.count, noise)

    simulated = drawn(null.additive[0], np.zeros(number))
    chance = model.fit(simulated).combination_variance
    p = (1 + int((chance >= observed).sum())) / (1 + number)
    reference = max(observed, float(np.median(chance)))
    least = (1 + int((chance >= reference).sum())) / (1 + number)

    def larger(own: Draws) -> Draws:
        return (model.fit(drawn(free.additive[0], own)).combination_variance > reference).astype(float)

    residual = float((1 - null.weight * null.leverage).sum())
    steepest = 0.5 * float(np.log(max(residual, 1.0) / 2))
    low, middle, high = _inverted(larger, bounding, (1 - LEVEL) / 2, least, steepest)
    estimate = middle if model.scatter.binary else observed
    if observed <= 10 * FLOOR or (model.scatter.binary and p > 0.5):
        estimate = 0.0
    ends = (float(np.clip(estimate, low, high)), low, high)
    interval = Interval(*ends, len(scores.count), LEVEL, "inverted parametric bootstrap")
    return Tested(interval, p, number, null, simulated)


def _inverted(
    larger: Callable[[Draws], Draws], number: int, tail: float, p: float, steepest: float
) -> tuple[float, float, float]:
    """The variances at which a larger statistic has probability `tail`, a half, and 1 - `tail`; at zero variance it is p.

    No line is steeper than that of n effects without error: the log of their variance has a standard deviation of
    sqrt(2 / n).
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


def _at(line: tuple[float, float], chance: float, least: float) -> float:
    """Where a probit line that rises from `least` to 1 reaches a probability; minus infinity if it starts above."""
    inside = (chance - least) / (1 - least) if least < 1 else -1.0
    return line[0] + float(special.ndtri(inside)) / line[1] if inside > 0 else -np.inf


def _probit(
    at: Float[np.ndarray, " n"], hits: Float[np.ndarray, " n"], least: float, steepest: float
) -> tuple[float, float]:
    """The middle and the slope of the maximum-likelihood line, on a grid that is refined twice."""
    middles, slopes = np.linspace(at.min() - 2, at.max() + 2, 60), np.linspace(-2.0, steepest, 20)
    line = 0.0, 0.0
    for _ in range(3):
        middle, slope = (values.ravel() for values in np.meshgrid(middles, slopes))
        chance = least + (1 - least) * special.ndtr(np.exp(slope)[:, None] * (at - middle[:, None]))
        chance = np.clip(chance, 1e-9, 1 - 1e-9)
        fit = (hits * np.log(chance) + (1 - hits) * np.log(1 - chance)).sum(1) - 0.02 * slope**2
        best = int(np.argmax(fit))
        line = float(middle[best]), float(slope[best])
        reach = middles[1] - middles[0], slopes[1] - slopes[0]
        middles = line[0] + np.linspace(-1, 1, 21) * reach[0]
        slopes = np.minimum(line[1] + np.linspace(-1, 1, 11) * reach[1], steepest)
    return line[0], float(np.exp(line[1]))
