"""A slope within crossed groups: each factor has a level of its own for each of its values, and replicates cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from recombine.errors import BadInput
from recombine.stats.columns import Codes, Floats, codes, less_group_means, numbers
from recombine.stats.intervals import LEVEL, Interval

MOST_ROUNDS = 10_000
CONVERGED = 1e-12


@dataclass(frozen=True)
class WithinSlope:
    """A slope when the groups are held still."""

    slope: Interval
    error: float
    """The standard error of the slope; `rule.decide` takes it with the number of replicates."""


def within_slope(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    factors: Mapping[str, npt.ArrayLike],
    replicate: npt.ArrayLike,
    covariates: Sequence[npt.ArrayLike] = (),
    *,
    level: float = LEVEL,
) -> WithinSlope:
    """The slope of y on x with a fixed effect for each value of each factor, e.g. of size and of teacher.

    The interval is robust to whatever points of one replicate share: it comes from leaving out one replicate after
    the other (CR3, by the leverage of x once all else is taken out), with t of replicates - 1 degrees of freedom.
    Simulated coverage at .95 where slopes differ between replicates: .94 with 12 replicates, .935 with 6.
    """
    named = {f"covariate {index}": values for index, values in enumerate(covariates)}
    columns = numbers(3, x=x, y=y, **named)
    grouped = [codes(labels, len(columns[0]), name)[0] for name, labels in factors.items()]
    clusters, replicates = codes(replicate, len(columns[0]), "replicate")
    if len(replicates) < 2:
        raise BadInput("A slope over replicates needs at least 2 of them, got 1.", fix="run more replicates")
    inside = [within(column, grouped) for column in columns]
    pair = np.stack(inside[:2])
    if named:
        others = np.stack(inside[2:])
        pair = pair - np.linalg.lstsq(others.T, pair.T, rcond=None)[0].T @ others
    at, value = pair
    total = float(at @ at)
    if total <= 1e-18 * max(1.0, float(columns[0] @ columns[0])):
        raise BadInput(
            f"x does not vary within {', '.join(factors) or 'the data'} once covariates are taken out.",
            fix="vary something other than the factors",
        )
    slope = float(at @ value) / total
    scores = np.bincount(clusters, weights=at * (value - slope * at))
    leverage = np.bincount(clusters, weights=at**2) / total
    if leverage.max() >= 1 - 1e-9:
        raise BadInput(
            "x varies in a single replicate only, so nothing says how replicates differ.",
            fix="run more replicates",
        )
    error = math.sqrt(float(((scores / (1 - leverage)) ** 2).sum())) / total
    half = float(special.stdtrit(len(replicates) - 1, (1 + level) / 2)) * error
    return WithinSlope(
        Interval(slope, slope - half, slope + half, len(replicates), level, "within, cluster-robust t"), error
    )


def within(values: Floats, factors: Sequence[Codes]) -> Floats:
    """The values less what a sum of group levels explains, by taking group means away in turn until none are left."""
    if not factors:
        return values - values.mean()
    scale = max(float(np.abs(values).max()), 1e-300)
    for _ in range(MOST_ROUNDS):
        before = values
        for factor in factors:
            values = less_group_means(values, factor)
        if len(factors) == 1 or float(np.abs(values - before).max()) <= CONVERGED * scale:
            return values
    raise BadInput(
        f"Group means did not vanish in {MOST_ROUNDS} rounds: few groups of one factor meet those of another.",
        fix="leave a factor out, or add points in which its groups meet",
    )
