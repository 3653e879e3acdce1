"""The space of a table's combinations, and what to collect in it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from recombine.audit.atoms import atoms_of
from recombine.audit.cells import NOTHING, Cells, Chosen, Factor
from recombine.audit.coverage import holds_doubles, training_groups
from recombine.audit.possible import allowed_cells, asked_pairs, numbers_in_space

if TYPE_CHECKING:
    from recombine.spaces.base import Space
    from recombine.supports.covering import Forbidden

MOST_PAIRS = 2_000_000
"""An audit plans no data for spaces with more pairs than this; use `recombine plan`."""


def space_size(cells: Cells) -> int:
    """The number of possible combinations of the values in the table; sets have the sizes that occur in it.

    A value can take two roles at once only if some combination of the table has it. If the space was stated, its
    size without constraints.
    """
    if cells.possible is not None:
        return max(cells.possible.space.size, len(cells.constituents))
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
    numbers: Int[np.ndarray, "slot constituent"]
    """The number in the space of each constituent in each slot; `NOTHING` if it has none."""
    labels: tuple[str, ...]
    """The name of each constituent of the space: colour=red."""

    def rows(self, chosen: Chosen) -> Int[np.ndarray, "n slots"]:
        """The chosen combinations as rows, without those that have an empty slot."""
        parts = self.cells.constituents[chosen]
        numbers = self.numbers[np.arange(parts.shape[1]), parts]
        absent = (parts == NOTHING) | (numbers == NOTHING)
        rows = np.sort(np.where(absent, self.space.width, numbers), axis=1).astype(np.int32)
        return rows[self.space.contains(rows)]

    def cover(self, number: int, *, strength: int = 2, seed: int = 0) -> tuple[tuple[str, ...], ...]:
        """The combinations that would add most to the coverage of training, as slot=value labels.

        Only combinations that can exist; none if the pairs to ask about leave none.
        """
        from recombine.supports.covering import Unsatisfiable, allowed, cover

        assert self.cells.trained is not None
        already, forbidden = self.rows(self.cells.trained), self.forbidden
        already = already[allowed(self.space, already, forbidden)]
        try:
            design = cover(
                self.space, strength=strength, number=number, already=already, forbidden=forbidden, seed=seed
            )
        except Unsatisfiable:
            return ()
        useful = design.rows[design.gained > 0].tolist()
        return tuple(tuple(self.labels[part] for part in row if part < self.space.width) for row in useful)


def planned(cells: Cells) -> Planned | None:
    """The table's space: one value per slot, or subsets of one set; None for other tables and very large spaces."""
    from recombine.spaces.product import ProductSpace
    from recombine.spaces.subset import SubsetSpace

    factor, kinds = cells.factors[0], [factor.kind for factor in cells.factors]
    slots = [(place, factor) for factor in cells.factors for place in factor.slots]
    labels = tuple(f"{place}={value}" for place, factor in slots for value in factor.values)
    if cells.possible is not None:
        space, forbidden = cells.possible.space, cells.possible.forbidden
        labels = tuple(f"{name}={level}" for name, levels in space.factors for level in levels)
        result = Planned(space, cells, forbidden, numbers_in_space(cells), labels)
    elif kinds == ["set"]:
        sizes = _sizes(cells, factor)
        space = SubsetSpace(modules=len(factor.values), max_active=max(sizes), min_active=max(1, min(sizes)))
        result = Planned(space, cells, (), np.tile(np.arange(cells.width), (len(cells.slots), 1)), labels)
    elif "set" in kinds or len(cells.slots) < 2:
        return None
    else:
        values = {place: factor.values for factor in cells.factors for place in factor.slots}
        space = ProductSpace(factors=tuple(values.items()))
        numbers = np.arange(cells.width)[None, :] + _offsets(cells)[:, None]
        result = Planned(space, cells, (*_no_doubles(cells), *_asked(cells, numbers)), numbers, labels)
    return None if space.slots < 2 or space.interactions(2) > MOST_PAIRS else result


def _asked(cells: Cells, numbers: Int[np.ndarray, "slot constituent"]) -> tuple[Forbidden, ...]:
    """Forbids the pairs that must be asked about, so that none is proposed."""
    from recombine.supports.covering import Forbidden

    atoms = atoms_of(cells)
    names = list(dict.fromkeys(cells.slots))
    first = [cells.slots.index(name) for name in names]
    at = [
        int(numbers[first[slot], part])
        for slot, part in zip(atoms.slot.tolist(), atoms.constituent.tolist(), strict=True)
    ]
    return tuple(Forbidden((at[one], at[two])) for one, two in asked_pairs(cells).tolist())


def joining(cells: Cells) -> tuple[tuple[str, ...], ...]:
    """Combinations that connect the groups of training, one for each group beyond the first.

    Each is an evaluated combination with values of both groups, or else a trained combination of the largest group with
    one value from a combination of the other group.
    """
    assert cells.trained is not None
    groups = training_groups(cells)
    trained = cells.constituents[cells.trained]
    values = [value for factor in cells.factors for value in factor.values]
    # Evaluated combinations first: they can exist.
    evaluated = cells.constituents[cells.evaluated & ~cells.trained]
    combinations = []
    for group in groups[1:]:
        both = np.isin(evaluated, groups[0]).any(1) & np.isin(evaluated, group).any(1)
        found = evaluated[both][0] if both.any() else _crossed(cells, trained, groups[0], group)
        if found is None:
            continue
        named = zip(cells.slots, found.tolist(), strict=True)
        combinations.append(tuple(f"{place}={values[part]}" for place, part in named if part != NOTHING))
    return tuple(combinations)


def _crossed(
    cells: Cells, trained: Int[np.ndarray, "n slot"], first: list[int], second: list[int]
) -> Int[np.ndarray, " slot"] | None:
    """A trained combination of one group with one value from a combination of another; None if none can exist."""
    base = trained[np.isin(trained, first).any(1)][0].copy()
    other = trained[np.isin(trained, second).any(1)][0]
    both = (base != NOTHING) & (other != NOTHING)
    slots = np.nonzero(both & ~np.isin(other, base))[0]  # No value takes two roles.
    if both.sum() < 2:
        return None  # The result would hold values of one group only.
    tries = np.repeat(base[None, :], len(slots), axis=0)
    tries[np.arange(len(slots)), slots] = other[slots]
    possible = np.flatnonzero(allowed_cells(cells, tries)) if len(tries) else []
    return tries[possible[-1]] if len(possible) else None


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
