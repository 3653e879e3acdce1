"""The rule that turns an interval into an outcome. It is vectorised, so that simulations can test the rule itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, assert_never

import numpy as np
import numpy.typing as npt
from scipy import special

from recombine.stats.intervals import LEVEL, Floats, t_bounds

Direction = Literal["greater", "less", "equivalent", "above", "below"]
"""What a claim says of its effect. `above` and `below` compare with a threshold, the others with no effect."""
Outcome = Literal["supported", "contradicted", "equivalent", "inconclusive", "depends on the scale"]
"""What the replicates say about a claim. A claim that is judged on several scales may depend on the scale."""


class Region(NamedTuple):
    """Where the whole interval must lie for an outcome. *Equivalent* includes the ends, the others do not."""

    outcome: Outcome
    low: Floats
    high: Floats


class Decision(NamedTuple):
    """Outcomes with their intervals and p values: arrays of one shape."""

    outcome: npt.NDArray[np.str_]
    low: Floats
    high: Floats
    p: Floats


def regions(direction: Direction, margin: npt.ArrayLike) -> tuple[Region, ...]:
    """List the regions of a direction. The first is the one in which the claim holds.

    Args:
        direction: The direction of the claim.
        margin: A distance from no effect; for `above` and `below` the threshold.

    Returns:
        The regions with their outcomes.
    """
    bound = np.asarray(margin, dtype=float)
    over, under = (bound, np.asarray(np.inf)), (np.asarray(-np.inf), -bound)
    within = Region("equivalent", -bound, bound)
    match direction:
        case "greater":
            return Region("supported", *over), Region("contradicted", *under), within
        case "less":
            return Region("supported", *under), Region("contradicted", *over), within
        case "equivalent":
            return within, Region("contradicted", *over), Region("contradicted", *under)
        case "above":
            return Region("supported", *over), Region("contradicted", np.asarray(-np.inf), bound)
        case "below":
            return Region("supported", np.asarray(-np.inf), bound), Region("contradicted", *over)
        case _:
            assert_never(direction)


def decide(
    direction: Direction, mean: npt.ArrayLike, error: npt.ArrayLike, replicates: npt.ArrayLike, margin: npt.ArrayLike
) -> Decision:
    """Decide on a mean effect with a standard error over at least 2 replicates. Arrays broadcast.

    p is the smallest alpha at which the (1 - alpha) interval still gives the outcome. Where the outcome is
    *inconclusive*, it is the smallest alpha at which the claim would hold, or 1 if there is none.

    Args:
        direction: The direction of the claim.
        mean: The mean effect.
        error: Its standard error.
        replicates: The number of replicates.
        margin: A distance from no effect; for `above` and `below` the threshold.

    Returns:
        Outcomes, the ends of the intervals, and p values.
    """
    mean, error = np.asarray(mean, dtype=float), np.asarray(error, dtype=float)
    low, high = t_bounds(mean, error, replicates, LEVEL)
    wanted, *others = regions(direction, margin)
    p = _smallest_alpha(wanted, mean, error, replicates)
    outcome = np.where(_holds(wanted, low, high), wanted.outcome, np.asarray("inconclusive", dtype="<U12"))
    for region in others:
        reached = _holds(region, low, high)
        outcome = np.where(reached, region.outcome, outcome)
        p = np.where(reached, _smallest_alpha(region, mean, error, replicates), p)
    return Decision(outcome, low, high, p)


def on_every_scale(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of a claim that is judged on several scales of one score.

    Args:
        outcomes: The outcome on each scale.

    Returns:
        The common outcome; *depends on the scale* where two scales are decided differently; else *inconclusive*.
    """
    if len({outcome for outcome in outcomes if outcome != "inconclusive"}) > 1:
        return "depends on the scale"
    return "inconclusive" if "inconclusive" in outcomes else outcomes[0]


def holds_within(direction: Direction, outcome: Outcome, margin: float, low: float, high: float) -> bool:
    """Whether a second interval gives the same outcome: it lies in a region of this outcome.

    Args:
        direction: The direction of the claim.
        outcome: The outcome of the first interval.
        margin: A distance from no effect; for `above` and `below` the threshold.
        low: The lower end of the second interval.
        high: Its upper end.
    """
    ends = np.asarray(low), np.asarray(high)
    return any(bool(_holds(region, *ends)) for region in regions(direction, margin) if region.outcome == outcome)


def _holds(region: Region, low: Floats, high: Floats) -> npt.NDArray[np.bool_]:
    if region.outcome == "equivalent":
        return (low >= region.low) & (high <= region.high)
    return (low > region.low) & (high < region.high)


def _smallest_alpha(region: Region, mean: Floats, error: Floats, replicates: npt.ArrayLike) -> Floats:
    """Twice the larger p value of the two one-sided t tests; where an end is infinite, there is only one."""
    depth = np.minimum(mean - region.low, region.high - mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(np.asarray(replicates) - 1, -depth / error)
    # Without variance the interval is a point for every alpha.
    return np.where(_holds(region, mean, mean), np.where(error == 0, 0.0, p), 1.0)
