"""The space of a table's combinations, and what to collect in it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from recombine.audit.cells import NOTHING, Cells, Chosen, Factor
from recombine.audit.coverage import holds_doubles, training_groups

if TYPE_CHECKING:
    from recombine.spaces.base import Space
    from recombine.supports.covering import Forbidden

MOST_PAIRS = 2_000_000
"""An audit plans no data for spaces with more pairs than this; use `recombine plan`."""


def space_size(cells: Cells) -> int:
    """The number of possible combinations of the values in the table; sets have the sizes that occur in it.

    A value can take two roles at once only if some combination of the table has it.
    """
    doubles = holds_doubles(cells)
    total = 1
    for factor in cells.factors:
        size = len(factor.values)
        if factor.kind == "set":
            total *= sum(math.comb(size, count) for count in _sizes(cells, factor))
        elif factor.kind == "roles" and not doubles:
            total *= math.perm(size, len(factor.columns))
        else:
            total *= size ** len(factor.slots)
    return max(total, len(cells.constituents))


@dataclasses.dataclass(frozen=True)
class Planned:
    """A `Space` with the table's combinations as its rows."""

    space: Space
    cells: Cells
    forbidden: tuple[Forbidden, ...]
    offsets: Int[np.ndarray, " slot"]
    """For each slot, what to add to a constituent's number in the table to get its number in the space."""

    def rows(self, chosen: Chosen) -> Int[np.ndarray, "n slots"]:
        """The chosen combinations as rows, without those that have an empty slot."""
        parts = self.cells.constituents[chosen]
        rows = np.sort(np.where(parts == NOTHING, self.space.width, parts + self.offsets), axis=1).astype(np.int32)
        return rows[self.space.contains(rows)]

    def cover(self, number: int, *, strength: int = 2, seed: int = 0) -> tuple[tuple[str, ...], ...]:
        """The combinations that would add most to the coverage of training, as slot=value labels."""
        from recombine.supports.covering import cover

        assert self.cells.trained is not None
        already, forbidden = self.rows(self.cells.trained), self.forbidden
        design = cover(self.space, strength=strength, number=number, already=already, forbidden=forbidden, seed=seed)
        slots = [(place, factor) for factor in self.cells.factors for place in factor.slots]
        named = [f"{place}={value}" for place, factor in slots for value in factor.values]
        useful = design.rows[design.gained > 0].tolist()
        return tuple(tuple(named[part] for part in row if part < self.space.width) for row in useful)


def planned(cells: Cells) -> Planned | None:
    """The table's space: one value per slot, or subsets of one set; None for other tables and very large spaces."""
    from recombine.spaces.product import ProductSpace
    from recombine.spaces.subset import SubsetSpace

    factor, kinds = cells.factors[0], [factor.kind for factor in cells.factors]
    if kinds == ["set"]:
        sizes = _sizes(cells, factor)
        space = SubsetSpace(modules=len(factor.values), max_active=max(sizes), min_active=max(1, min(sizes)))
        result = Planned(space, cells, (), np.zeros(len(cells.slots), dtype=np.int64))
    elif "set" in kinds or len(cells.slots) < 2:
        return None
    else:
        values = {place: factor.values for factor in cells.factors for place in factor.slots}
        space = ProductSpace(factors=tuple(values.items()))
        result = Planned(space, cells, _no_doubles(cells), _offsets(cells))
    return None if space.slots < 2 or space.interactions(2) > MOST_PAIRS else result


def joining(cells: Cells) -> tuple[tuple[str, ...], ...]:
    """Combinations that connect the groups of training, one for each group beyond the first.

    Each is a trained combination of the largest group with one value from a combination of the other group.
    """
    assert cells.trained is not None
    groups = training_groups(cells)
    rows = cells.constituents[cells.trained]
    values = [value for factor in cells.factors for value in factor.values]
    combinations = []
    for group in groups[1:]:
        base = rows[np.isin(rows, groups[0]).any(1)][0].copy()
        other = rows[np.isin(rows, group).any(1)][0]
        both = (base != NOTHING) & (other != NOTHING)
        slots = np.nonzero(both & ~np.isin(other, base))[0]  # No value takes two roles.
        if both.sum() < 2 or not len(slots):
            continue  # The result would hold values of one group only.
        base[slots[-1]] = other[slots[-1]]
        named = zip(cells.slots, base.tolist(), strict=True)
        combinations.append(tuple(f"{place}={values[part]}" for place, part in named if part != NOTHING))
    return tuple(combinations)


def _sizes(cells: Cells, factor: Factor) -> list[int]:
    slots = [slot for slot, place in enumerate(cells.slots) if place == factor.name]
    return np.unique((cells.constituents[:, slots] != NOTHING).sum(1)).tolist()


def _offsets(cells: Cells) -> Int[np.ndarray, " slot"]:
    """What to add to a constituent's number in each slot, because each role has its own numbers in a product space."""
    shift, before = {}, 0
    for factor in cells.factors:
        size = len(factor.values)
        shift |= {place: before + role * size for role, place in enumerate(factor.slots)}
        before += (len(factor.slots) - 1) * size
    return np.array([shift[place] for place in cells.slots], dtype=np.int64)


def _no_doubles(cells: Cells) -> tuple[Forbidden, ...]:
    """Forbids one value in two roles at once, unless some combination of the table has it."""
    from recombine.supports.covering import Forbidden

    if holds_doubles(cells):
        return ()
    forbidden, start = [], 0
    for factor in cells.factors:
        size, roles = len(factor.values), len(factor.slots)
        forbidden += [
            Forbidden((start + first * size + value, start + second * size + value))
            for first, second in itertools.combinations(range(roles), 2)
            for value in range(size)
        ]
        start += size * roles
    return tuple(forbidden)
