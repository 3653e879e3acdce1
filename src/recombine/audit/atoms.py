"""Constituents with their slots, and the t-way interactions in combinations."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.cells import NOTHING, Cells, Chosen, remembered

MOST_TUPLES = 100_000_000
"""Strengths with more interactions than this (counted with repeats) are left out, and the findings say so."""


@dataclasses.dataclass(frozen=True)
class Atoms:
    """Each combination as ascending numbers of atoms; `NOTHING` comes first.

    An atom is a constituent in a slot. A constituent with two roles is two atoms, because its pairs differ.
    """

    rows: Int[np.ndarray, "cell slot"]
    constituent: Int[np.ndarray, " atom"]
    slot: Int[np.ndarray, " atom"]
    labels: tuple[str, ...]

    @property
    def number(self) -> int:
        """The number of atoms."""
        return len(self.constituent)

    def occurring(self, chosen: Chosen) -> Bool[np.ndarray, " atom"]:
        """Which atoms occur in the chosen combinations."""
        occurs = np.zeros(self.number, dtype=bool)
        held = self.rows[chosen]
        occurs[held[held != NOTHING]] = True
        return occurs

    def feasible(self, strength: int) -> bool:
        """Whether the interactions of this strength are few enough to list."""
        cells, slots = self.rows.shape
        fits = max(self.number, 2) ** strength < 2**62
        return slots >= strength and fits and cells * math.comb(slots, strength) <= MOST_TUPLES

    def coded(self, chosen: Chosen, strength: int) -> Iterator[tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]]:
        """For each set of slots: the cells that fill it, and the number of each cell's interaction there."""
        cells = np.nonzero(chosen)[0]
        rows = self.rows[cells].astype(np.int64)
        base = max(self.number, 2)
        for slots in itertools.combinations(range(rows.shape[1]), strength):
            full = rows[:, slots[0]] != NOTHING  # Empty slots come first.
            code = np.zeros(int(full.sum()), dtype=np.int64)
            for slot in slots:
                code = code * base + rows[full, slot]
            yield cells[full], code

    def interactions(self, chosen: Chosen, strength: int) -> Int[np.ndarray, " n"]:
        """The distinct interactions of a strength in the chosen combinations, as ascending numbers."""
        codes = [distinct(code) for _, code in self.coded(chosen, strength)]
        return distinct(np.concatenate(codes)) if codes else np.empty(0, dtype=np.int64)

    def members(self, codes: Int[np.ndarray, " n"]) -> Int[np.ndarray, "n 2"]:
        """The atoms of numbered pairs."""
        return np.stack(np.divmod(codes, max(self.number, 2)), axis=1)

    def lacking(self, chosen: Chosen, known: Int[np.ndarray, " known"]) -> Int[np.ndarray, " cell"]:
        """How many pairs of each chosen combination are not known; 0 for combinations that are not chosen."""
        lacks = np.zeros(len(self.rows), dtype=np.int64)
        for cells, code in self.coded(chosen, 2):
            lacks += np.bincount(cells[~_among(code, known)], minlength=len(lacks))
        return lacks

    def scored(
        self, chosen: Chosen, wanted: Int[np.ndarray, " wanted"], values: Float[np.ndarray, " cell"]
    ) -> tuple[Float[np.ndarray, " wanted"], Int[np.ndarray, " wanted"]]:
        """For each wanted pair: the mean value over the chosen combinations that hold it, and their number."""
        total, count = np.zeros(len(wanted)), np.zeros(len(wanted), dtype=np.int64)
        for cells, code in self.coded(chosen, 2):
            inside = _among(code, wanted)
            index = np.searchsorted(wanted, code[inside])
            total += np.bincount(index, weights=values[cells[inside]], minlength=len(wanted))
            count += np.bincount(index, minlength=len(wanted))
        with np.errstate(invalid="ignore"):
            return total / count, count


def distinct(values: Int[np.ndarray, " n"]) -> Int[np.ndarray, " m"]:
    """The distinct values, ascending. `numpy.unique` hashes, which is twenty times slower here."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def _among(code: Int[np.ndarray, " n"], known: Int[np.ndarray, " known"]) -> Bool[np.ndarray, " n"]:
    """Which numbers are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(code), dtype=bool)
    index = np.minimum(np.searchsorted(known, code), len(known) - 1)
    return known[index] == code


@remembered
def atoms_of(cells: Cells) -> Atoms:
    """The constituents that occur in a table, with their slots."""
    names = list(dict.fromkeys(cells.slots))
    slots = np.array([names.index(name) for name in cells.slots], dtype=np.int64)
    width = max(cells.width, 1)
    coded = np.where(cells.constituents == NOTHING, NOTHING, slots * width + cells.constituents)
    used = distinct(coded[coded != NOTHING])
    rows = np.where(coded == NOTHING, NOTHING, np.searchsorted(used, coded))
    constituent, slot = used % width, used // width
    values = [value for factor in cells.factors for value in factor.values]
    named = zip(slot.tolist(), constituent.tolist(), strict=True)
    return Atoms(np.sort(rows, axis=1), constituent, slot, tuple(f"{names[at]}={values[part]}" for at, part in named))
