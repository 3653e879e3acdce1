"""Covering designs: the combinations after which every interaction that can be met was met, best first."""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Int

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.covering_feasible import coverable
from recombine.supports.covering_repair import Repair
from recombine.supports.covering_rows import Builder
from recombine.supports.covering_rules import Forbidden, Rules, Unsatisfiable
from recombine.supports.covering_tally import Tally, choices
from recombine.supports.drawing import SMALL
from recombine.supports.rows import RowSet
from recombine.supports.within import undefined

__all__ = ["Covering", "Forbidden", "Unsatisfiable", "allowed", "cover"]

CANDIDATES = 32
"""So many rows are made at a time, of which the best is taken."""

NEARLY = 0.1
"""A budget that leaves at most this share uncovered is searched for a way to leave less."""

Rows = Int[np.ndarray, "n slots"]


@dataclasses.dataclass(frozen=True)
class Covering:
    """Combinations to collect, in the order in which they help most."""

    rows: Rows
    gained: Int[np.ndarray, " n"]
    """How many interactions each covers that neither those before it nor what was there already cover."""
    covered: int
    """Interactions covered in the end, of those that can be, with what was there already."""
    coverable: int
    """Interactions that some allowed combination has."""
    total: int
    """Interactions of the space."""


def allowed(space: Space, rows: Rows, forbidden: Sequence[Forbidden]) -> Bool[np.ndarray, " n"]:
    """Which combinations violate no constraint."""
    return Rules(space, forbidden).allowed(np.asarray(rows))


def cover(
    space: Space,
    *,
    strength: int = 2,
    number: int | None = None,
    already: Rows | None = None,
    forbidden: Sequence[Forbidden] = (),
    seed: int = 0,
    on: Callable[[int, int], None] | None = None,
) -> Covering:
    """The combinations that cover the interactions of `strength` constituents, whatever is covered `already`.

    Without a `number` there are as many as it takes. A number beyond that goes on with what was met least, and no
    combination comes twice or again: where all have come, there are fewer. `on` hears how many interactions are
    covered, and how many can be, after each row that is made.
    """
    error = undefined("A covering design", space)
    if error is not None:
        raise error
    space._require_strength(strength)
    if number is not None and number < 0:
        raise BadInput(f"number={number}: a plan has no fewer than 0 combinations.")
    history = _history(space, already)
    rng = np.random.default_rng(seed % 2**64)
    rules = Rules(space, forbidden)
    search = _Search(space, strength, rules, history, rng, on)
    rows = search.greedy(number)
    if len(rows):
        rows = search.repaired(rows)
    rows, gained = search.ordered(rows)
    if number is not None and len(rows) < number:
        more, their = search.balanced(rows, number - len(rows))
        rows, gained = np.concatenate([rows, more]), np.concatenate([gained, their])
    tally = search.tally
    return Covering(rows, gained, tally.covered, tally.coverable, space.interactions(strength))


def _history(space: Space, already: Rows | None) -> Rows:
    if already is None or not len(already):
        return np.empty((0, space.slots), np.int32)
    rows = np.asarray(already)
    if rows.ndim != 2 or rows.shape[1] != space.slots or not space.contains(rows).all():
        wrong = rows[~space.contains(rows)][0].tolist() if rows.shape[1:] == (space.slots,) else rows.shape
        raise BadInput(
            f"What is already there must be combinations of {space.title} as rows of {space.slots} numbers, got {wrong}.",
            fix="make rows with space.row(constituents)",
        )
    return rows.astype(np.int32)


