"""The page of a comparison of two audits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recombine.audit.comparison.findings import Change, ChangedCombination, Comparison, ScoreComparison
from recombine.figures.audit.intervals import IntervalRow, draw_intervals, intervals_info
from recombine.figures.base import Figure
from recombine.plain import plain
from recombine.report.html import Report, Table, write_report
from recombine.report.visible import visible

QUESTION = "What did the new model gain, and what did it lose?"
DRAWN = 15
"""How many values are drawn at each end; the table has all."""
LISTED = 200
"""How many lost and gained combinations the page lists."""


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Write the page of a comparison as one self-contained HTML file.

    Args:
        comparison: The comparison.
        path: The file to write.

    Returns:
        The path of the file.
    """
    shown = visible(comparison)
    figures, tables = [], []
    for score in shown.scores:
        figures += _figures(score)
        tables += _tables(score, shown.slots)
    report = Report(
        title=f"recombine audit compare: {shown.old} and {shown.new}",
        question=QUESTION,
        answer=" ".join(score.sentence for score in shown.scores),
        figures=figures,
        tables=tables,
        facts=_facts(shown),
    )
    return write_report(report, path)


def _facts(comparison: Comparison) -> dict[str, str]:
    facts = {
        "old": comparison.old,
        "new": comparison.new,
        "combinations in both": f"{comparison.shared:,}",
        "only in the old": f"{comparison.only_old:,}",
        "only in the new": f"{comparison.only_new:,}",
        "intervals": "95 %, paired t over combinations",
    }
    return facts | {f"note {number}": note for number, note in enumerate(comparison.notes, start=1)}


def _figures(score: ScoreComparison) -> list[Figure]:
    strata = [score.overall, *score.strata]
    values = score.values if len(score.values) <= 2 * DRAWN else (*score.values[:DRAWN], *score.values[-DRAWN:])
    some = "" if len(values) == len(score.values) else f" The {DRAWN} largest losses and gains of {len(score.values)}."
    drawn = (
        ("strata", "Difference by coverage of the old training data", strata, ""),
        ("values", "Difference by value", values, some),
    )
    figures = []
    for name, title, changes, lead in drawn:
        rows = [_row(change) for change in changes]
        info = intervals_info(rows, title=f"{plain(score.score)}, new minus old", zero=True, lead=lead)
        figures.append(Figure(name, f"{plain(score.score)}: {title.lower()}", info.caption, draw_intervals(info)))
    return figures


def _row(change: Change) -> IntervalRow:
    note = f"n = {change.combinations:,}"
    if change.difference is None:
        return IntervalRow(change.name, change.estimate, note=note)
    return IntervalRow(change.name, change.difference.estimate, change.difference.low, change.difference.high, note)


def _tables(score: ScoreComparison, slots: Sequence[str]) -> list[Table]:
    columns = ["", "combinations", "before", "after", "difference", "low", "high", "q"]
    tables = flipped(score, slots)
    if score.solved_at is None and score.drops:
        tables.append(_combinations(f"{score.score}: largest losses", score.drops, slots, ""))
    for title, changes in (("all combinations and strata", (score.overall, *score.strata)), ("values", score.values)):
        rows = [_cells(change) for change in changes]
        tables.append(Table(f"{score.score}: {title}", columns, rows, names=(0,)))
    return tables


def flipped(score: ScoreComparison, slots: Sequence[str]) -> list[Table]:
    """The combinations that were lost, and those that were gained; a table without rows is left out."""
    tables = []
    for title, each in (("combinations lost", score.lost), ("combinations gained", score.gained)):
        if each:
            note = "" if len(each) <= LISTED else f"The first {LISTED} of {len(each):,}; --json has all."
            tables.append(_combinations(f"{score.score}: {title}", each[:LISTED], slots, note))
    return tables


def _combinations(title: str, each: Sequence[ChangedCombination], slots: Sequence[str], note: str) -> Table:
    rows = [(*one.values, one.before, one.after, one.rows_before, one.rows_after) for one in each]
    columns = [*slots, "before", "after", "rows before", "rows after"]
    return Table(title, columns, rows, note, names=range(len(slots)))


def _cells(change: Change) -> tuple[object, ...]:
    low, high = (None, None) if change.difference is None else (change.difference.low, change.difference.high)
    return change.name, change.combinations, change.before, change.after, change.estimate, low, high, change.q
