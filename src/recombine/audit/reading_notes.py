"""What happened on reading, in sentences."""

from __future__ import annotations

import numpy as np

from recombine.audit.cells import NOTHING, Cells
from recombine.audit.reading_levels import spelled_alike
from recombine.audit.reading_query import Asked, Groups

MANY = 1000
"""So many values of one factor are worth a word."""
SHOWN = 3


def rows_of(number: int) -> str:
    """12 rows, 1 row."""
    return f"{number:,} row" if number == 1 else f"{number:,} rows"


def missing_factors(groups: Groups, asked: Asked, title: str) -> list[str]:
    """Rows that lack a value of a factor."""
    lost = ~groups.whole
    if not lost.any():
        return []
    total = int(groups.rows[lost].sum())
    gone = groups.codes == NOTHING
    by_column = {name: int(groups.rows[gone[:, n]].sum()) for n, name in enumerate(asked.columns)}
    where = ", ".join(f"{name}: {number:,}" for name, number in by_column.items() if number)
    verb = "lacks" if total == 1 else "lack"
    return [
        f"{rows_of(total)} of {int(groups.rows.sum()):,} of {title} {verb} a value of a factor and {'is' if total == 1 else 'are'} set aside ({where})."
    ]


def missing_scores(groups: Groups, asked: Asked) -> list[str]:
    """Rows that lack a score: all are asked for, so that all scores speak of the same rows."""
    lost = int(groups.rows.sum() - groups.count.sum())
    if not lost:
        return []
    where = ", ".join(
        f"{name}: {number:,}" for name, number in zip(asked.scores, groups.missing, strict=True) if number
    )
    return [
        f"{rows_of(lost)} without a score {'is' if lost == 1 else 'are'} not counted as evaluated ({where})."
    ]


def shape(cells: Cells) -> list[str]:
    """Unequal numbers of rows, many values, values that are spelled alike."""
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
        alike = spelled_alike(factor.values)
        if alike:
            shown = "; ".join(", ".join(map(repr, group[:SHOWN])) for group in alike[:SHOWN])
            notes.append(
                f"Factor {factor.name} has values that differ only in case, spaces or the way a number is written, and are kept apart: {shown}"
                + (f" and {len(alike) - SHOWN:,} more." if len(alike) > SHOWN else ".")
            )
        slots = cells.place.count(factor.name)
        if factor.kind == "set" and slots == 1:
            notes.append(f"No set in column {factor.name} has more than one member.")
    return notes
