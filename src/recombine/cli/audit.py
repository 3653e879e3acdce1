"""The command that audits a table: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine.cli.audit_coverage_graph import CoverageGraphOptions, coverage_graph_command
from recombine.cli.options import JsonOption, split_names
from recombine.cli.output import console, print_json, say
from recombine.cli.run import check_page
from recombine.cli.tables import check_folder, write_tables
from recombine.errors import BadInput
from recombine.progress import ProgressBar

if TYPE_CHECKING:
    from recombine.audit.cells import Cells
    from recombine.audit.findings import Audit


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
        check_page(report, "audit.html")
    check_folder(tables)
    from recombine.audit.audit import audit_cells, read

    with ProgressBar("reading the table") as on:
        cells, inside = read(table, activations=activations, progress=on, train=train, **columns)
        found = audit_cells(cells, inside, source=str(table), seed=seed, progress=on)
        files = _write(found, cells, report, tables, on)
    if as_json:
        print_json(found.record() | {"report": files.get("report"), "tables": files.get("tables", [])})
        return
    from recombine.cli.audit_summary import summary

    out = console()
    for line in summary(found, width=out.width):
        out.print(line, highlight=False, soft_wrap=True)
    for name in [files.get("report"), *files.get("tables", [])]:
        if name is not None:
            say(f"written: {name}", soft_wrap=True)


def parse_roles(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Roles as name=column,column."""
    found: dict[str, tuple[str, ...]] = {}
    for one in given:
        name, sign, columns = one.partition("=")
        if not sign or not name.strip() or not split_names([columns]):
            raise BadInput(
                f"--roles {one!r} does not name the columns of a factor.", fix="write --roles object=object,object_2"
            )
        found[name.strip()] = split_names([columns])
    return found


def parse_split(given: str | None) -> tuple[str, tuple[str, ...]] | None:
    """The column that says what was trained on, and the values that say so."""
    if given is None:
        return None
    column, sign, values = given.partition("=")
    if not sign or not column.strip() or not split_names([values]):
        raise BadInput(
            f"--split {given!r} does not name a column and the value that means trained.",
            fix="write --split split=train",
        )
    return column.strip(), split_names([values])


def _write(found: Audit, cells: Cells, report: Path | None, tables: Path | None, on: ProgressBar) -> dict[str, Any]:
    """Write the page and the tables that were asked for."""
    written: dict[str, Any] = {}
    if report is not None:
        from recombine.report.audit.page import write_audit

        on("writing the report")
        written["report"] = str(write_audit(found, cells, report))
    if tables is not None:
        from recombine.audit.tables import audit_tables

        on("writing the tables")
        written["tables"] = write_tables(audit_tables(found, cells), tables)
    return written
