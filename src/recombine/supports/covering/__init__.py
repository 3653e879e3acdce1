"""Covering designs: few combinations that cover all interactions of a strength, the most useful first.

`cover` makes a design: rows are built greedily (`builder`, `tally`), then a search removes rows and repairs the coverage
(`repair`). `constraints` says which combinations are allowed, `feasible` which interactions then remain possible, and
`walk` makes designs for the case that changes of factors cost.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Int

from recombine.errors import BadInput
from recombine.spaces import ProductSpace, Space, SubsetSpace
from recombine.spaces.rows import SMALL, Rows, RowSet, checked_rows
from recombine.spaces.subspace import WITH_SUBSPACES
from recombine.supports.covering.builder import Builder, require_few_entries
from recombine.supports.covering.constraints import Forbidden, Rules, Unsatisfiable
from recombine.supports.covering.feasible import coverable
from recombine.supports.covering.repair import Repair
from recombine.supports.covering.tally import Tally, choices

__all__ = ["COVERING", "Covering", "Forbidden", "Unsatisfiable", "allowed", "cover"]

COVERING = "covering"
"""The name of covering among strategies: the planner's own, and the default."""

CANDIDATES = 32
"""The number of rows built at a time, of which the best is taken."""

NEARLY = 0.1
"""A budget that leaves at most this share uncovered is improved by a search."""


@dataclasses.dataclass(frozen=True)
class Covering:
    """The combinations of a covering design, the most useful first."""

    rows: Rows
    gained: Int[np.ndarray, " n"]
    """The number of interactions that each row covers for the first time."""
    covered: int
    """The number of interactions covered in the end, together with the rows that were there already."""
    coverable: int
    """The number of interactions that some allowed combination has."""
    total: int
    """The number of interactions of the space."""


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
    progress: Callable[[int, int], None] | None = None,
) -> Covering:
    """Find few combinations that cover all interactions of `strength` constituents.

    Args:
        space: A product or subset space.
        strength: The size of the interactions: 2 for pairs.
        number: The number of combinations. By default as many as full coverage takes. With more than that, the design
            continues with the least covered interactions. No combination occurs twice, so a small space gives fewer.
        already: Rows that exist already. What they cover need not be covered again.
        forbidden: Partial combinations that no row may have.
        seed: The seed of random choices. Equal seeds give equal designs.
        progress: Called after each row with the number of interactions that are covered and that can be.

    Returns:
        The rows, the most useful first, with their coverage.

    Example:
        ```python
        cover(ProductSpace(factors=dict.fromkeys("abcd", 3)), strength=2).rows  # 9 rows cover all 54 pairs
        ```
    """
    if not isinstance(space, WITH_SUBSPACES):
        raise BadInput(f"A covering design is not defined for a space of kind {space.kind!r}.")
    space._require_strength(strength)
    require_few_entries(space, strength)
    if number is not None and number < 0:
        raise BadInput(f"number={number}: a design cannot have fewer than 0 combinations.")
    history = np.empty((0, space.slots), np.int32) if already is None else checked_rows(space, already)
    rng = np.random.default_rng(seed % 2**64)
    rules = Rules(space, forbidden)
    search = _Search(space, strength, rules, history, rng, progress)
    rows = search.greedy(number)
    if len(rows):
        rows = search.repaired(rows)
    rows, gained = search.ordered(rows)
    if number is not None and len(rows) < number:
        more, more_gained = search.balanced(rows, number - len(rows))
        rows, gained = np.concatenate([rows, more]), np.concatenate([gained, more_gained])
    tally = search.tally
    return Covering(rows, gained, tally.covered, tally.coverable, space.interactions(strength))


