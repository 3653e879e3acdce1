"""A covering walk: few factors change from one combination to the next, and each change meets as much as it can.

A change of one factor meets up to slots - 1 new pairs, a change of all only half as many for each factor changed. So
where changes are what is paid for, a list that covers in few combinations is dear, and a walk is cheap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.spaces.product import ProductSpace
from recombine.supports.covering import Forbidden, allowed

LARGEST = 150_000_000
"""Bytes for what is not met yet: a walk knows every interaction."""
TOGETHER = 64
"""So many combinations are checked against the constraints at a time."""
LOOKS = 256
"""So many interactions are looked at for the next step where no single change meets anything new."""

Row = Int[np.ndarray, " slots"]


def walkable(space: ProductSpace, strength: int) -> bool:
    """Whether all interactions fit in memory."""
    return 2 <= strength <= space.slots and space.width**strength <= LARGEST


def walk(
    space: ProductSpace,
    start: Row,
    *,
    strength: int,
    already: Int[np.ndarray, "n slots"],
    avoid: Int[np.ndarray, "m slots"] | None = None,
    forbidden: Sequence[Forbidden] = (),
    spread: bool = False,
) -> Iterator[Row]:
    """The combinations after `start`, until no step of up to `strength` changes meets anything new.

    What `already` holds is met; `start` is the last of it, or the first of the walk. None comes twice, nor does one
    that is to be avoided. One factor goes through its levels before the next one does: that needs the fewest changes in
    the end. Where there will be no end, `spread` takes the factors in turn, so that none is left out.
    """
    steps = _Steps(space, strength, forbidden, spread)
    for row in already:
        steps.meet(row)
    for row in () if avoid is None else avoid:
        steps.seen.add(np.asarray(row, np.int32).tobytes())
    steps.meet(start)
    here = np.asarray(start, np.int32)
    while (following := steps.single(here)) is not None or (following := steps.several(here)) is not None:
        steps.meet(following)
        here = following
        yield here


class _Steps:
    """What is not met yet, and which step from a combination meets most of it."""

    def __init__(
        self, space: ProductSpace, strength: int, forbidden: Sequence[Forbidden], spread: bool
    ) -> None:
        self.space = space
        self.strength = strength
        self.forbidden = forbidden
        self.factor = np.repeat(np.arange(space.slots), space.levels)
        self.open = _all_interactions(self.factor, strength)
        self.wanted: Float[np.ndarray, " width"] = self.open.sum(axis=tuple(range(1, strength))).astype(float)
        self.seen: set[bytes] = set()
        self.spread = spread
        self.changed = np.zeros(space.slots, np.int64)
        """How often each factor was changed."""

    def meet(self, row: Row) -> None:
        block = np.ix_(*[row] * self.strength)
        met = self.open[block]
        self.wanted[row] -= met.sum(axis=tuple(range(1, self.strength)))
        self.open[block] = False
        self.seen.add(np.asarray(row, np.int32).tobytes())

    def _gains(self, row: Row) -> Float[np.ndarray, " width"]:
        """For each level how many interactions it would meet in this combination, in the place of its factor's."""
        part = self.open
        for axis in range(1, self.strength):
            part = np.take(part, row, axis=axis)
        return part.sum(axis=tuple(range(1, self.strength))) / math.factorial(self.strength - 1)

    def single(self, row: Row) -> Row | None:
        """The change of one factor that meets most; of several the level that has most left to meet."""
        gains = self._gains(row)
        # Complete sums of whole numbers, so ties are ties; the sort keeps the order of levels among them.
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
        """The fewest changes that meet something new, and among them those that meet most."""
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
                worth = [self._met_by(rows[place]) / changes[chosen[place]] for place in free]
                return rows[free[int(np.argmax(worth))]]
        return None

    def _met_by(self, row: Row) -> float:
        return float(self.open[np.ix_(*[row] * self.strength)].sum()) / math.factorial(self.strength)

    def _free(self, rows: Int[np.ndarray, "n slots"]) -> Bool[np.ndarray, " n"]:
        fresh = np.array([row.tobytes() not in self.seen for row in rows], bool)
        return fresh & allowed(self.space, rows, self.forbidden) if self.forbidden else fresh


def _all_interactions(factor: Int[np.ndarray, " width"], strength: int) -> np.ndarray:
    """Which tuples of levels can meet: those of different factors. Each is there in every order."""
    made = np.ones((len(factor),) * strength, bool)
    apart = factor[:, None] != factor[None, :]
    for one, two in itertools.combinations(range(strength), 2):
        shape = [1] * strength
        shape[one] = shape[two] = len(factor)
        made &= apart.reshape(shape)
    return made
