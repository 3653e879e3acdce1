"""Rank correlation over combinations that share concepts, which are no independent points."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from recombine.errors import BadInput
from recombine.stats.columns import less_group_means
from recombine.stats.intervals import LEVEL, Interval
from recombine.stats.rank import ranks_within


def shared_rank(
    columns: Float[np.ndarray, "column n"],
    group: Int[np.ndarray, " n"],
    holds: Bool[np.ndarray, "n concept"],
    held: Float[np.ndarray, "n effect"] | None = None,
) -> Interval:
    """Spearman's correlation of the first two columns within groups, the others (as ranks) and `held` (as it is) taken out.

    A concept that is easy to read and easy to draw by chance lifts all combinations that hold it, so the error is that of
    leaving out each concept with all its combinations (a jackknife). A combination with k concepts is left out k times: what
    it adds of its own is taken off again k - 1 times. The error is never below that of independent combinations. The
    interval is Student's; concepts / k - 1 degrees of freedom are about what the scatter of the error amounts to in simulations.
    """
    count = len(group)
    effects = np.zeros((count, 0)) if held is None else held
    estimate = _correlation(columns, group, effects)
    if not math.isfinite(estimate):
        raise BadInput("it does not vary, or hardly differs from what is held still.")

    def change(out: Bool[np.ndarray, " n"]) -> float:
        """How far the estimate moves without some points; where nothing is left to vary, there is no correlation."""
        left = _correlation(columns[:, ~out], group[~out], effects[~out])
        return (left if math.isfinite(left) else 0.0) - estimate

    own = sum(change(one) ** 2 for one in np.eye(count, dtype=bool)) * (1 - 1 / count)
    shared = sum((1 - float(out.mean())) * change(out) ** 2 for out in holds.T if out.any())
    each = float(holds.sum(1).mean())
    variance = max(own, shared - (each - 1) * own)
    freedom = max(int(holds.any(0).sum()) / each - 1, 1.0)
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance)
    low, high = max(estimate - half, -1.0), min(estimate + half, 1.0)
    return Interval(estimate, low, high, count, LEVEL, "jackknife over concepts")


def held_concepts(concepts: Sequence[Sequence[str]]) -> Bool[np.ndarray, "n concept"]:
    """Which combination holds which concept; one of which nothing is known stands for itself."""
    named = [tuple(one) or (f"{place}",) for place, one in enumerate(concepts)]
    known = {name: place for place, name in enumerate(dict.fromkeys(name for one in named for name in one))}
    holds = np.zeros((len(named), len(known)), bool)
    for row, one in enumerate(named):
        holds[row, [known[name] for name in one]] = True
    return holds


def _correlation(
    columns: Float[np.ndarray, "column n"],
    group: Int[np.ndarray, " n"],
    effects: Float[np.ndarray, "n effect"],
) -> float:
    """NaN where one of the two does not vary once the others are taken out."""
    if not len(group):
        return math.nan
    group = np.unique(group, return_inverse=True)[1]
    ranked = np.stack([less_group_means(ranks_within(one, group), group) for one in columns])
    still = [*ranked[2:], *(less_group_means(one, group) for one in effects.T)]
    pair = ranked[:2]
    if still:
        others = np.stack(still)
        pair = pair - np.linalg.lstsq(others.T, pair.T, rcond=None)[0].T @ others
    size = np.sqrt((pair**2).sum(1))
    if np.any(size <= 1e-9 * math.sqrt(len(group))):
        return math.nan
    return float(np.clip(pair[0] @ pair[1] / (size[0] * size[1]), -1, 1))
