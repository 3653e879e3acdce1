"""The weakest slices: combinations that share one value or two, and how much worse they score than all others."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from recombine.audit.atoms import Atoms, atoms_of
from recombine.audit.cells import NOTHING, Cells, Chosen
from recombine.audit.findings import Slice
from recombine.audit.strata import mean_score
from recombine.stats.intervals import LEVEL, Interval

FEWEST = 3
"""Slices of fewer combinations are not ranked."""
SHOWN = 10
MOST_PAIRS = 30_000_000
"""Tables with more pairs (counted with repeats) are only sliced by single values."""
TIE = 1e-9
"""Losses that differ by less, relative to the spread of all scores, are equal."""
BEYOND = 1.5
"""A pair is listed only if it loses this many times as much as each of its values."""

Numbers = Float[np.ndarray, " slice"]
Counts = Int[np.ndarray, " slice"]


@dataclasses.dataclass(frozen=True)
class Sums:
    """Combinations, their scores and squared scores, summed by slice; scores have mean 0, and higher ones are better."""

    count: Counts
    total: Numbers
    squares: Numbers

    def loss(self, everything: tuple[int, float]) -> tuple[Numbers, Numbers]:
        """How much worse each slice is than all other combinations, and the standard error of that.

        Args:
            everything: The number of all combinations, and the sum of their squared scores.
        """
        number, squares = everything
        rest = np.maximum(number - self.count, 1)
        own = self.total / np.maximum(self.count, 1)
        other = -self.total / rest
        spread = squares / max(number - 1, 1)
        # At least the spread of all scores, so that a slice of a few equal scores is not certain.
        inside = np.maximum(np.maximum(self.squares - self.total * own, 0.0) / np.maximum(self.count, 1), spread)
        outside = np.maximum(squares - self.squares - rest * other**2, 0.0) / rest
        return other - own, np.sqrt(inside / np.maximum(self.count, 1) + outside / rest)


def weakest_slices(cells: Cells, score: int) -> tuple[Slice, ...]:
    """The slices that score worse than all other combinations, the most certain loss first.

    The order is by the lower end of the loss, whose level is corrected for the number of slices (Bonferroni). A pair
    of values is ranked only if it loses half as much again as each of its values alone.
    """
    table = _Sliced.of(cells, score)
    if table is None:
        return ()
    singles = table.sums(*table.members())
    loss, error = singles.loss(table.everything)
    members = [np.stack([np.arange(table.atoms.number)] * 2, axis=1)]
    counts, losses, errors = [singles.count], [loss], [error]
    slots = table.atoms.rows.shape[1]
    if slots > 1 and len(table.cell) * math.comb(slots, 2) <= MOST_PAIRS:
        for pairs, sums in table.pairs():
            both, uncertain = sums.loss(table.everything)
            deeper = both > BEYOND * np.maximum(np.maximum(loss[pairs[:, 0]], loss[pairs[:, 1]]), 0.0)
            kept = deeper & (sums.count >= FEWEST) & (both > 0)
            members.append(pairs[kept])
            counts, losses, errors = [*counts, sums.count[kept]], [*losses, both[kept]], [*errors, uncertain[kept]]
            table.tested += len(pairs)
    count, loss, error = (np.concatenate(each) for each in (counts, losses, errors))
    slices = np.concatenate(members)
    corrected = special.stdtrit(table.freedom, 1 - (1 - LEVEL) / 2 / max(table.tested, 1))
    # In units of the spread and rounded, so that rounding errors of another unit of the score do not order equal slices anew.
    unit = max(float(table.values.std()), np.finfo(float).tiny)
    low = np.where((count >= FEWEST) & (loss > TIE * unit), (loss - corrected * error) / unit, -np.inf)
    order = np.argsort(-np.round(low / TIE), kind="stable")[:SHOWN]
    order = order[np.isfinite(low[order])]
    return tuple(
        table.slice(
            tuple(dict.fromkeys(slices[index].tolist())),
            float(loss[index]),
            float(error[index]),
            bool(low[index] > TIE),
        )
        for index in order.tolist()
    )


def value_slices(cells: Cells, score: int) -> tuple[Slice, ...]:
    """Every value in every slot, in the order of the table."""
    table = _Sliced.of(cells, score)
    if table is None:
        return ()
    singles = table.sums(*table.members())
    loss, error = singles.loss(table.everything)
    return tuple(
        table.slice((atom,), float(loss[atom]), float(error[atom]), False)
        for atom in np.flatnonzero(singles.count).tolist()
    )


@dataclasses.dataclass
class _Sliced:
    """The scored combinations of a table."""

    cells: Cells
    score: int
    atoms: Atoms
    cell: Int[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]
    """Scores minus their mean; higher is better."""
    tested: int

    @classmethod
    def of(cls, cells: Cells, score: int) -> _Sliced | None:
        chosen: Chosen = cells.evaluated & np.isfinite(cells.mean[:, score])
        cell = np.flatnonzero(chosen)
        if len(cell) < 2 * FEWEST:
            return None
        values = cells.upright(score)[cell]
        atoms = atoms_of(cells)
        return cls(cells, score, atoms, cell, values - values.mean(), atoms.number)

    @property
    def everything(self) -> tuple[int, float]:
        return len(self.values), float(self.values @ self.values)

    @property
    def freedom(self) -> int:
        """The degrees of freedom of the spread of all scores."""
        return max(len(self.values) - 2, 1)

    def members(self) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
        """The atoms of the scored combinations, and the index of the combination of each."""
        rows = self.atoms.rows[self.cell]
        index, slot = np.nonzero(rows != NOTHING)
        return rows[index, slot], index

    def sums(self, number: Int[np.ndarray, " m"], index: Int[np.ndarray, " m"], size: int | None = None) -> Sums:
        """The sums of the combinations of each slice."""
        size = self.atoms.number if size is None else size
        values = self.values[index]
        count = np.bincount(number, minlength=size)
        return Sums(count, *(np.bincount(number, weights=each, minlength=size) for each in (values, values**2)))

    def pairs(self) -> Iterator[tuple[Int[np.ndarray, "pair 2"], Sums]]:
        """The pairs of atoms of each pair of slots, with their sums."""
        chosen = np.zeros(len(self.atoms.rows), dtype=bool)
        chosen[self.cell] = True
        place = np.full(len(chosen), NOTHING)
        place[self.cell] = np.arange(len(self.cell))
        for cell, code in self.atoms.coded(chosen, 2):
            codes, number = np.unique(code, return_inverse=True)
            yield self.atoms.members(codes), self.sums(number.reshape(-1), place[cell], len(codes))

    def slice(self, members: tuple[int, ...], loss: float, error: float, certain: bool) -> Slice:
        """A slice with its mean and its intervals."""
        rows = self.atoms.rows
        holds = np.logical_and.reduce([(rows == atom).any(1) for atom in members])
        inside = self.cell[holds[self.cell]]
        values = self.cells.mean[inside, self.score]
        count, mean = len(values), float(values.mean())
        half = float(special.stdtrit(self.freedom, (1 + LEVEL) / 2)) * error
        form = {"binary": self.cells.binary[self.score], "ends": self.cells.scale(self.score).ends}
        own = mean_score(values, **form)
        worse = Interval(
            loss, loss - half, loss + half, count, LEVEL, "t over combinations, with at least the spread of all"
        )
        trained = None if self.cells.trained is None else int((holds & self.cells.trained).sum())
        name = " + ".join(self.atoms.labels[atom] for atom in members)
        return Slice(name, count, int(self.cells.count[inside].sum()), mean, own, worse, trained, certain)
