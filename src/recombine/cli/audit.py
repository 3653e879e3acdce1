"""The command that audits a table: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import recombine as rc
from recombine.cli.audit_coverage_graph import CoverageGraphOptions, coverage_graph_command
from recombine.cli.options import JsonOption, split_names
from recombine.cli.output import check_file, check_folder, console, print_json, say_written, write_tables
from recombine.errors import BadInput
from recombine.progress import ProgressBar

SCORES_ALONE = CoverageGraphOptions()
"""By default an audit looks at scores, not at the coverage graph of facts."""


def audit(
    table: Path,
    *,
    factors: list[str] | None = None,
    roles: list[str] | None = None,
    sets: list[str] | None = None,
    score: list[str] | None = None,
    where: str | None = None,
    train: Path | None = None,
    split: str | None = None,
    activations: Path | None = None,
    key: str | None = None,
    report: Path | None = None,
    tables: Path | None = None,
    seed: int = 0,
    as_json: JsonOption = False,
    graph: CoverageGraphOptions = SCORES_ALONE,
) -> None:
    """Audit your own model by a table: does it recombine, which combinations fail and why, what to collect?

    Args:
        table: Scores by combination: CSV, TSV, Parquet, JSON Lines or Arrow.
        factors: The columns that make a combination: colour,object.
        roles: A factor in several columns that share values: object=object,object_2.
        sets: Columns that hold sets of values.
        score: The columns with scores: 0 and 1, or real numbers.
        where: Only rows for which this holds: "kind = 'colors'".
        train: A table of the combinations that the model was trained on.
        split: Or the column that says so: split=train.
        activations: safetensors or npz, an array a layer, a row for each row of the table.
        key: The column and the array by which activations and rows are matched.
        report: Also write a page: audit.html. Of scores: the coverage graph has none.
        tables: Also write tables (CSV) into this folder.
        seed: Of what is drawn: bootstraps, folds, plans.
    """
    if graph.asked():
        unused = {"factors": factors, "roles": roles, "sets": sets, "score": score, "train": train, "split": split}
        unused |= {"activations": activations, "key": key, "report": report}
        coverage_graph_command(table, graph, where=where, tables=tables, seed=seed, as_json=as_json, unused=unused)
        return
    names = {"factors": split_names(factors), "sets": split_names(sets), "scores": split_names(score)}
    columns = {**names, "roles": parse_roles(roles or ()), "split": parse_split(split), "where": where, "key": key}
    if key is not None and activations is None:
        raise BadInput("--key matches activations to rows.", fix="name them too: --activations FILE")
    if report is not None:
        check_file(report, example="audit.html")
    check_folder(tables)
    from recombine.audit.audit import audit_cells, read

    page, written = None, []
    with ProgressBar("reading the table") as on:
        cells, inside = read(table, activations=activations, progress=on, train=train, **columns)
        result = audit_cells(cells, inside, source=str(table), seed=seed, progress=on)
        if report is not None:
            from recombine.report import write_audit

            on("writing the report")
            page = str(write_audit(result, cells, report))
        if tables is not None:
            on("writing the tables")
            written = write_tables(rc.audit.audit_tables(result, cells), tables)
    if as_json:
        print_json(result.record() | {"report": page, "tables": written})
        return
    from recombine.cli.audit_summary import summary

    out = console()
    for line in summary(result, width=out.width):
        out.print(line, highlight=False, soft_wrap=True)
    say_written([*([] if page is None else [page]), *written])


def parse_roles(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Roles as name=column,column."""
    return dict(_named(text, "--roles", "the columns of a factor", "object=object,object_2") for text in given)


def parse_split(given: str | None) -> tuple[str, tuple[str, ...]] | None:
    """The column that says what was trained on, and the values that say so."""
    return (
        None if given is None else _named(given, "--split", "a column and the value that means trained", "split=train")
    )


def _named(text: str, option: str, what: str, example: str) -> tuple[str, tuple[str, ...]]:
    """A name and its values, written as name=value,value."""
    name, _, values = text.partition("=")
    if not name.strip() or not split_names([values]):
        raise BadInput(f"{option} {text!r} does not name {what}.", fix=f"write {option} {example}")
    return name.strip(), split_names([values])
