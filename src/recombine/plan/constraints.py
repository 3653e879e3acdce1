"""Compile constraints to forbidden partial combinations, which the covering algorithms use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recombine.errors import BadInput
from recombine.plan.expressions import All, Expression, Has, Not, parse
from recombine.spaces import ProductSpace, Space
from recombine.supports.covering import Forbidden
from recombine.supports.covering.constraints import Rules

MOST = 20_000
"""The most forbidden partial combinations that one expression may need."""
FEW = 400
"""Up to this number, clauses are compared with each other, and implied ones are dropped."""

Clause = tuple[frozenset[int], frozenset[int]]
"""A partial combination: the constituents that it has, and those that it lacks."""


def compile_constraints(forbidden: Iterable[str], required: Iterable[str], space: Space) -> tuple[Forbidden, ...]:
    """Compile expressions that no combination may satisfy, and expressions that every combination must satisfy.

    Constraints that contradict each other raise `Unsatisfiable`, which quotes them.
    """
    by_text = {f"forbid {text}": compiled(text, space, hold=True) for text in forbidden}
    by_text |= {f"require {text}": compiled(text, space, hold=False) for text in required}
    constraints = tuple(dict.fromkeys(clause for clauses in by_text.values() for clause in clauses))
    number = {clause: index for index, clause in enumerate(constraints)}
    Rules(space, constraints).require_satisfiable(
        {text: [number[clause] for clause in clauses] for text, clauses in by_text.items()}
    )
    return constraints


def compiled(text: str, space: Space, *, hold: bool) -> list[Forbidden]:
    """The partial combinations under which the expression holds, or under which it does not, as constraints."""
    simple = _Simplified(space)
    try:
        clauses = simple.clauses(parse(text, space), hold)
    except _TooMany:
        raise BadInput(
            f"The constraint {text!r} needs more than {MOST} forbidden partial combinations.",
            fix="divide it into several constraints, or write it the other way round",
        ) from None
    ordered = sorted((tuple(sorted(present)), tuple(sorted(absent))) for present, absent in clauses)
    return [Forbidden(present, absent) for present, absent in ordered]


class _TooMany(Exception):
    """The disjunctive normal form is too long."""


class _Simplified:
    """The disjunctive normal form of an expression, without clauses that no combination of the space satisfies."""

    def __init__(self, space: Space) -> None:
        self.most = space.slots
        self.factors: list[range] | None = None
        if isinstance(space, ProductSpace):
            every = zip(space.offsets, space.levels, strict=True)
            # The factor of each constituent, as the range of its levels.
            self.factors = [range(start, start + count) for start, count in every for _ in range(count)]

    def clauses(self, node: Expression, hold: bool) -> set[Clause]:
        """The clauses under which the expression holds, or under which it does not."""
        if isinstance(node, Not):
            return self.clauses(node.operand, not hold)
        if isinstance(node, Has):
            nothing = frozenset[int]()
            return self._kept(
                [(frozenset([part]), nothing) for part in node.parts] if hold else [(nothing, frozenset(node.parts))]
            )
        if isinstance(node, All) == hold:
            return self._together([self.clauses(operand, hold) for operand in node.operands])
        return self._kept(clause for operand in node.operands for clause in self.clauses(operand, hold))

    def _together(self, parts: Sequence[set[Clause]]) -> set[Clause]:
        product: set[Clause] = {(frozenset(), frozenset())}
        for part in sorted(parts, key=len):
            if len(product) * len(part) > 50 * MOST:
                raise _TooMany
            product = self._kept((a[0] | b[0], a[1] | b[1]) for a in product for b in part)
        return product

    def _kept(self, clauses: Iterable[Clause]) -> set[Clause]:
        simple = {short for clause in clauses if (short := self._simple(*clause)) is not None}
        if len(simple) > MOST:
            raise _TooMany
        return simple if len(simple) > FEW else _without_implied(simple)

    def _simple(self, present: frozenset[int], absent: frozenset[int]) -> Clause | None:
        """The clause without what follows from the rest of it; None if no combination satisfies it."""
        if present & absent or len(present) > self.most:
            return None
        if self.factors is None:
            return present, absent
        # A combination has exactly one level of each factor, so a present level excludes the others.
        taken = {self.factors[part] for part in present}
        if len(taken) < len(present):
            return None
        lacks = frozenset(part for part in absent if self.factors[part] not in taken)
        for levels in {self.factors[part] for part in lacks}:
            left = [level for level in levels if level not in absent]
            if not left:
                return None
            if len(left) == 1:
                present, lacks = present | {left[0]}, lacks.difference(levels)
        return present, lacks


def _without_implied(clauses: set[Clause]) -> set[Clause]:
    """The clauses that no other clause implies."""
    return {
        clause
        for clause in clauses
        if not any(other != clause and other[0] <= clause[0] and other[1] <= clause[1] for other in clauses)
    }
