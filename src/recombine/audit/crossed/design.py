"""Combinations and their values as a sparse design: one column per value and slot."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from recombine.audit.atoms import Atoms, atoms_of
from recombine.audit.cells import NOTHING, Cells, Chosen

MOST_PAIRS = 2_000_000
"""The most pairs (counted with repeats) that are listed; a design with more names none."""


@dataclasses.dataclass(frozen=True)
class Design:
    """The scored combinations of a table. A value with two roles has one column for each role."""

    cells: Int[np.ndarray, " cell"]
    """Their numbers in the table."""
    rows: Int[np.ndarray, "cell slot"]
    """The columns of each combination, `NOTHING` in empty slots."""
    slot: Int[np.ndarray, " column"]
    """The index of each column's slot in `slots`."""
    slots: tuple[str, ...]
    single: tuple[bool, ...]
    """Which slots hold at most one value; the others hold sets."""
    labels: tuple[str, ...]
    """The name of each column: colour=red."""
    constituent: Int[np.ndarray, " column"]

    @property
    def matrix(self) -> sparse.csr_array:
        """The indicator matrix, combinations by columns."""
        cell, slot = np.nonzero(self.rows != NOTHING)
        return sparse.csr_array(
            (np.ones(len(cell)), (cell, self.rows[cell, slot])), shape=(len(self.rows), len(self.slot))
        )

    @property
    def uses(self) -> Int[np.ndarray, " column"]:
        """The number of combinations with each value."""
        return np.bincount(self.rows[self.rows != NOTHING], minlength=len(self.slot))

    def of(self, place: int) -> Int[np.ndarray, " n"]:
        """The columns of a slot."""
        return np.nonzero(self.slot == place)[0]

    def held(self, place: int) -> Int[np.ndarray, " cell"]:
        """The number of values of each combination in a slot."""
        inside = np.append(self.slot == place, False)  # `NOTHING` is the last.
        return inside[self.rows].sum(1)

    def largest(self, *, filled: bool = False) -> Bool[np.ndarray, " column"]:
        """The columns of the largest slot of single values (`filled`: one in every combination); none without one."""
        usable = [single and (not filled or self.held(p).min() == 1) for p, single in enumerate(self.single)]
        sizes = [len(self.of(place)) * possible for place, possible in enumerate(usable)]
        return (self.slot == int(np.argmax(sizes))) & (max(sizes) > 0)

    def parameters(self) -> int:
        """The parameters of the additive model: an intercept, and for each slot its number of values minus one.

        An empty slot counts as a value. Sets of different sizes need one parameter per value.
        """
        total = 1
        for place, single in enumerate(self.single):
            held = self.held(place)
            lacking = int(held.min() == 0) if single else int(np.ptp(held) > 0)
            total += len(self.of(place)) + lacking - 1
        return total

    def kept(self, chosen: Chosen) -> Design:
        """The design of some of the combinations, without columns that no combination uses."""
        rows = self.rows[chosen]
        used = np.unique(rows[rows != NOTHING])
        number = np.full(len(self.slot) + 1, NOTHING)
        number[used] = np.arange(len(used))
        return dataclasses.replace(
            self,
            cells=self.cells[chosen],
            rows=np.sort(number[rows], axis=1),
            slot=self.slot[used],
            labels=tuple(self.labels[column] for column in used.tolist()),
            constituent=self.constituent[used],
        )


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Pairs of values that occur in one combination."""

    members: Int[np.ndarray, "pair 2"]
    """Columns of the design."""
    inside: sparse.csr_array
    """The indicator matrix, pairs by combinations."""


def design_of(cells: Cells, score: int) -> Design:
    """The design of the combinations that have a score."""
    return design_among(cells, cells.evaluated & np.isfinite(cells.mean[:, score]))


def design_among(cells: Cells, chosen: Chosen) -> Design:
    """The design of the chosen combinations."""
    atoms = atoms_of(cells)
    slots = tuple(dict.fromkeys(cells.slots))
    sets = {factor.name for factor in cells.factors if factor.kind == "set"}
    single = tuple(slot not in sets for slot in slots)
    every = np.arange(len(atoms.rows))
    return Design(every, atoms.rows, atoms.slot, slots, single, atoms.labels, atoms.constituent).kept(chosen)


def pairs_of(design: Design) -> Pairs:
    """All pairs that can be separated from their values: each value also occurs without the other."""
    cells, slots = design.rows.shape
    if slots < 2 or cells * math.comb(slots, 2) > MOST_PAIRS:
        return Pairs(np.empty((0, 2), dtype=np.int64), sparse.csr_array((0, cells)))
    atoms = Atoms(design.rows, design.constituent, design.slot, design.labels)
    cell, code = (np.concatenate(each) for each in zip(*atoms.coded(np.ones(cells, bool), 2), strict=True))
    codes, number = np.unique(code, return_inverse=True)
    members = atoms.members(codes)
    inside = sparse.csr_array((np.ones(len(cell)), (number, cell)), shape=(len(codes), cells))
    apart = np.bincount(number, minlength=len(codes)) < design.uses[members].min(1)
    return Pairs(members[apart], inside[np.nonzero(apart)[0]])


def frequent(design: Design, most: int) -> Design:
    """The combinations of the most frequent values, with at most `most` columns beside the largest slot.

    The rarest values are dropped first, all values of equal frequency together.
    """
    while int((~design.largest()).sum()) > most:
        uses = design.uses
        rare = uses <= np.partition(uses, len(uses) // 4)[len(uses) // 4]
        if rare.all():
            rare = np.arange(len(uses)) >= most
        dropped: Chosen = np.asarray(np.append(rare, False)[design.rows].any(1))
        if dropped.all():
            dropped = np.arange(len(dropped)) >= len(dropped) // 2
        design = design.kept(~dropped)
    return design


def weighted(matrix: sparse.csr_array, values: Float[np.ndarray, "n batch"]) -> Float[np.ndarray, "m batch"]:
    """A sparse product as a dense array."""
    return np.asarray(matrix @ values)
