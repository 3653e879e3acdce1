"""Constraints compiled to forbidden partial combinations, which is what the covering algorithms know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recombine.errors import BadInput
from recombine.plan.expressions import All, Expression, Has, Not, parse
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.supports.covering import Forbidden
from recombine.supports.covering_rules import Rules

MOST = 20_000
"""So many forbidden partial combinations one expression may come to."""
FEW = 400
"""Up to so many are compared with each other, and those that follow from others left out."""

Clause = tuple[frozenset[int], frozenset[int]]
"""A partial combination: what it has, and what it lacks."""


def forbid(text: str, space: Space) -> list[Forbidden]:
    """The partial combinations that `text` describes: none that holds one is to be collected."""
    return _compiled(text, space, hold=True)


def require(text: str, space: Space) -> list[Forbidden]:
    """The partial combinations that break `text`: it is to hold for everything that is collected."""
    return _compiled(text, space, hold=False)


def compiled(forbidden: Iterable[str], required: Iterable[str], space: Space) -> tuple[Forbidden, ...]:
    """All constraints of a plan together. Raises Unsatisfiable, in their own words, if they contradict each other."""
    said = {f"forbid {text}": forbid(text, space) for text in forbidden}
    said |= {f"require {text}": require(text, space) for text in required}
    found = tuple(dict.fromkeys(clause for clauses in said.values() for clause in clauses))
    number = {clause: index for index, clause in enumerate(found)}
    Rules(space, found).require_satisfiable(
        {text: [number[clause] for clause in clauses] for text, clauses in said.items()}
    )
    return found


def _compiled(text: str, space: Space, *, hold: bool) -> list[Forbidden]:
    simple = _Simplified(space)
    try:
        found = simple.clauses(parse(text, space), hold)
    except _TooMany:
        raise BadInput(
            f"The constraint {text!r} comes to more than {MOST} forbidden partial combinations.",
            fix="split it into several constraints, or say it the other way round",
        ) from None
    ordered = sorted((tuple(sorted(present)), tuple(sorted(absent))) for present, absent in found)
    return [Forbidden(present, absent) for present, absent in ordered]


class _TooMany(Exception):
    """The disjunctive normal form grows out of hand."""


class _Simplified:
    """The disjunctive normal form of an expression, without clauses that no combination of the space has."""

    def __init__(self, space: Space) -> None:
        self.most = space.slots
        self.factors: list[range] | None = None
        if isinstance(space, ProductSpace):
            every = zip(space.offsets, space.levels, strict=True)
            # The factor of each constituent, as the range of its levels.
            self.factors = [range(start, start + count) for start, count in every for _ in range(count)]

    def clauses(self, node: Expression, hold: bool) -> set[Clause]:
        """When the expression holds, or does not."""
        if isinstance(node, Not):
            return self.clauses(node.one, not hold)
        if isinstance(node, Has):
            nothing = frozenset[int]()
            made = (
                [(frozenset([part]), nothing) for part in node.parts]
                if hold
                else [(nothing, frozenset(node.parts))]
            )
            return self._kept(made)
        if isinstance(node, All) == hold:
            return self._together([self.clauses(one, hold) for one in node.each])
        return self._kept(clause for one in node.each for clause in self.clauses(one, hold))

    def _together(self, parts: Sequence[set[Clause]]) -> set[Clause]:
        made: set[Clause] = {(frozenset(), frozenset())}
        for part in sorted(parts, key=len):
            if len(made) * len(part) > 50 * MOST:
                raise _TooMany
            made = self._kept((one[0] | two[0], one[1] | two[1]) for one in made for two in part)
        return made

    def _kept(self, clauses: Iterable[Clause]) -> set[Clause]:
        simple = {found for clause in clauses if (found := self._simple(*clause)) is not None}
        if len(simple) > MOST:
            raise _TooMany
        return simple if len(simple) > FEW else _without_implied(simple)

    def _simple(self, present: frozenset[int], absent: frozenset[int]) -> Clause | None:
        """The clause without what follows from the rest of it; None if no combination can be so."""
        if present & absent or len(present) > self.most:
            return None
        if self.factors is None:
            return present, absent
        # One level of each factor, neither more nor less: a present one tells of the others.
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
    """Only clauses that no other makes superfluous."""
    return {
        clause
        for clause in clauses
        if not any(other != clause and other[0] <= clause[0] and other[1] <= clause[1] for other in clauses)
    }
