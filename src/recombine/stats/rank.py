"""Rank correlation within groups, with covariates partialled out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from recombine.errors import BadInput
from recombine.stats.columns import Codes, Floats, codes, less_group_means, numbers
from recombine.stats.intervals import LEVEL, Interval, bootstrap_interval


def partial_rank(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    covariates: Sequence[npt.ArrayLike] = (),
    *,
    replicate: npt.ArrayLike | None = None,
    level: float = LEVEL,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Compute Spearman's correlation of x and y within groups, with the ranks of covariates partialled out.

    Values are ranked within their group and ranks are scaled by its size, so that each point counts the same. The
    interval is Fisher's, with Bonett and Wright's error for ranks, and one degree of freedom less for each further
    group and covariate. It assumes independent points. Where a replicate gives several points, pass `replicate`.

    Args:
        x: The first variable.
        y: The second variable.
        group: The group of each point; with one group this is the ordinary rank correlation.
        covariates: Variables to partial out.
        replicate: The replicate of each point. The interval then comes from resampling whole replicates.
        level: The level of the interval.
        resamples: The number of resamples, with `replicate`.
        seed: The seed of the resampling.

    Returns:
        The correlation with its interval.
    """
    named = {f"covariate {index}": values for index, values in enumerate(covariates)}
    columns = np.stack(numbers(3, x=x, y=y, **named))
    count = columns.shape[1]
    grouped, groups = codes(group, count)
    estimate = _partial(columns, grouped)
    if not math.isfinite(estimate):
        raise BadInput(
            "x or y does not vary within groups once covariates are partialled out.",
            fix="vary something other than what makes the groups",
        )
    if replicate is not None:
        replicated, replicates = codes(replicate, count, "replicate")
        members = [np.flatnonzero(replicated == index) for index in range(len(replicates))]

        def statistic(samples: Floats) -> list[float]:
            drawn = (np.concatenate([members[int(index)] for index in sample]) for sample in samples)
            return [_partial(columns[:, points], grouped[points]) for points in drawn]

        return bootstrap_interval(np.arange(len(replicates)), statistic, level, seed, resamples)
    freedom = count - len(groups) - len(named) - 2
    if freedom < 1:
        raise BadInput(
            f"{count} points in {len(groups)} groups with {len(named)} covariates leave no degrees of freedom.",
            fix="give more points, or fewer groups",
        )
    # The interval of a perfect order would be a point; it is treated as half a swap of neighbours from perfect.
    each = count / len(groups)
    swap = 6 / (each * (each**2 - 1)) / len(groups)
    middle = math.atanh(float(np.clip(estimate, swap - 1, 1 - swap)))
    half = float(special.ndtri((1 + level) / 2)) * math.sqrt((1 + estimate**2 / 2) / freedom)
    low, high = math.tanh(middle - half), math.tanh(middle + half)
    return Interval(estimate, min(low, estimate), max(high, estimate), count, level, "fisher z")


def ranks_within(values: Floats, group: Codes) -> Floats:
    """Rank values within their group.

    Args:
        values: The values.
        group: The number of each value's group, from 0.

    Returns:
        The share of its group that each value exceeds, from 0 to 1. Equal values count half.
    """
    order = np.lexsort((values, group))
    sorted_values, sorted_group = values[order], group[order]
    new_group = np.append(True, sorted_group[1:] != sorted_group[:-1])
    new_value = new_group | np.append(True, sorted_values[1:] != sorted_values[:-1])
    run = np.cumsum(new_value) - 1
    first = np.flatnonzero(new_value)
    middle = first + (np.diff(np.append(first, len(values))) - 1) / 2
    start = np.flatnonzero(new_group)[np.cumsum(new_group) - 1]
    ranks = np.empty(len(values))
    ranks[order] = middle[run] - start + 0.5
    return ranks / np.bincount(group)[group]


def _partial(columns: Floats, group: Codes) -> float:
    """The correlation of the first two columns as ranks within groups, the other columns partialled out."""
    ranked = np.stack([less_group_means(ranks_within(column, group), group) for column in columns])
    pair, others = ranked[:2], ranked[2:]
    if len(others):
        pair = pair - (np.linalg.lstsq(others.T, pair.T, rcond=None)[0].T @ others)
    size = np.sqrt((pair**2).sum(1))
    if np.any(size <= 1e-9 * math.sqrt(pair.shape[1])):
        return math.nan
    return float(np.clip(pair[0] @ pair[1] / (size[0] * size[1]), -1, 1))
