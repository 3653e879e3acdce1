"""Constraints on combinations: allowed rows, the implications of a partial combination, and contradictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Int8

from recombine import interrupts
from recombine.errors import BadInput
from recombine.spaces import ProductSpace, Space, SubsetSpace
from recombine.spaces.rows import Rows

OPEN, IN, OUT = 0, 1, 2
"""The state of a constituent in a partial combination: undecided, present or absent."""

BLOCK = 2**22
"""The number of conditions checked at a time, which bounds the memory of long lists of rows."""

SOLVER_SECONDS = 20.0
"""The most time in which the solver looks for one combination."""

EXPLAINED = 100
"""Up to this number, contradictory constraints are reduced to a minimal set before they are named."""


@dataclasses.dataclass(frozen=True)
class Forbidden:
    """A forbidden partial combination: no row may have all constituents of `present` and none of `absent`."""

    present: tuple[int, ...]
    absent: tuple[int, ...] = ()


class Unsatisfiable(BadInput):
    """No combination of the space satisfies all constraints."""


class Rules:
    """The constraints of a space, vectorised over combinations.

    A constraint is a list of conditions (a constituent is present, or absent), of which at least one must fail.
    """

    def __init__(self, space: Space, forbidden: Sequence[Forbidden]) -> None:
        self.space = space
        self.forbidden = tuple(forbidden)
        conditions = [dict.fromkeys(rule.present, IN) | {~part: OUT for part in rule.absent} for rule in forbidden]
        self._check(space, forbidden)
        most = max(map(len, conditions), default=0)
        # Short lists are padded with a condition that always holds: the pad is present.
        self.parts = np.full((len(conditions), most), space.width, np.int64)
        self.wanted = np.full((len(conditions), most), IN, np.int8)
        for index, rule in enumerate(conditions):
            self.parts[index, : len(rule)] = [part if part >= 0 else ~part for part in rule]
            self.wanted[index, : len(rule)] = list(rule.values())
        self.concerned = np.zeros(space.width + 1, bool)
        """The constituents whose choice can decide a condition: those of the factors that constraints name."""
        self.concerned[self.parts[self.parts < space.width]] = True
        self.width = space.width
        if isinstance(space, ProductSpace):
            of = np.repeat(np.arange(space.slots), space.levels)
            self.concerned[:-1] = np.isin(of, of[self.concerned[:-1]])
            self.begins, self.least, self.most = np.array(space.offsets), 1, 1
        else:
            assert isinstance(space, SubsetSpace)
            self.concerned[:-1] = bool(conditions)
            self.begins, self.least, self.most = np.array([0]), space.min_active, space.max_active
        self.sizes = np.diff([*self.begins, space.width])

    @staticmethod
    def _check(space: Space, forbidden: Sequence[Forbidden]) -> None:
        for rule in forbidden:
            wrong = [part for part in (*rule.present, *rule.absent) if not 0 <= part < space.width]
            if wrong:
                raise BadInput(
                    f"A constraint names constituent {wrong[0]}, but {space.title} has {space.width}.",
                    fix=f"name constituents by 0..{space.width - 1}",
                )

    def __bool__(self) -> bool:
        return bool(self.forbidden)

    def allowed(self, rows: Rows) -> Bool[np.ndarray, " n"]:
        """Which rows satisfy all constraints."""
        fine = np.ones(len(rows), bool)
        step = max(1, BLOCK // max(1, self.parts.size + self.width))
        for begin in range(0, len(rows) if self else 0, step):
            state = np.full((len(rows[begin : begin + step]), self.width + 1), OUT, np.int8)
            np.put_along_axis(state, rows[begin : begin + step].astype(np.int64), np.int8(IN), axis=1)
            state[:, -1] = IN
            fine[begin : begin + step] = ~(state[:, self.parts] == self.wanted).all(axis=2).any(axis=1)
        return fine

    def start(self, number: int) -> Int8[np.ndarray, "number width_and_pad"]:
        """Partial combinations in which everything is undecided."""
        state = np.full((number, self.width + 1), OPEN, np.int8)
        state[:, -1] = IN
        return state

    def propagate(self, state: Int8[np.ndarray, "n width_and_pad"]) -> Bool[np.ndarray, " n"]:
        """Add, in place, what follows directly from partial combinations. Returns which have no contradiction so far.

        A constituent follows when a constraint has one condition left, or a factor one value.
        """
        alive = np.ones(len(state), bool)
        todo = np.arange(len(state))
        while len(todo):
            some = state[todo]
            before = some.copy()
            fine = self._structure(some) & self._conditions(some)
            alive[todo[~fine]] = False
            state[todo] = some
            todo = todo[fine & (some != before).any(axis=1)]
        return alive

    def _conditions(self, state: Int8[np.ndarray, "n width_and_pad"]) -> Bool[np.ndarray, " n"]:
        if not self:
            return np.ones(len(state), bool)
        known = state[:, self.parts]
        holds = known == self.wanted
        at_stake = ~((known != OPEN) & ~holds).any(axis=2)
        missing = self.parts.shape[1] - holds.sum(axis=2)
        fine = ~(at_stake & (missing == 0)).any(axis=1)
        row, rule = np.nonzero(at_stake & (missing == 1))
        last = holds[row, rule].argmin(axis=1)
        # Two constraints that ask for opposites: whichever is written last, the other is violated in the next round.
        state[row, self.parts[rule, last]] = (IN + OUT) - self.wanted[rule, last]
        return fine

    def _structure(self, state: Int8[np.ndarray, "n width_and_pad"]) -> Bool[np.ndarray, " n"]:
        """Apply the structure of the space: one value of each factor, or the allowed number of modules."""
        inner, begins, sizes, least, most = state[:, :-1], self.begins, self.sizes, self.least, self.most
        taken = np.add.reduceat(inner == IN, begins, axis=1, dtype=np.int64)
        possible = np.add.reduceat(inner != OUT, begins, axis=1, dtype=np.int64)
        fine = np.all((taken <= most) & (possible >= least), axis=1)
        is_open = inner == OPEN
        inner[is_open & np.repeat(taken >= most, sizes, axis=1)] = OUT
        inner[is_open & np.repeat((taken < most) & (possible <= least), sizes, axis=1)] = IN
        return fine

    def simple_witness(self) -> Int[np.ndarray, " slots"] | None:
        """An allowed combination, found by taking one undecided constituent after the other.

        None where that ends in a contradiction; there may be an allowed combination all the same.
        """
        state = self.start(1)
        while self.propagate(state)[0]:
            undecided = np.flatnonzero(state[0] == OPEN)
            if not len(undecided):
                return self.space.row(np.flatnonzero(state[0, :-1] == IN).tolist())
            state[0, undecided[0]] = IN
        return None

    def witness(self, fixed: Sequence[int] = (), without: Sequence[int] = ()) -> Int[np.ndarray, " slots"] | None:
        """An allowed combination with the constituents `fixed`, found by integer programming; None if there is none.

        The constraints whose indices are in `without` are ignored.
        """
        from scipy import sparse
        from scipy.optimize import Bounds, LinearConstraint, milp

        # SciPy accepts arrays as bounds, although the type stubs do not say so.
        limit: Any = LinearConstraint
        bounds: Any = Bounds

        space, kept = self.space, [index for index in range(len(self.forbidden)) if index not in set(without)]
        of = np.repeat(np.arange(len(self.sizes)), self.sizes)
        low, high = np.full(len(self.sizes), self.least), np.full(len(self.sizes), self.most)
        structure = sparse.csr_array((np.ones(space.width), (of, np.arange(space.width))))
        limits = [limit(structure, low, high)]
        if kept:
            rule, column = np.nonzero(self.parts[kept] < space.width)
            signs = np.where(self.wanted[kept][rule, column] == IN, 1.0, -1.0)
            matrix = sparse.csr_array((signs, (rule, self.parts[kept][rule, column])), shape=(len(kept), space.width))
            most = np.array([len(set(self.forbidden[index].present)) - 1 for index in kept])
            limits.append(limit(matrix, -np.inf, most))
        lower = np.zeros(space.width)
        lower[list(fixed)] = 1
        interrupts.check()
        options = {"time_limit": SOLVER_SECONDS}
        solution = milp(
            np.zeros(space.width), integrality=1, bounds=bounds(lower, 1), constraints=limits, options=options
        )
        if solution.status == 2:
            return None
        if solution.x is None:
            raise BadInput(
                f"The solver could not decide whether the constraints allow a combination: {solution.message}.",
                fix="give fewer or simpler constraints",
            )
        return space.row(np.flatnonzero(solution.x > 0.5).tolist())

    def require_satisfiable(self, texts: Mapping[str, Collection[int]] | None = None) -> None:
        """Raise Unsatisfiable if no combination is allowed. The error names constraints that contradict each other.

        `texts` has the constraints as the user wrote them, with the indices of the constraints here that they became.
        """
        # Most constraints leave combinations that are found without the solver, which takes longer to import than most plans.
        if not self or self.simple_witness() is not None or self.witness() is not None:
            return
        kept = texts or {self.named(rule): [index] for index, rule in enumerate(self.forbidden)}
        if len(kept) <= EXPLAINED:
            for name in list(kept):
                fewer = {other: numbers for other, numbers in kept.items() if other != name}
                still = {number for numbers in fewer.values() for number in numbers}
                try:
                    if self.witness(without=[n for n in range(len(self.forbidden)) if n not in still]) is None:
                        kept = fewer
                except BadInput:
                    break  # It cannot be decided in time, so all that is left is named.
        named = "; ".join(list(kept)[:10]) + (f"; and {len(kept) - 10} more" if len(kept) > 10 else "")
        raise Unsatisfiable(
            f"No combination of {self.space.title} satisfies all constraints. These contradict each other: {named}.",
            fix="remove one of them",
        )

    def named(self, rule: Forbidden) -> str:
        """A constraint as text."""
        present = " + ".join(self.space.label(part) for part in rule.present) or "everything"
        absent = " or ".join(self.space.label(part) for part in rule.absent)
        return f"never {present}" + (f" without {absent}" if absent else "")
