"""Constituents with their places, and the interactions of them that combinations hold."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.cells import NOTHING, Cells

MOST_TUPLES = 100_000_000
"""A strength at which the combinations hold more interactions than this (with repeats) is left out, and said."""


@dataclasses.dataclass(frozen=True)
class Atoms:
    """Each combination as ascending numbers of constituents with their places; `NOTHING` stands first.

    A constituent that can stand in two roles is two atoms, as its pairs differ; it is one constituent all the same.
    """

    rows: Int[np.ndarray, "cell slot"]
    constituent: Int[np.ndarray, " atom"]
    place: Int[np.ndarray, " atom"]
    labels: tuple[str, ...]

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.constituent)

    def occurring(self, chosen: Bool[np.ndarray, " cell"]) -> Bool[np.ndarray, " atom"]:
        """Which atoms stand in the chosen combinations."""
        found = np.zeros(self.number, dtype=bool)
        held = self.rows[chosen]
        found[held[held != NOTHING]] = True
        return found

    def feasible(self, strength: int) -> bool:
        """Whether the interactions of this strength can be listed at all."""
        cells, slots = self.rows.shape
        fits = max(self.number, 2) ** strength < 2**62
        return slots >= strength and fits and cells * math.comb(slots, strength) <= MOST_TUPLES

    def _coded(
        self, chosen: Bool[np.ndarray, " cell"], strength: int
    ) -> Iterator[tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]]:
        """For each set of slots: the cells that fill it, and one number for the interaction that each has there."""
        cells = np.nonzero(chosen)[0]
        rows = self.rows[cells].astype(np.int64)
        base = max(self.number, 2)
        for slots in itertools.combinations(range(rows.shape[1]), strength):
            full = rows[:, slots[0]] != NOTHING  # Ascending: what is empty stands first.
            code = np.zeros(int(full.sum()), dtype=np.int64)
            for slot in slots:
                code = code * base + rows[full, slot]
            yield cells[full], code

    def interactions(self, chosen: Bool[np.ndarray, " cell"], strength: int) -> Int[np.ndarray, " n"]:
        """The numbers of all interactions of a strength in the chosen combinations, ascending, each once."""
        found = [distinct(code) for _, code in self._coded(chosen, strength)]
        return distinct(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)

    def members(self, codes: Int[np.ndarray, " n"], strength: int) -> Int[np.ndarray, "n strength"]:
        """The atoms of interactions given by their numbers."""
        base = max(self.number, 2)
        return np.stack([codes // base**power % base for power in range(strength - 1, -1, -1)], axis=1)

    def lacking(
        self, chosen: Bool[np.ndarray, " cell"], known: Int[np.ndarray, " known"], strength: int = 2
    ) -> Int[np.ndarray, " cell"]:
        """How many interactions of each chosen combination are not among the known ones (zero for the others)."""
        lacks = np.zeros(len(self.rows), dtype=np.int64)
        for cells, code in self._coded(chosen, strength):
            lacks += np.bincount(cells[~_among(code, known)], minlength=len(lacks))
        return lacks

    def scored(
        self,
        chosen: Bool[np.ndarray, " cell"],
        wanted: Int[np.ndarray, " wanted"],
        values: Float[np.ndarray, " cell"],
        strength: int = 2,
    ) -> tuple[Float[np.ndarray, " wanted"], Int[np.ndarray, " wanted"]]:
        """The mean value over the chosen combinations that hold each wanted interaction, and their number."""
        total, count = np.zeros(len(wanted)), np.zeros(len(wanted), dtype=np.int64)
        for cells, code in self._coded(chosen, strength):
            inside = _among(code, wanted)
            index = np.searchsorted(wanted, code[inside])
            total += np.bincount(index, weights=values[cells[inside]], minlength=len(wanted))
            count += np.bincount(index, minlength=len(wanted))
        with np.errstate(invalid="ignore"):
            return total / count, count


def distinct(values: Int[np.ndarray, " n"]) -> Int[np.ndarray, " m"]:
    """The values, ascending, each once. NumPy's own way of it hashes, which is twenty times slower here."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def _among(code: Int[np.ndarray, " n"], known: Int[np.ndarray, " known"]) -> Bool[np.ndarray, " n"]:
    """Which numbers are among the known ones, which ascend."""
    if not len(known):
        return np.zeros(len(code), dtype=bool)
    index = np.minimum(np.searchsorted(known, code), len(known) - 1)
    return known[index] == code


def atoms_of(cells: Cells) -> Atoms:
    """The constituents of a table with their places, as far as they occur in it."""
    places = list(dict.fromkeys(cells.place))
    slot_place = np.array([places.index(place) for place in cells.place], dtype=np.int64)
    width = max(cells.width, 1)
    coded = np.where(cells.parts == NOTHING, NOTHING, slot_place[None, :] * width + cells.parts)
    used = distinct(coded[coded != NOTHING])
    rows = np.where(coded == NOTHING, NOTHING, np.searchsorted(used, coded))
    constituent, place = used % width, used // width
    values = [value for factor in cells.factors for value in factor.values]
    labels = tuple(
        f"{places[at]}={values[part]}" for at, part in zip(place.tolist(), constituent.tolist(), strict=True)
    )
    return Atoms(np.sort(rows, axis=1), constituent, place, labels)
