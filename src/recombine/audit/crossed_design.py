"""Combinations and their parts as a sparse design: a column for each value in each place."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from recombine.audit.atoms import atoms_of
from recombine.audit.cells import NOTHING, Cells

MOST_PAIRS = 2_000_000
"""So many pairs (with repeats) are listed at most; where combinations hold more, none is named."""


@dataclasses.dataclass(frozen=True)
class Design:
    """The scored combinations of a table. A value that can stand in two roles has a column for each of them."""

    cells: Int[np.ndarray, " cell"]
    """Their numbers in the table."""
    rows: Int[np.ndarray, "cell slot"]
    """The columns that each combination has, `NOTHING` in empty slots."""
    place: Int[np.ndarray, " column"]
    """The number of each column's place."""
    places: tuple[str, ...]
    single: tuple[bool, ...]
    """Which places hold one value at most; the others hold sets."""
    labels: tuple[str, ...]
    """The name of each column: colour=red."""
    constituent: Int[np.ndarray, " column"]

    @property
    def matrix(self) -> sparse.csr_array:
        """Combinations by columns, one where the value stands there."""
        cell, slot = np.nonzero(self.rows != NOTHING)
        return sparse.csr_array(
            (np.ones(len(cell)), (cell, self.rows[cell, slot])), shape=(len(self.rows), len(self.place))
        )

    @property
    def uses(self) -> Int[np.ndarray, " column"]:
        """How many combinations have each value."""
        return np.bincount(self.rows[self.rows != NOTHING], minlength=len(self.place))

    def of(self, place: int) -> Int[np.ndarray, " n"]:
        """The columns of a place."""
        return np.nonzero(self.place == place)[0]

    def held(self, place: int) -> Int[np.ndarray, " cell"]:
        """How many values each combination has in a place."""
        inside = np.append(self.place == place, False)  # `NOTHING` is the last.
        return inside[self.rows].sum(1)

    def parameters(self) -> int:
        """How many numbers the additive model asks for: a level, and for each place its values less one.

        An empty place counts as a value of it. Sets of differing sizes need a number for every value.
        """
        total = 1
        for place, single in enumerate(self.single):
            held = self.held(place)
            lacking = int(held.min() == 0) if single else int(np.ptp(held) > 0)
            total += len(self.of(place)) + lacking - 1
        return total

    def kept(self, chosen: Bool[np.ndarray, " cell"]) -> Design:
        """The same for some of the combinations: columns that are left without one go."""
        rows = self.rows[chosen]
        used = np.unique(rows[rows != NOTHING])
        number = np.full(len(self.place) + 1, NOTHING)
        number[used] = np.arange(len(used))
        return dataclasses.replace(
            self,
            cells=self.cells[chosen],
            rows=np.sort(number[rows], axis=1),
            place=self.place[used],
            labels=tuple(self.labels[column] for column in used.tolist()),
            constituent=self.constituent[used],
        )


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Pairs of values that stand in one combination."""

    members: Int[np.ndarray, "pair 2"]
    """Columns of the design."""
    inside: sparse.csr_array
    """Pairs by combinations, one where the combination holds the pair."""


def design_of(cells: Cells, score: int) -> Design:
    """The design of the combinations that have a score."""
    atoms = atoms_of(cells)
    places = tuple(dict.fromkeys(cells.place))
    sets = {factor.name for factor in cells.factors if factor.kind == "set"}
    whole = Design(
        cells=np.arange(len(atoms.rows)),
        rows=atoms.rows,
        place=atoms.place,
        places=places,
        single=tuple(place not in sets for place in places),
        labels=atoms.labels,
        constituent=atoms.constituent,
    )
    return whole.kept(cells.evaluated & np.isfinite(cells.mean[:, score]))


def pairs_of(design: Design) -> Pairs:
    """All pairs that can be told from their parts: each part also stands in a combination without the other."""
    columns, slots = len(design.place), design.rows.shape[1]
    uses = design.uses
    if len(design.rows) * slots * (slots - 1) // 2 > MOST_PAIRS:
        return Pairs(np.empty((0, 2), dtype=np.int64), sparse.csr_array((0, len(design.rows))))
    found = []
    for first, second in itertools.combinations(range(slots), 2):
        full = np.nonzero(design.rows[:, first] != NOTHING)[0]
        found.append(
            np.stack([full, design.rows[full, first] * columns + design.rows[full, second]]).astype(np.int64)
        )
    cell, code = np.concatenate(found, axis=1) if found else np.empty((2, 0), dtype=np.int64)
    codes, number = np.unique(code, return_inverse=True)
    members = np.stack([codes // max(columns, 1), codes % max(columns, 1)], axis=1)
    inside = sparse.csr_array((np.ones(len(cell)), (number, cell)), shape=(len(codes), len(design.rows)))
    apart = (
        np.bincount(number, minlength=len(codes)) < uses[members].min(1) if len(codes) else np.zeros(0, bool)
    )
    return Pairs(members[apart], inside[np.nonzero(apart)[0]])


def frequent(design: Design, most: int) -> Design:
    """The combinations of the values that occur most, so that few enough columns remain beside the largest place.

    The rarest values go first, whole classes of equal rarity, those of the largest place only with the others.
    """
    while beside(design) > most:
        uses = design.uses
        rare = uses <= np.partition(uses, len(uses) // 4)[len(uses) // 4]
        if rare.all():
            rare = np.arange(len(uses)) >= most
        dropped: Bool[np.ndarray, " cell"] = np.asarray(np.append(rare, False)[design.rows].any(1))
        if dropped.all():
            dropped = np.arange(len(dropped)) >= len(dropped) // 2
        design = design.kept(~dropped)
    return design


def beside(design: Design) -> int:
    """How many columns there are beside the largest place with single values."""
    sizes = [len(design.of(place)) for place, single in enumerate(design.single) if single]
    return len(design.place) - max(sizes, default=0)


def weighted(matrix: sparse.csr_array, values: Float[np.ndarray, "n batch"]) -> Float[np.ndarray, "m batch"]:
    """A sparse product, dense."""
    return np.asarray(matrix @ values)
