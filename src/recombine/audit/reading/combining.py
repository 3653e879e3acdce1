"""Groups of rows become cells, one per combination, with notes about what was left out."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.cells import NOTHING, Cells, Factor
from recombine.audit.reading.levels import Levels, all_numbers, name_values, spelled_alike
from recombine.audit.reading.query import Columns, Groups
from recombine.audit.wording import counted
from recombine.errors import BadInput

MANY = 1000
"""A factor with at least this many values gets a note."""
MANY_NUMBERS = 20
"""A factor with at least this many numbers gets a note."""
SHOWN = 3


def used(groups: Groups) -> Bool[np.ndarray, " group"]:
    """Which groups become cells: those with a value for every factor, and a score or training rows."""
    return groups.whole & ((groups.count > 0) | (groups.trained > 0))


def cells_of(
    groups: Groups, training: Groups | None, columns: Columns, levels: dict[str, Levels], title: str
) -> tuple[Cells, Int[np.ndarray, "group column"], Int[np.ndarray, " group"]]:
    """Groups as cells. Different texts can be one combination, such as sets in another order."""
    kept = used(groups)
    codes = np.concatenate([groups.codes[kept], *([] if training is None else [training.codes[training.whole]])])
    parts, place, factors = _parts(columns, levels, codes)
    rows, cell = np.unique(parts, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    number = int(kept.sum())
    count, mean, spread = _moments(groups, kept, cell[:number], len(rows))
    trained = None
    if columns.split is not None or training is not None:
        trained = np.zeros(len(rows), dtype=bool)
        trained[cell[:number][groups.trained[kept] > 0]] = True
        trained[cell[number:]] = True
    moments = (count, mean, spread)
    cells = Cells(factors, rows, place, columns.scores, groups.binary, *moments, trained, scales=groups.scales)
    if (count > 0).sum() < 2:
        only = cells.name(int(np.flatnonzero(count > 0)[0]))
        raise BadInput(
            f"{title} has scores of only one combination ({only}): there is nothing to compare.",
            fix="name factors that differ between rows, or widen the filter",
        )
    return cells, groups.codes[kept], cell[:number]


def _parts(
    columns: Columns, levels: dict[str, Levels], codes: Int[np.ndarray, "group column"]
) -> tuple[Int[np.ndarray, "group slot"], tuple[str, ...], tuple[Factor, ...]]:
    """The constituents of each group, numbered across all factors."""
    first, offset, blocks = 0, 0, []
    places: tuple[str, ...] = ()
    named: tuple[Factor, ...] = ()
    for factor in columns.factors:
        held = slice(first, first + len(factor.columns))
        ordering = columns.orderings.get(factor.name)
        own, parts, slots = name_values(factor, levels[factor.name], codes[:, held], ordering)
        blocks.append(np.where(parts < 0, parts, parts + offset))
        places, named = (*places, *slots), (*named, own)
        first, offset = held.stop, offset + len(own.values)
    return np.concatenate(blocks, axis=1), places, named


def _moments(
    groups: Groups, kept: Bool[np.ndarray, " group"], cell: Int[np.ndarray, " kept"], size: int
) -> tuple[Int[np.ndarray, " cell"], Float[np.ndarray, "cell score"], Float[np.ndarray, "cell score"]]:
    """Counts, means and sums of squared deviations of merged groups."""
    number = groups.count[kept]
    scored = (number > 0)[:, None]
    mean_of = np.where(scored, groups.mean[kept], 0.0)
    spread_of = np.where(scored, groups.variance[kept] * number[:, None], 0.0)
    count = np.zeros(size, dtype=np.int64)
    np.add.at(count, cell, number)
    share = number / np.maximum(count[cell], 1)
    mean = np.zeros((size, groups.mean.shape[1]))
    np.add.at(mean, cell, mean_of * share[:, None])
    spread = np.zeros_like(mean)
    np.add.at(spread, cell, spread_of + number[:, None] * np.where(scored, mean_of - mean[cell], 0.0) ** 2)
    mean[count == 0] = np.nan
    return count, mean, spread


def about_training(cells: Cells, groups: Groups, cell: Int[np.ndarray, " kept"]) -> list[str]:
    """Notes about combinations with trained and held-out rows, and about combinations without scores."""
    if cells.trained is None:
        return []
    notes = []
    kept = used(groups)
    rows, trained = np.zeros((2, len(cells.count)), dtype=np.int64)
    np.add.at(rows, cell, groups.rows[kept])
    np.add.at(trained, cell, groups.trained[kept])
    if both := int(((trained > 0) & (trained < rows)).sum()):
        having = counted(both, "combination has", "combinations have")
        notes.append(f"{having} trained and held-out rows and {'counts' if both == 1 else 'count'} as trained.")
    if alone := int((cells.trained & ~cells.evaluated).sum()):
        notes.append(f"{counted(alone, 'trained combination has', 'trained combinations have')} no score.")
    if (cells.trained | ~cells.evaluated).all():
        notes.append("Every combination with a score was trained on: nothing is held out.")
    if not (cells.trained & cells.evaluated).any():
        notes.append("No combination with a score was trained on.")
    return notes


def missing_factors(groups: Groups, columns: Columns, title: str) -> list[str]:
    """A note about rows that lack the value of a factor."""
    total = int(groups.rows[~groups.whole].sum())
    if not total:
        return []
    by_column = groups.rows @ (groups.codes == NOTHING)
    verb, be = ("lacks", "is") if total == 1 else ("lack", "are")
    lost = f"{counted(total, 'row')} of {int(groups.rows.sum()):,} of {title} {verb} the value of a factor"
    return [f"{lost} and {be} left out ({_by_name(columns.factor_columns, by_column)})."]


def missing_scores(groups: Groups, columns: Columns) -> list[str]:
    """A note about rows that lack a score. A row needs all scores, so that all scores refer to the same rows."""
    lost = int(groups.rows.sum() - groups.scored.sum())
    if not lost:
        return []
    where = _by_name(columns.scores, groups.missing)
    return [f"{counted(lost, 'row')} without a score {'does' if lost == 1 else 'do'} not count as evaluated ({where})."]


def _by_name(names: tuple[str, ...], numbers: Int[np.ndarray, " column"]) -> str:
    """colour: 3, shape: 1; without zeros."""
    return ", ".join(f"{name}: {number:,}" for name, number in zip(names, numbers, strict=True) if number)


def shape_notes(cells: Cells) -> list[str]:
    """Notes about unequal numbers of rows, many values, and values with similar spelling."""
    notes = []
    count = cells.count[cells.evaluated]
    if count.min() != count.max():
        notes.append(
            f"Combinations have between {count.min():,} and {count.max():,} rows (median {np.median(count):g})."
        )
    for factor in cells.factors:
        if len(factor.values) >= MANY:
            notes.append(
                f"Factor {factor.name} has {len(factor.values):,} values: is it an identifier rather than a factor?"
            )
        elif len(factor.values) >= MANY_NUMBERS and not factor.positions and all_numbers(factor.values):
            notes.append(
                f"Factor {factor.name} has {len(factor.values):,} different numbers: --numeric {factor.name} puts them "
                "into bins and tests for a trend."
            )
        if alike := spelled_alike(factor.values):
            shown = "; ".join(", ".join(map(repr, group[:SHOWN])) for group in alike[:SHOWN])
            notes.append(
                f"Factor {factor.name} has values that differ only in case, spaces or number format and count as different: {shown}"
                + (f" and {len(alike) - SHOWN:,} more." if len(alike) > SHOWN else ".")
            )
        if factor.kind == "set" and cells.slots.count(factor.name) == 1:
            notes.append(f"No set in column {factor.name} has more than one member.")
    return notes
