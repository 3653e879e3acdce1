"""The command that compares two audits, combination by combination."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recombine.cli.audit import parse_roles, parse_split
from recombine.cli.audit_scores import PLAIN_SCORES, ScoreOptions
from recombine.cli.options import JsonOption, split_names
from recombine.cli.output import check_file, print_json, say, say_line, say_written, table
from recombine.progress import ProgressBar

if TYPE_CHECKING:
    from rich.table import Table

    from recombine.audit.comparison.findings import ChangedCombination, Comparison, ScoreComparison

SHOWN = 8
"""How many combinations and values are shown in a terminal; --json has all."""
LONGEST = 60
"""The most characters of a name from data."""


def compare(
    old: Path,
    new: Path,
    *,
    factors: list[str] | None = None,
    roles: list[str] | None = None,
    sets: list[str] | None = None,
    score: list[str] | None = None,
    where: str | None = None,
    train: Path | None = None,
    split: str | None = None,
    solved_at: float | None = None,
    report: Path | None = None,
    as_json: JsonOption = False,
    scoring: ScoreOptions = PLAIN_SCORES,
) -> None:
    """Compare two models, or one before and after: what was gained, what was lost, and where.

    Args:
        old: The old scores: a table, or what `recombine audit --json` printed.
        new: The new scores.
        factors: The columns that make a combination: colour,object. Not needed for JSON documents.
        roles: A factor in several columns that share values: object=object,object_2.
        sets: Columns that hold sets of values.
        score: The columns with scores.
        where: Only rows for which this holds: "kind = 'colors'".
        train: A table of the combinations that the model was trained on.
        split: Or the column that says so: split=train.
        solved_at: From this mean score on, a combination counts as solved; by default .5 for scores of 0 and 1.
        report: Also write a page: compare.html.
    """
    from recombine.audit.comparison.compare import compare_tables

    if report is not None:
        check_file(report, example="compare.html")
    names = {"factors": split_names(factors), "sets": split_names(sets), "scores": split_names(score)}
    columns = {**names, "roles": parse_roles(roles or ()), "split": parse_split(split), "where": where, "train": train}
    columns |= scoring.columns()
    page = None
    with ProgressBar("reading the tables") as on:
        comparison = compare_tables(old, new, solved_at=solved_at, **columns)
        if report is not None:
            from recombine.report import write_comparison

            on("writing the report")
            page = str(write_comparison(comparison, report))
    if as_json:
        print_json(comparison.record() | {"report": page})
        return
    _say(comparison)
    say_written([] if page is None else [page])


def _say(comparison: Comparison) -> None:
    from recombine.audit.comparison.findings import CHANGE_COLUMNS, change_row

    both = f"{comparison.shared:,} combinations scored in both"
    only = f"{comparison.only_old:,} only in the old, {comparison.only_new:,} only in the new"
    say_line(f"{comparison.old} to {comparison.new}: {both}; {only}", "bold")
    for note in comparison.notes:
        say_line(f"  {note}", "dim")
    for score in comparison.scores:
        say_line("")
        say_line(score.sentence)
        say_line("")
        _say_flips(score)
        strata = [change_row(change) for change in (score.overall, *score.strata)]
        say(table("By coverage of the old training data", CHANGE_COLUMNS, strata))
        ends = [change for change in score.values if change.q is not None and change.q <= 0.1]
        ends = ends if len(ends) <= SHOWN else [*ends[: SHOWN // 2], *ends[-SHOWN // 2 :]]
        if ends:
            rows = [change_row(change) for change in ends]
            say(table("Values that changed (false discovery rate .1)", CHANGE_COLUMNS, rows))


def _say_flips(score: ScoreComparison) -> None:
    if score.solved_at is None:
        if score.drops:
            say(_combinations("Largest losses", score.drops[:SHOWN]))
        return
    for title, each in (("Lost", score.lost), ("Gained", score.gained)):
        if each:
            some = "" if len(each) <= SHOWN else f", {SHOWN} of {len(each):,}"
            say(_combinations(f"{title} (solved means a mean of at least {score.solved_at:g}){some}", each[:SHOWN]))
    if score.flips_p is not None:
        say_line(f"As many lost as gained? Sign test p = {score.flips_p:.3f}.")
        say_line("")


def _combinations(title: str, each: tuple[ChangedCombination, ...]) -> Table:
    from recombine._show import shorten
    from recombine.plain import plain

    rows = [
        (
            shorten(plain(one.name), LONGEST),
            f"{one.before:.2f}",
            f"{one.after:.2f}",
            f"{one.rows_before:,}",
            f"{one.rows_after:,}",
        )
        for one in each
    ]
    return table(title, ["combination", "before", "after", "rows before", "rows after"], rows)
