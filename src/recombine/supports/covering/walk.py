"""A covering walk: few factors change from one combination to the next, and each change covers as much as possible.

A change of one factor covers up to slots - 1 new pairs; a change of all factors covers only half as many per changed
factor. So where changes cost, a design of few combinations is expensive and a walk is cheap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import Rows
from recombine.supports.covering import Forbidden, allowed
from recombine.supports.covering.tally import of_different_groups

LARGEST = 150_000_000
"""The largest table of uncovered interactions, in bytes."""
TOGETHER = 64
"""The number of combinations checked against the constraints at a time."""
LOOKS = 256
"""The number of interactions tried for the next step where no single change covers anything new."""

Row = Int[np.ndarray, " slots"]


def walkable(space: ProductSpace, strength: int) -> bool:
    """Whether a table of all interactions fits in memory."""
    return 2 <= strength <= space.slots and space.width**strength <= LARGEST


def walk(
    space: ProductSpace,
    start: Row,
    *,
    strength: int,
    already: Rows,
    avoid: Int[np.ndarray, "m slots"] | None = None,
    forbidden: Sequence[Forbidden] = (),
    spread: bool = False,
) -> Iterator[Row]:
    """The combinations after `start`, each once, until no step of up to `strength` changes covers anything new.

    The interactions of the rows `already` count as covered; the rows `avoid` are not visited. By default one factor takes
    all its levels before the next one does, which needs the fewest changes for full coverage. With `spread` the factors
    change in turn: use it where the walk ends before that.
    """
    steps = _Steps(space, strength, forbidden, spread)
    for row in already:
        steps.visit(row)
    for row in () if avoid is None else avoid:
        steps.seen.add(np.asarray(row, np.int32).tobytes())
    steps.visit(start)
    here = np.asarray(start, np.int32)
    while (following := steps.single(here)) is not None or (following := steps.several(here)) is not None:
        steps.visit(following)
        here = following
        yield here


class _Steps:
    """The uncovered interactions, and the step from a combination that covers most of them."""

    def __init__(self, space: ProductSpace, strength: int, forbidden: Sequence[Forbidden], spread: bool) -> None:
        self.space = space
        self.strength = strength
        self.forbidden = forbidden
        self.factor = np.repeat(np.arange(space.slots), space.levels)
        self.open = of_different_groups(self.factor, strength)
        self.wanted: Float[np.ndarray, " width"] = self.open.sum(axis=tuple(range(1, strength))).astype(float)
        self.seen: set[bytes] = set()
        self.spread = spread
        self.changed = np.zeros(space.slots, np.int64)
        """The number of changes of each factor."""

    def visit(self, row: Row) -> None:
        """Mark the interactions of a row as covered."""
        block = np.ix_(*[row] * self.strength)
        covered = self.open[block]
        self.wanted[row] -= covered.sum(axis=tuple(range(1, self.strength)))
        self.open[block] = False
        self.seen.add(np.asarray(row, np.int32).tobytes())

    def _gains(self, row: Row) -> Float[np.ndarray, " width"]:
        """The number of new interactions of each level, if it replaced the level of its factor in this combination."""
        part = self.open
        for axis in range(1, self.strength):
            part = np.take(part, row, axis=axis)
        return part.sum(axis=tuple(range(1, self.strength))) / math.factorial(self.strength - 1)

    def single(self, row: Row) -> Row | None:
        """The change of one factor that covers most; among equals the level with the most uncovered interactions."""
        gains = self._gains(row)
        # The sums are exact integers, so ties are exact; the sort keeps the order of levels among them.
        turn = self.changed[self.factor] if self.spread else np.zeros(len(gains))
        useful = np.lexsort((-self.wanted, turn, -gains))[: int((gains > 0).sum())]
        for begin in range(0, len(useful), TOGETHER):
            levels = useful[begin : begin + TOGETHER]
            rows = np.repeat(row[None], len(levels), axis=0)
            rows[np.arange(len(levels)), self.factor[levels]] = levels
            free = self._free(rows)
            if free.any():
                self.changed[self.factor[levels[np.argmax(free)]]] += 1
                return rows[np.argmax(free)]
        return None

    def several(self, row: Row) -> Row | None:
        """The fewest changes that cover something new, and among them those that cover most."""
        missing = np.argwhere(self.open)
        missing = missing[np.all(np.diff(missing, axis=1) > 0, axis=1)] if len(missing) else missing
        changes = (~np.isin(missing, row)).sum(axis=1)
        order = np.argsort(changes, kind="stable")
        for begin in range(0, len(order), LOOKS):
            chosen = order[begin : begin + LOOKS]
            rows = np.repeat(row[None], len(chosen), axis=0)
            rows[np.arange(len(chosen))[:, None], self.factor[missing[chosen]]] = missing[chosen]
            free = np.nonzero(self._free(rows))[0]
            if len(free):
                worth = [self._gain(rows[index]) / changes[chosen[index]] for index in free]
                return rows[free[int(np.argmax(worth))]]
        return None

    def _gain(self, row: Row) -> float:
        return float(self.open[np.ix_(*[row] * self.strength)].sum()) / math.factorial(self.strength)

    def _free(self, rows: Rows) -> Bool[np.ndarray, " n"]:
        fresh = np.array([row.tobytes() not in self.seen for row in rows], bool)
        return fresh & allowed(self.space, rows, self.forbidden) if self.forbidden else fresh
