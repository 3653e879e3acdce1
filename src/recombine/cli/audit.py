"""The command that audits a table: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine.cli.audit_coverage_graph import CoverageGraphOptions, coverage_graph_command
from recombine.cli.output import console, print_json
from recombine.cli.waiting import Waiting
from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.audit.cells import Cells
    from recombine.audit.findings import Audit


def audit_command(
    source: Path,
    *,
    factors: Sequence[str] = (),
    roles: Sequence[str] = (),
    sets: Sequence[str] = (),
    scores: Sequence[str] = (),
    where: str | None = None,
    train: Path | None = None,
    split: str | None = None,
    activations: Path | None = None,
    key: str | None = None,
    report: Path | None = None,
    tables: Path | None = None,
    seed: int = 0,
    graph: CoverageGraphOptions | None = None,
    as_json: bool = False,
) -> None:
    """Audit a table, and print, write or draw what it says."""
    if graph is not None and graph.asked():
        unused = {
            "factors": factors,
            "roles": roles,
            "sets": sets,
            "score": scores,
            "train": train,
            "split": split,
        }
        unused |= {"activations": activations, "key": key, "report": report}
        coverage_graph_command(
            source, graph, where=where, tables=tables, seed=seed, as_json=as_json, unused=unused
        )
        return
    asked: dict[str, Any] = {
        "factors": split_names(factors),
        "roles": parse_roles(roles),
        "sets": split_names(sets),
        "scores": split_names(scores),
        "split": parse_split(split),
        "where": where,
        "train": train,
        "key": key,
    }
    if key is not None and activations is None:
        raise BadInput("--key matches activations to rows.", fix="name them too: --activations FILE")
    _check_places(report, tables)
    from recombine.audit.audit import audit_cells, read

    with Waiting("reading the table") as on:
        cells, inside = read(source, activations=activations, on=on, **asked)
        found = audit_cells(cells, inside, source=str(source), seed=seed, on=on)
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
            out.print(f"written: {name}", markup=False, highlight=False, soft_wrap=True)


def split_names(given: Sequence[str]) -> tuple[str, ...]:
    """Names apart by commas, in one argument or several."""
    return tuple(name.strip() for one in given for name in one.split(",") if name.strip())


def parse_roles(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Roles as name=column,column."""
    found: dict[str, tuple[str, ...]] = {}
    for one in given:
        name, sign, columns = one.partition("=")
        if not sign or not name.strip() or not split_names([columns]):
            raise BadInput(
                f"--roles {one!r} does not name the columns of a factor.",
                fix="write --roles object=object,object_2",
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


def _check_places(report: Path | None, tables: Path | None) -> None:
    """BadInput, before anything is computed, if the results cannot be written."""
    if report is not None and report.is_dir():
        raise BadInput(f"The report {report} is a folder.", fix="name a file, e.g. audit.html")
    if report is not None and not report.parent.exists():
        raise BadInput(f"The folder {report.parent} of the report does not exist.", fix="make it first")
    if tables is not None and tables.exists() and not tables.is_dir():
        raise BadInput(f"{tables} is a file.", fix="name a folder for the tables")


def _write(
    found: Audit, cells: Cells, report: Path | None, tables: Path | None, on: Waiting
) -> dict[str, Any]:
    """Write the page and the tables that were asked for."""
    written: dict[str, Any] = {}
    if report is not None:
        from recombine.report.audit import write_audit

        on("writing the report")
        written["report"] = str(write_audit(found, cells, report))
    if tables is not None:
        from recombine.audit.tables import audit_tables
        from recombine.cli.tables import write_table
        from recombine.store.files import explained

        on("writing the tables")
        with explained(tables):
            tables.mkdir(parents=True, exist_ok=True)
        made = audit_tables(found, cells)
        written["tables"] = [str(write_table(frame, tables / f"{name}.csv")) for name, frame in made.items()]
    return written
