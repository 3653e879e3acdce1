"""The space that the combinations of a table belong to, and what to collect in it."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int

from recombine.audit.cells import NOTHING, Cells, Factor
from recombine.audit.coverage import holds_doubles, training_groups

if TYPE_CHECKING:
    from recombine.spaces.base import Space
    from recombine.supports.covering import Forbidden

MOST_PAIRS = 2_000_000
"""Spaces with more pairs than this are not planned for inside an audit; `recombine plan` takes its time."""


def space_size(cells: Cells) -> int:
    """How many combinations there could be of the values in the table; sets of the sizes that occur in it.

    A value stands in two roles at once only if some combination of the table has it so.
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
            total *= size ** len(factor.places)
    return max(total, len(cells.parts))


@dataclasses.dataclass(frozen=True)
class Planned:
    """A space of recombine's own, with the table's combinations as its rows."""

    space: Space
    cells: Cells
    forbidden: tuple[Forbidden, ...]
    offsets: Int[np.ndarray, " slot"]
    """From a constituent's number in the table to that in the space, for each slot."""

    def rows(self, chosen: Bool[np.ndarray, " cell"]) -> Int[np.ndarray, "n slots"]:
        """The chosen combinations as rows; those with an empty place are left out."""
        parts = self.cells.parts[chosen]
        rows = np.where(parts == NOTHING, self.space.width, parts + self.offsets[None, :])
        rows = np.sort(rows, axis=1).astype(np.int32)
        return rows[self.space.contains(rows)]

    def label(self, row: Int[np.ndarray, " slots"]) -> tuple[str, ...]:
        """A combination as place=value."""
        named = [
            f"{place}={value}"
            for factor in self.cells.factors
            for place in factor.places
            for value in factor.values
        ]
        return tuple(named[part] for part in row.tolist() if part < self.space.width)

    def cover(self, number: int, *, strength: int = 2, seed: int = 0) -> tuple[tuple[str, ...], ...]:
        """The combinations that would add most to what was trained on."""
        from recombine.supports.covering import cover

        assert self.cells.trained is not None
        found = cover(
            self.space,
            strength=strength,
            number=number,
            already=self.rows(self.cells.trained),
            forbidden=self.forbidden,
            seed=seed,
        )
        useful = found.rows[found.gained > 0]
        return tuple(self.label(row) for row in useful)


def planned(cells: Cells) -> Planned | None:
    """The table's space, if it is one that can be planned for: a value for each place, or one set."""
    from recombine.spaces.product import ProductSpace
    from recombine.spaces.subset import SubsetSpace

    kinds = {factor.kind for factor in cells.factors}
    if kinds == {"set"} and len(cells.factors) == 1:
        factor = cells.factors[0]
        sizes = _sizes(cells, factor)
        space = SubsetSpace(modules=len(factor.values), max_active=max(sizes), min_active=max(1, min(sizes)))
        made = Planned(space, cells, (), np.zeros(len(cells.place), dtype=np.int64))
    elif "set" in kinds or len(cells.place) < 2:
        return None
    else:
        values = {place: factor.values for factor in cells.factors for place in factor.places}
        space = ProductSpace(factors=tuple(values.items()))
        made = Planned(space, cells, _no_doubles(cells, space), _offsets(cells, space))
    if space.slots < 2 or space.interactions(2) > MOST_PAIRS:
        return None
    return made


def joining(cells: Cells) -> tuple[tuple[str, ...], ...]:
    """Combinations that tie the groups of training together, one for each group beyond the first.

    A trained combination of the largest group, with one value taken from a combination of the other group.
    """
    assert cells.trained is not None
    groups = training_groups(cells)
    rows = cells.parts[cells.trained]
    values = [value for factor in cells.factors for value in factor.values]
    found = []
    for group in groups[1:]:
        base = rows[np.isin(rows, groups[0]).any(1)][0].copy()
        other = rows[np.isin(rows, group).any(1)][0]
        both = (base != NOTHING) & (other != NOTHING)
        slots = np.nonzero(both & ~np.isin(other, base))[0]  # No value stands in two roles.
        if both.sum() < 2 or not len(slots):
            continue  # Nothing would be left of the one, or of the other.
        base[slots[-1]] = other[slots[-1]]
        told = zip(cells.place, base.tolist(), strict=True)
        found.append(tuple(f"{place}={values[part]}" for place, part in told if part != NOTHING))
    return tuple(found)


def _sizes(cells: Cells, factor: Factor) -> list[int]:
    slots = [slot for slot, place in enumerate(cells.place) if place == factor.name]
    return np.unique((cells.parts[:, slots] != NOTHING).sum(1)).tolist()


def _offsets(cells: Cells, space: Space) -> Int[np.ndarray, " slot"]:
    """What to add to a constituent's number in each slot, as roles have numbers of their own in a product."""
    first_here = dict(
        zip(
            (factor.name for factor in cells.factors),
            np.cumsum([0] + [len(factor.values) for factor in cells.factors]).tolist(),
            strict=False,
        )
    )
    shift, start = {}, 0
    for factor in cells.factors:
        for place in factor.places:
            shift[place] = start - first_here[factor.name]
            start += len(factor.values)
    assert start == space.width
    return np.array([shift[place] for place in cells.place], dtype=np.int64)


def _no_doubles(cells: Cells, space: Space) -> tuple[Forbidden, ...]:
    """One value in two roles at once is ruled out, unless some combination of the table has it."""
    from recombine.supports.covering import Forbidden

    if all(factor.kind != "roles" for factor in cells.factors) or holds_doubles(cells):
        return ()
    found, start = [], 0
    for factor in cells.factors:
        size, places = len(factor.values), len(factor.places)
        found += [
            Forbidden((start + first * size + value, start + second * size + value))
            for first in range(places)
            for second in range(first + 1, places)
            for value in range(size)
            if factor.kind == "roles"
        ]
        start += size * places
    assert start == space.width
    return tuple(found)