class _Search:
    """One search for a covering; `tally` has what is covered so far."""

    def __init__(
        self,
        space: Space,
        strength: int,
        rules: Rules,
        history: Rows,
        rng: np.random.Generator,
        on: Callable[[int, int], None] | None,
    ) -> None:
        self.space, self.strength, self.rules, self.history, self.rng, self.on = (
            *(space, strength, rules, history, rng),
            on,
        )
        self.can = coverable(space, strength, rules, rng)
        self.builder = Builder(space, rules, rng)
        self.tally = self._fresh()
        self.least = self._least()

    def _fresh(self) -> Tally:
        tally = Tally(self.space, self.strength, self.can)
        tally.add(self.history)
        return tally

    def _least(self) -> int:
        """A bound: fewer combinations than this cannot cover what is left."""
        never = self.tally.count == 0
        if not never.any():
            return 0
        if isinstance(self.space, ProductSpace):
            # A combination covers one interaction of each set of factors.
            for axis in range(self.strength):
                never = np.add.reduceat(
                    never[(slice(None),) * axis + (slice(0, -1),)], self.space.offsets, axis, int
                )
            return int(never.max())
        assert isinstance(self.space, SubsetSpace)
        return -(-self.tally.left // math.comb(self.space.slots, self.strength))

    def _tell(self) -> None:
        if self.on is not None:
            self.on(self.tally.covered, self.tally.coverable)

    def greedy(self, number: int | None) -> Int[np.ndarray, "m slots"]:
        """Rows that each cover as much as could be found, until all is covered or there are enough."""
        rows: list[np.ndarray] = []
        while self.tally.left and (number is None or len(rows) < number):
            row = self._next()
            self.tally.add(row[None])
            rows.append(row)
            self._tell()
        return np.array(rows, np.int32).reshape(-1, self.space.slots)

    def _next(self) -> Int[np.ndarray, " slots"]:
        """A row that covers something new, and much of it."""
        tally = self.tally
        # The value of which most is open, ties at random.
        most = np.argsort(tally.open[:-1] + self.rng.random((CANDIDATES, self.space.width)), axis=1)[:, -1:]
        rows, alive = self.builder.build(most, tally)
        worth = np.where(alive, tally.worth(rows), 0)
        if worth.max() >= 1:
            return rows[worth.argmax()]
        # Rules stand in the way: begin with interactions that are open, and in the end take an exact answer.
        left = np.argwhere(tally.count == 0)
        left = left[(np.diff(left, axis=1) > 0).all(axis=1)]
        fixed = self.rng.permutation(left)[:CANDIDATES]
        rows, alive = self.builder.build(fixed, tally)
        worth = np.where(alive, tally.worth(rows), 0)
        if worth.max() >= 1:
            return rows[worth.argmax()]
        row = self.rules.witness(fixed[0].tolist())
        assert row is not None, "what is counted as coverable has a combination"
        return row

    def repaired(self, rows: Rows) -> Int[np.ndarray, "m slots"]:
        """Fewer rows that cover the same, or, where the number does not suffice, rows that cover more."""
        if self.tally.left > NEARLY * self.tally.coverable:
            return rows
        repair = Repair(self.tally, rows, self.rules, self.rng)
        return repair.squeeze(self.least) if not self.tally.left else repair.fill()

    def ordered(self, rows: Rows) -> tuple[Int[np.ndarray, "m slots"], Int[np.ndarray, " m"]]:
        """The rows in the order in which each covers most, and how much; those that cover nothing are left out.

        The tally is that of these rows afterwards.
        """
        self.tally = tally = self._fresh()
        places = choices(self.space.slots, self.strength)
        open_ = tally.count == 0
        parts = [tuple(row[places].T) for row in rows]

        def gain(index: int) -> int:
            return int(open_[parts[index]].sum())

        # What a row would add only shrinks, so most need not be looked at again.
        heap = [(-gain(index), index) for index in range(len(rows))]
        heapq.heapify(heap)
        order, gained = [], []
        while heap:
            claimed, index = heapq.heappop(heap)
            now = gain(index)
            if now != -claimed:
                heapq.heappush(heap, (-now, index))
                continue
            if not now:
                break
            order.append(index)
            gained.append(now)
            open_[parts[index]] = False
        found = rows[np.array(order, np.int64)]
        tally.add(found)
        return found, np.array(gained, np.int64)

    def balanced(self, rows: Rows, number: int) -> tuple[Int[np.ndarray, "m slots"], Int[np.ndarray, " m"]]:
        """Further rows that meet what was met least, none of them for a second time, and what each covers."""
        seen = {tuple(row) for row in np.concatenate([self.history, rows]).tolist()}
        made: list[np.ndarray] = []
        gained: list[int] = []
        while len(made) < number:
            row = self._another(seen)
            if row is None:
                break
            seen.add(tuple(row.tolist()))
            gained.append(self.tally.add(row[None]))
            made.append(row)
            self._tell()
        return np.array(made, np.int32).reshape(-1, self.space.slots), np.array(gained, np.int64)

    def _another(self, seen: set[tuple[int, ...]]) -> Int[np.ndarray, " slots"] | None:
        """The best row that has not come; None if there is none, or none can be found."""
        nothing = np.full((CANDIDATES, 1), self.space.width)
        for tally in (self.tally, None):
            rows, alive = self.builder.build(nothing, tally)
            new = alive & np.array([tuple(row) not in seen for row in rows.tolist()])
            if new.any():
                return rows[np.where(new, self.tally.worth(rows), -1).argmax()]
        if self.space.size > SMALL:
            return None
        every = self.space.enumerate()
        every = every[self.rules.allowed(every)]
        every = every[~RowSet(np.array(sorted(seen), np.int32)).contains(every)]
        return every[self.tally.worth(every).argmax()] if len(every) else None