class _Search:
    """One search for a covering design. `tally` counts what is covered so far."""

    def __init__(
        self,
        space: Space,
        strength: int,
        rules: Rules,
        history: Rows,
        rng: np.random.Generator,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.space, self.strength, self.rules = space, strength, rules
        self.history, self.rng, self.progress = history, rng, progress
        self.can = coverable(space, strength, rules, rng)
        self.builder = Builder(space, rules, rng)
        self.tally = self._fresh()
        self.least = self._least()

    def _fresh(self) -> Tally:
        tally = Tally(self.space, self.strength, self.can)
        tally.add(self.history)
        return tally

    def _least(self) -> int:
        """A lower bound on the number of combinations that cover the remaining interactions."""
        never = self.tally.count == 0
        if not never.any():
            return 0
        if isinstance(self.space, ProductSpace):
            # A combination covers one interaction of each set of factors, so the largest set decides.
            for axis in range(self.strength):
                never = np.add.reduceat(never[(slice(None),) * axis + (slice(0, -1),)], self.space.offsets, axis, int)
            return int(never.max())
        assert isinstance(self.space, SubsetSpace)
        return -(-self.tally.left // math.comb(self.space.slots, self.strength))

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.tally.covered, self.tally.coverable)

    def greedy(self, number: int | None) -> Int[np.ndarray, "m slots"]:
        """Rows that each cover as much as possible, until everything is covered or `number` rows are made."""
        rows: list[np.ndarray] = []
        while self.tally.left and (number is None or len(rows) < number):
            row = self._next()
            self.tally.add(row[None])
            rows.append(row)
            self._report()
        return np.array(rows, np.int32).reshape(-1, self.space.slots)

    def _next(self) -> Int[np.ndarray, " slots"]:
        """A row that covers many new interactions, and at least one."""
        tally = self.tally
        # Start with the constituent that has the most uncovered interactions, ties at random.
        most = np.argsort(tally.open[:-1] + self.rng.random((CANDIDATES, self.space.width)), axis=1)[:, -1:]
        rows, alive = self.builder.build(most, tally)
        worth = np.where(alive, tally.worth(rows), 0)
        if worth.max() >= 1:
            return rows[worth.argmax()]
        # Constraints prevented it: start from uncovered interactions, and finally use an exact solver.
        left = np.argwhere(tally.count == 0)
        left = left[(np.diff(left, axis=1) > 0).all(axis=1)]
        fixed = self.rng.permutation(left)[:CANDIDATES]
        rows, alive = self.builder.build(fixed, tally)
        worth = np.where(alive, tally.worth(rows), 0)
        if worth.max() >= 1:
            return rows[worth.argmax()]
        row = self.rules.witness(fixed[0].tolist())
        assert row is not None, "every coverable interaction has a combination"
        return row

    def repaired(self, rows: Rows) -> Int[np.ndarray, "m slots"]:
        """Fewer rows with the same coverage; where the number is too small for full coverage, rows that cover more."""
        if self.tally.left > NEARLY * self.tally.coverable:
            return rows
        repair = Repair(self.tally, rows, self.rules, self.rng)
        return repair.squeeze(self.least) if not self.tally.left else repair.fill()

    def ordered(self, rows: Rows) -> tuple[Int[np.ndarray, "m slots"], Int[np.ndarray, " m"]]:
        """The rows, the one that covers most first, and how much each covers. Rows that cover nothing are left out.

        Afterwards the tally counts these rows.
        """
        self.tally = tally = self._fresh()
        slots = choices(self.space.slots, self.strength)
        uncovered = tally.count == 0
        parts = [tuple(row[slots].T) for row in rows]

        def gain(index: int) -> int:
            return int(uncovered[parts[index]].sum())

        # The gain of a row only falls, so most rows need no second look.
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
            uncovered[parts[index]] = False
        chosen = rows[np.array(order, np.int64)]
        tally.add(chosen)
        return chosen, np.array(gained, np.int64)

    def balanced(self, rows: Rows, number: int) -> tuple[Int[np.ndarray, "m slots"], Int[np.ndarray, " m"]]:
        """Further distinct rows with the least covered interactions, and the number that each covers first."""
        seen = {tuple(row) for row in np.concatenate([self.history, rows]).tolist()}
        further: list[np.ndarray] = []
        gained: list[int] = []
        while len(further) < number:
            row = self._another(seen)
            if row is None:
                break
            seen.add(tuple(row.tolist()))
            gained.append(self.tally.add(row[None]))
            further.append(row)
            self._report()
        return np.array(further, np.int32).reshape(-1, self.space.slots), np.array(gained, np.int64)

    def _another(self, seen: set[tuple[int, ...]]) -> Int[np.ndarray, " slots"] | None:
        """The best row that is not used yet; None if there is none or none was found."""
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
