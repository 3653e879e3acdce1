"""What an audit reports of values, pairs of values and factors: records that `findings` uses."""

from __future__ import annotations

import dataclasses
from typing import Literal

from recombine.stats.intervals import Interval

Link = Literal["identity", "logit", "log"]


@dataclasses.dataclass(frozen=True)
class Deviation:
    """A value or a pair that is harder or easier than the rest, with a shrunken effect."""

    name: str
    effect: Interval
    q: float
    """The false-discovery rate at which it is named."""
    scale: Link


@dataclasses.dataclass(frozen=True)
class FactorEffect:
    """How much a factor, a pair of factors or a trend changes the score, in points of the score; above 0 is better."""

    name: str
    """colour, or colour x shape."""
    kind: Literal["factor", "pair", "trend"]
    freedom: int
    """Degrees of freedom."""
    contrast: str
    """What is compared, if it is one difference: `blue minus red`; empty if `size` is a standard deviation."""
    size: Interval
    """The difference, or the standard deviation of the effects over combinations."""
    p: float
    """Of no effect."""
    worse: tuple[Deviation, ...] = ()
    """Pairs of values that score worse than their values predict, at a false-discovery rate of .1."""
    better: tuple[Deviation, ...] = ()


@dataclasses.dataclass(frozen=True)
class EffectsFinding:
    """Which factors matter and which interact."""

    effects: tuple[FactorEffect, ...] = ()
    """Factors in the order of the table, then trends, then pairs of factors, the most certain first."""
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Slice:
    """Combinations that share one value or two, with their mean score."""

    name: str
    """colour=red, or colour=red + shape=cube."""
    combinations: int
    rows: int
    mean: float
    score: Interval | None
    """The mean with its interval; None if a single combination allows none."""
    worse: Interval | None
    """How much worse than all other combinations; above 0 is worse."""
    trained: int | None
    """How many of its combinations were trained on; None if unknown."""
    certain: bool = False
    """Whether it is worse than the others even after a correction for the number of slices."""
