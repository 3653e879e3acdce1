"""The rule that turns an interval into a word: pure, and vectorised so that simulations test the rule itself."""

from __future__ import annotations

from typing import Literal, NamedTuple, assert_never

import numpy as np
import numpy.typing as npt
from scipy import special

from recombine.stats.intervals import LEVEL, Floats, t_bounds

Direction = Literal["greater", "less", "equivalent", "above", "below"]
Word = Literal["supported", "contradicted", "equivalent", "inconclusive"]


class Region(NamedTuple):
    """Where the whole interval must lie for a word. *Equivalent* includes its ends, the others do not."""

    word: Word
    low: Floats
    high: Floats


class Decision(NamedTuple):
    """What the rule says, with the ends of the interval it looked at; arrays of one shape."""

    word: npt.NDArray[np.str_]
    low: Floats
    high: Floats
    p: Floats


def regions(direction: Direction, margin: npt.ArrayLike) -> tuple[Region, ...]:
    """The regions of a direction, the wanted one first.

    For `greater`, `less` and `equivalent` the margin is a distance from no effect; for `above` and `below` it
    is the threshold itself.
    """
    at = np.asarray(margin, dtype=float)
    over, under = (at, np.asarray(np.inf)), (np.asarray(-np.inf), -at)
    within = Region("equivalent", -at, at)
    match direction:
        case "greater":
            return Region("supported", *over), Region("contradicted", *under), within
        case "less":
            return Region("supported", *under), Region("contradicted", *over), within
        case "equivalent":
            return within, Region("contradicted", *over), Region("contradicted", *under)
        case "above":
            return Region("supported", *over), Region("contradicted", np.asarray(-np.inf), at)
        case "below":
            return Region("supported", np.asarray(-np.inf), at), Region("contradicted", *over)
        case _:
            assert_never(direction)


def decide(
    direction: Direction,
    mean: npt.ArrayLike,
    error: npt.ArrayLike,
    replicates: npt.ArrayLike,
    margin: npt.ArrayLike,
) -> Decision:
    """The word for a mean effect with a standard error over at least 2 replicates. Arrays broadcast.

    p is the smallest alpha at which the (1 - alpha) interval still gives the word; where the word is
    *inconclusive*, the smallest at which the wanted word would be reached (1: at none).
    """
    mean, error = np.asarray(mean, dtype=float), np.asarray(error, dtype=float)
    low, high = t_bounds(mean, error, replicates, LEVEL)
    wanted, *others = regions(direction, margin)
    p = _smallest_alpha(wanted, mean, error, replicates)
    word = np.where(_holds(wanted, low, high), wanted.word, np.asarray("inconclusive", dtype="<U12"))
    for region in others:
        reached = _holds(region, low, high)
        word = np.where(reached, region.word, word)
        p = np.where(reached, _smallest_alpha(region, mean, error, replicates), p)
    return Decision(word, low, high, p)


def _holds(region: Region, low: Floats, high: Floats) -> npt.NDArray[np.bool_]:
    if region.word == "equivalent":
        return (low >= region.low) & (high <= region.high)
    return (low > region.low) & (high < region.high)


def _smallest_alpha(region: Region, mean: Floats, error: Floats, replicates: npt.ArrayLike) -> Floats:
    """Twice the larger of the two one-sided t test p values; only one counts where an end is infinite."""
    depth = np.minimum(mean - region.low, region.high - mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(np.asarray(replicates) - 1, -depth / error)
    # Without variance every interval is the point itself, whatever alpha is.
    return np.where(_holds(region, mean, mean), np.where(error == 0, 0.0, p), 1.0)
