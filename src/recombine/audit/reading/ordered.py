"""Factors whose values have an order: numbers, which are put into bins, and named steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput

BINS = 5
"""The number of bins of a factor with many numbers."""
FEW = 8
"""Up to this many different numbers, each is a value of its own."""
MOST_BINS = 100
NUMERIC_FIX = "write --numeric size, --numeric size=4 (bins) or --numeric size=0:10:50 (the ends of the bins)"


@dataclasses.dataclass(frozen=True)
class Ordering:
    """How the values of a factor are ordered."""

    numeric: bool
    bins: int | None = None
    """The number of bins; None: 5, or one for each number if there are at most 8."""
    edges: tuple[float, ...] = ()
    """The ends of the bins, ascending. A bin holds its lower end; the last one holds both."""
    steps: tuple[str, ...] = ()
    """The values of an ordinal factor, ascending."""


def parse_orderings(
    numeric: Mapping[str, Any] | Sequence[str] | str, ordinal: Mapping[str, Sequence[str]] | None
) -> dict[str, Ordering]:
    """The orderings of factors by name.

    Args:
        numeric: Names of factors, or a mapping from names to a number of bins, the ends of the bins, or None.
        ordinal: Factors with their values, ascending.
    """
    names = (numeric,) if isinstance(numeric, str) else numeric
    chosen = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names)
    orderings = {name: _numeric(name, given) for name, given in chosen.items()}
    for name, steps in (ordinal or {}).items():
        steps = tuple(map(str, steps))
        if name in orderings:
            raise BadInput(f"Factor {name!r} is named as numeric and as ordinal.", fix="choose one of the two")
        if len(steps) < 2 or len(set(steps)) < len(steps):
            raise BadInput(
                f"The steps of {name!r} must be at least two different values.", fix=f"--ordinal {name}=low,high"
            )
        orderings[name] = Ordering(False, steps=steps)
    return orderings


def _numeric(name: str, given: Any) -> Ordering:
    if given is None:
        return Ordering(True)
    if isinstance(given, int | float):
        if not 2 <= given <= MOST_BINS or given != int(given):
            raise BadInput(f"Factor {name!r} cannot have {given:g} bins.", fix=f"give 2 to {MOST_BINS} bins")
        return Ordering(True, int(given))
    edges = tuple(float(edge) for edge in given)
    if len(edges) < 3 or len(edges) > MOST_BINS + 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        raise BadInput(f"The ends of the bins of {name!r} must be at least three ascending numbers.", fix=NUMERIC_FIX)
    return Ordering(True, edges=edges)


@dataclasses.dataclass(frozen=True)
class Ordered:
    """The values of an ordered factor."""

    values: tuple[str, ...]
    positions: tuple[float, ...]
    number: Int[np.ndarray, " text"]
    """The value of each text."""


def ordered_values(name: str, texts: Sequence[str], weights: Int[np.ndarray, " text"], ordering: Ordering) -> Ordered:
    """The values of an ordered factor: steps, numbers, or bins of numbers.

    Args:
        name: The factor.
        texts: The texts that occur.
        weights: How often each occurs; bins hold equal numbers as far as possible.
        ordering: What the user asked for.
    """
    if not ordering.numeric:
        return _steps(name, texts, ordering.steps)
    numbers = _numbers(name, texts)
    if ordering.edges:
        return _between(name, numbers, weights, np.array(ordering.edges))
    distinct = np.unique(numbers)
    if len(distinct) <= (FEW if ordering.bins is None else ordering.bins):
        number = np.searchsorted(distinct, numbers)
        return Ordered(tuple(f"{value:.6g}" for value in distinct), tuple(distinct.tolist()), number)
    shares = np.linspace(0, 1, (ordering.bins or BINS) + 1)[1:-1]
    order = np.argsort(numbers, kind="stable")
    reached = np.cumsum(weights[order]) / max(int(weights.sum()), 1)
    cuts = np.unique(numbers[order][np.minimum(np.searchsorted(reached, shares), len(order) - 1)])
    cuts = cuts[cuts > distinct[0]]
    return _labelled(numbers, weights, np.searchsorted(cuts, numbers, side="right"))


def _between(
    name: str, numbers: Float[np.ndarray, " text"], weights: Int[np.ndarray, " text"], edges: Float[np.ndarray, " edge"]
) -> Ordered:
    outside = numbers[(numbers < edges[0]) | (numbers > edges[-1])]
    if len(outside):
        raise BadInput(
            f"Factor {name!r} has the value {outside[0]:g}, which is in no bin from {edges[0]:g} to {edges[-1]:g}.",
            fix="give ends that hold all values, or leave rows out with --where",
        )
    bins = np.minimum(np.searchsorted(edges, numbers, side="right") - 1, len(edges) - 2)
    used = np.unique(bins)
    values = tuple(f"{edges[index]:.6g} to {edges[index + 1]:.6g}" for index in used.tolist())
    positions = tuple(float(np.average(numbers[bins == index], weights=weights[bins == index])) for index in used)
    return Ordered(values, positions, np.searchsorted(used, bins))


def _labelled(
    numbers: Float[np.ndarray, " text"], weights: Int[np.ndarray, " text"], bins: Int[np.ndarray, " text"]
) -> Ordered:
    """Bins with the names of their least and their greatest number."""
    used, number = np.unique(bins, return_inverse=True)
    values, positions = [], []
    for index in range(len(used)):
        held = numbers[number == index]
        low, high = float(held.min()), float(held.max())
        values.append(f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}")
        positions.append(float(np.average(held, weights=np.maximum(weights[number == index], 1))))
    return Ordered(tuple(values), tuple(positions), number.reshape(-1))


def _numbers(name: str, texts: Sequence[str]) -> Float[np.ndarray, " text"]:
    numbers = np.empty(len(texts))
    for index, text in enumerate(texts):
        try:
            numbers[index] = float(text)
        except ValueError:
            numbers[index] = np.nan
        if not np.isfinite(numbers[index]):
            raise BadInput(
                f"Factor {name!r} is named as numeric, but has the value {text[:40]!r}.",
                fix="leave it out of --numeric, or name its steps: --ordinal NAME=low,high",
            )
    return numbers


def _steps(name: str, texts: Sequence[str], steps: tuple[str, ...]) -> Ordered:
    stripped = [text.strip() for text in texts]
    unknown = [text for text in stripped if text not in steps]
    if unknown:
        raise BadInput(
            f"Factor {name!r} has the value {unknown[0][:40]!r}, which is none of the steps {', '.join(steps)}.",
            fix=f"name all steps in ascending order: --ordinal {name}=low,medium,high",
        )
    used = [step for step in steps if step in stripped]
    number = np.array([used.index(text) for text in stripped], dtype=np.int64)
    return Ordered(tuple(used), tuple(float(steps.index(step)) for step in used), number)
