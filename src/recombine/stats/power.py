"""How many replicates a claim would need to be decided, from the spread of its effects so far."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from recombine.stats.intervals import LEVEL
from recombine.stats.rule import Direction, regions
from recombine.stats.verdicts import Verdict

POWER = 0.8
"""The probability with which the number of replicates decides the claim."""
MOST = 1000
"""More replicates than this are as good as none: the effect lies on its margin."""


def needed_replicates(direction: Direction, margin: float, effects: npt.ArrayLike) -> int | None:
    """Compute the number of replicates with which a claim would be decided, if its effects go on as they did.

    The mean and the spread of the given effects are taken as the truth. The number is the smallest with which the t
    interval lies in the region around the mean with probability `POWER`.

    Args:
        direction: The direction of the claim.
        margin: A distance from no effect; for `above` and `below` the threshold.
        effects: One effect per replicate; those that are not finite are left out.

    Returns:
        The number of replicates; None if `MOST` do not suffice, or if fewer than 2 effects are finite.

    Example:
        ```python
        needed_replicates("greater", 0.05, [0.09, 0.02, 0.12, 0.07])  # 25
        ```
    """
    values = np.asarray(effects, dtype=float)
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return None
    return _needed(direction, margin, float(values.mean()), float(values.std(ddof=1)))


def needed_to_decide(verdict: Verdict) -> int | None:
    """Compute the number of replicates that would decide a claim, from its interval.

    The result is that of `needed_replicates`. A claim on several scales needs the largest number over its scales.

    Args:
        verdict: What the replicates say so far.

    Returns:
        The number of replicates; None if `MOST` do not suffice, or if there is no interval.

    Example:
        ```python
        needed_to_decide(judge(claim, effects=[0.09, 0.02, 0.12, 0.07]))  # 25
        ```
    """
    claim, count = verdict.claim, verdict.replicates
    if count < 2:
        return None
    # The interval is mean ± quantile * spread / sqrt(count).
    to_spread = np.sqrt(count) / special.stdtrit(count - 1, (1 + LEVEL) / 2)
    needed = []
    for judged, margin in [(scale, scale.margin) for scale in verdict.scales] or [(verdict, claim.margin)]:
        spread = float(judged.high - judged.low) / 2 * to_spread
        if not np.isfinite([judged.effect, spread]).all():
            return None
        needed.append(_needed(claim.direction, margin, judged.effect, spread))
    return None if None in needed else max(number for number in needed if number is not None)


def _needed(direction: Direction, margin: float, mean: float, spread: float) -> int | None:
    region = max(regions(direction, margin), key=lambda each: np.minimum(mean - each.low, each.high - mean))
    depth = float(np.minimum(mean - region.low, region.high - mean))
    # A region with two ends can be missed on both sides.
    sure = (1 + POWER) / 2 if np.isfinite([region.low, region.high]).all() else POWER
    counts = np.arange(2, MOST + 1)
    # The interval's half width, and as much again as the mean of so many replicates may be off.
    quantiles = special.stdtrit(counts - 1, (1 + LEVEL) / 2) + special.stdtrit(counts - 1, sure)
    enough = quantiles * spread / np.sqrt(counts) < depth
    return int(counts[enough.argmax()]) if enough.any() else None
