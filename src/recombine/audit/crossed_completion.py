"""Which combinations to collect so that parts and combination can be told apart."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
from jaxtyping import Float, Int

from recombine.audit.cells import NOTHING
from recombine.audit.crossed_design import Design

SHOWN = 50
"""So many combinations are named."""

LISTED = 20_000
"""Spaces up to this size are listed; of larger ones candidates are drawn, values that are rare more often."""

CANDIDATES = 1000


@dataclasses.dataclass(frozen=True)
class Completion:
    """Combinations to collect."""

    number: int
    """How many it takes."""
    shown: tuple[tuple[str, ...], ...]
    """The first of them, as labels."""
    exhausted: bool
    """Whether these are all that the values allow."""


def completing(design: Design, groups: Int[np.ndarray, " column"], target: int) -> Completion:
    """Combinations of the values that are there, up to `target` in all, that join groups and use rare values again.

    Each is the one with the largest sum of 1 / (1 + uses)^2 over its values, and 1 for each group that it joins to
    another. No value stands in two roles of it, and sets are of the usual size.
    """
    slots = _slots(design)
    rng = np.random.default_rng(0)
    size = math.prod(len(columns) for columns in slots)
    seen = {tuple(row[row != NOTHING].tolist()) for row in np.sort(design.rows, axis=1)}
    small = size <= LISTED
    everything = (
        _sensible(design, np.array(list(itertools.product(*slots)), dtype=np.int64)) if small else None
    )
    if everything is not None:
        fresh = [tuple(row) not in seen for row in everything.tolist()]
        everything = everything[np.array(fresh, dtype=bool)]
    joins = len(np.unique(groups)) - 1
    wanted = max(target - len(design.cells), joins, 1)
    number = wanted if everything is None else min(wanted, len(everything))
    uses, label = design.uses.astype(float), groups.copy()
    shown: list[tuple[int, ...]] = []
    while len(shown) < min(number, SHOWN):
        candidates = _drawn(design, slots, uses, rng) if everything is None else everything
        gain = (1 / (1 + uses[candidates]) ** 2).sum(1) + _joined(label[candidates])
        best = next(
            (
                one
                for one in map(tuple, candidates[np.argsort(-gain, kind="stable")].tolist())
                if one not in seen
            ),
            None,
        )
        if best is None:
            break
        seen.add(best)
        shown.append(best)
        uses[list(best)] += 1
        label[np.isin(label, label[list(best)])] = label[best[0]]
    names = tuple(tuple(design.labels[column] for column in row) for row in shown)
    return Completion(number, names, everything is not None and number == len(everything))


def _slots(design: Design) -> list[np.ndarray]:
    """The columns that can stand in each slot of a new combination."""
    slots = []
    for place, single in enumerate(design.single):
        times = 1 if single else max(1, round(float(np.median(design.held(place)))))
        slots += [design.of(place)] * times
    return slots


def _sensible(design: Design, rows: Int[np.ndarray, "n slot"]) -> Int[np.ndarray, "kept slot"]:
    """Rows without a value twice, sorted, each once."""
    if not len(rows):
        return rows
    held = np.sort(design.constituent[rows], axis=1)
    return np.unique(np.sort(rows[(np.diff(held, axis=1) > 0).all(1)], axis=1), axis=0)


def _drawn(
    design: Design,
    slots: list[np.ndarray],
    uses: Float[np.ndarray, " column"],
    rng: np.random.Generator,
) -> Int[np.ndarray, "drawn slot"]:
    """Candidates, with rare values more often."""
    drawn = []
    for columns in slots:
        weight = 1 / (1 + uses[columns]) ** 2
        drawn.append(rng.choice(columns, size=CANDIDATES, p=weight / weight.sum()))
    return _sensible(design, np.stack(drawn, axis=1))


def _joined(label: Int[np.ndarray, "n slot"]) -> Int[np.ndarray, " n"]:
    """How many groups each row joins to another."""
    return (np.diff(np.sort(label, axis=1), axis=1) > 0).sum(1)
