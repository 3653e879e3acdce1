"""What the commands print and write: tables and words for people, one JSON document and files for machines."""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import recombine as rc
from recombine.errors import BadInput, RecombineError
from recombine.plain import plain
from recombine.progress import ProgressBar
from recombine.store.files import explained, finite, replacing

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table
    from rich.tree import Tree

ANSWER_STYLE = {
    "holds": "green",
    "does not hold": "red",
    "too small to matter": "blue",
    "depends on the scale": "magenta",
}
TABLE_ENDINGS = (".csv", ".parquet", ".jsonl")


class Warnings(logging.Handler):
    """Warnings of the library (damaged runs, for example), one line each on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        message(f"warning: {record.getMessage()}", style="yellow")


class CheckFailed(RecombineError):
    """Something did not hold, and the JSON document that says so was printed already: there must be only one."""


def check_problems(store: rc.Store) -> None:
    """End with exit code 1 if something in the store could not be read, although the rest was shown."""
    if store.problems:
        fix = f"recombine doctor --store {store.path}"
        raise CheckFailed(f"{len(store.problems)} problems in the store: what was shown is not all.", fix=fix)


def console() -> Console:
    """Standard output."""
    from rich.console import Console  # Where it is used: documents, CSV and errors of arguments do without.

    return Console(soft_wrap=False)


def errors() -> Console:
    """Standard error: progress, warnings and messages."""
    from rich.console import Console

    return Console(stderr=True)


def message(text: str, style: str | None = None) -> None:
    """A line on standard error: not wrapped, so that paths can be copied, and no signs in it mean anything.

    What a server, a model or a file says may be in it, so that what a terminal would obey is escaped.
    """
    text = "\n".join(plain(line) for line in text.split("\n"))
    errors().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def json_text(value: Any, indent: int = 2) -> str:
    """A value as JSON. Numbers that JSON cannot hold become null."""
    return json.dumps(finite(value), indent=indent, allow_nan=False, default=str)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json_text(value) + "\n")


def answer(as_json: bool, document: Any, shown: str | Table) -> None:
    """Print a result: a JSON document, or what people are shown instead."""
    if as_json:
        print_json(document)
    else:
        say(shown)


def say(shown: str | Table | Tree, style: str | None = None, *, soft_wrap: bool = False) -> None:
    """Print a text as it stands, or a table or tree, whose texts are escaped already."""
    plain_text = False if isinstance(shown, str) else None
    console().print(shown, style=style, highlight=plain_text, markup=plain_text, soft_wrap=soft_wrap)


def say_line(text: str, style: str | None = None) -> None:
    """Print a text with names from data: it is not wrapped, and what a terminal would obey is escaped."""
    say(plain(text), style, soft_wrap=True)


def say_written(names: Iterable[str]) -> None:
    """Print the names of the files that a command wrote."""
    for name in names:
        say_line(f"written: {name}")


def number(value: Any) -> str:
    """A number as people read it."""
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def interval_text(interval: rc.stats.Interval | None, *, sign: bool = False) -> str:
    """An estimate with its interval."""
    if interval is None:
        return "-"
    form = "+.2f" if sign else ".2f"
    low, high = (format(end, ".2f") for end in (interval.low, interval.high))
    return f"{format(interval.estimate, form)} [{low}, {high}]"


def mean_text(mean: float | None, low: float | None, high: float | None) -> str:
    """A mean with its interval, if there is one."""
    return number(mean) if low is None or high is None else f"{number(mean)} [{number(low)}, {number(high)}]"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, left: int = 1) -> Table:
    """A table; all but the first `left` columns are set to the right. Names from data are escaped."""
    made = _table(title=_cell(title), show_header=any(columns), padding=(0, 1))
    for index, column in enumerate(columns):
        made.add_column(_cell(column), justify="left" if index < left else "right", overflow="fold")
    for row in rows:
        made.add_row(*(_cell(value if isinstance(value, str) else number(value)) for value in row))
    return made


def _table(**settings: Any) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, **settings)


def _cell(text: str) -> str:
    """A text from data: nothing in it is markup, and what a terminal would obey is escaped."""
    from rich.markup import escape

    return escape("\n".join(plain(line) for line in text.split("\n")))


def effect_text(record: Mapping[str, Any], between: str = "; ") -> str:
    """The effect of a verdict with its interval, on each scale where there are several."""
    texts = []
    for scale in record.get("scales") or [record]:
        low, high = scale["interval"]
        name = f"{scale['scale']} " if "scale" in scale else ""
        texts.append(f"{name}{number(scale['effect'])} [{number(low)}, {number(high)}]")
    return between.join(texts)


def margin_text(record: Mapping[str, Any]) -> str:
    """The direction and the margin of a verdict, on each scale where there are several."""
    margins = [f"{scale['margin']:.2g}" for scale in record.get("scales") or [record]]
    return f"{record['direction']} {', '.join(margins)}"


def verdict_table(records: Sequence[dict[str, Any]]) -> Table:
    """One row per claim: whether it holds, the claim in words, then what the answer rests on."""
    made = _table(title="Verdicts")
    made.add_column("does it hold?", overflow="fold", max_width=11)
    made.add_column("claim", overflow="fold", ratio=1)
    made.add_column("effect [95 % interval]", justify="right", no_wrap=True)
    for record in records:
        style = ANSWER_STYLE.get(record["answer"], "yellow")
        role = "primary" if record["primary"] else record["role"] if record["role"] != "claim" else "secondary"
        text = f"[bold]{_cell(record['claim'])}[/bold] [dim]({_cell(role)})[/dim]\n{_cell(record['statement'])}"
        if record["note"]:
            text += f"\n[dim]{_cell(record['note'])}[/dim]"
        effect = _cell(effect_text(record, "\n"))
        basis = _cell(f"{margin_text(record)}, n = {record['replicates']}")
        made.add_row(
            f"[{style}]{_cell(record['answer'])}[/{style}]", text, f"{effect}\n[dim]{basis}[/dim]", end_section=True
        )
    return made


def looked(store: rc.Store, as_json: bool) -> rc.store.Index:
    """The index of a store after a look at what is new; reading many new runs shows progress."""
    with ProgressBar("reading new runs", unit="runs", quiet=as_json) as bar:
        store.index.refresh(bar.update)
    return store.index


def asked_rows(store: rc.Store, kind: str | None = None, *, indexed: bool = False) -> list[dict[str, Any]]:
    """The studies and sweeps that were asked of a store, and how far they are; by the index as of its last look, if `indexed`."""
    from recombine.store.requests import requests, standing

    rows = []
    for request in requests(store, kind):
        how = standing(store, request, indexed=indexed)
        row = {"name": request["name"], "kind": request["request"], "cells": len(request.get("cells", ()))}
        rows.append(row | dataclasses.asdict(how) | {"complete": how.complete, "time": request["time"]})
    return rows


def print_asked(rows: list[dict[str, Any]]) -> None:
    """Print studies and sweeps, one line each."""
    lines = []
    for row in rows:
        done, measured = f"{row['done']} of {row['runs']}", f"{row['measured']} of {row['measurements']}"
        lines.append((row["name"], row["kind"], row["cells"] or "", done, row["failed"], measured, row["complete"]))
    columns = ["asked", "", "cells", "runs done", "failed", "measured", "complete"]
    if rows:
        say(table("studies and sweeps", columns, lines, left=2))
    if not all(row["complete"] for row in rows):
        say("`recombine resume` finishes what is not.")


# Files


def check_file(path: Path, what: str = "report", example: str = "report.html") -> None:
    """Raise BadInput if a file cannot be written there, before anything is computed."""
    if path.is_dir():
        raise BadInput(f"The {what} {path} is a folder.", fix=f"name a file, e.g. {example}")
    if not path.parent.is_dir():
        raise BadInput(f"The folder {path.parent} of the {what} does not exist.", fix="make it first")


def check_table(path: Path | None) -> None:
    """The same for a table, whose ending says its form; None for no table."""
    if path is None:
        return
    if path.suffix.lower() not in TABLE_ENDINGS:
        raise BadInput(f"{path} is not the name of a table.", fix=f"end it in {', '.join(TABLE_ENDINGS)}")
    check_file(path, "table", "runs.csv")


def check_folder(path: Path | None) -> None:
    """BadInput, before anything is computed, if tables cannot be written there."""
    if path is not None and path.exists() and not path.is_dir():
        raise BadInput(f"{path} is a file.", fix="name a folder for the tables")


def write_tables(frames: Mapping[str, pd.DataFrame], folder: Path) -> list[str]:
    """Write frames as CSV files into a folder, and return their names."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return [str(write_table(without_formulas(frame), folder / f"{name}.csv")) for name, frame in frames.items()]


def without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Texts that a spreadsheet would run, such as =HYPERLINK(...), with an apostrophe before them. Numbers stay."""
    made = frame.rename(columns=_no_formula)
    for name in made.columns:
        if made[name].dtype == object or str(made[name].dtype) in ("str", "string", "category"):
            made[name] = made[name].astype(object).map(_no_formula, na_action="ignore")
    return made


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet takes for a formula."""


def _no_formula(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def write_table(frame: pd.DataFrame, path: Path) -> Path:
    """Write a frame, whole or not at all, in the form that the file's name asks for."""
    with explained(path), replacing(path) as part:
        if path.suffix.lower() == ".csv":
            frame.to_csv(part, index=False)
        elif path.suffix.lower() == ".parquet":
            _of_one_type(frame).to_parquet(part, index=False)
        else:
            rows = finite(frame.to_dict("records"))
            part.write_text("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows), encoding="utf-8")
    return path


def _of_one_type(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns in which numbers and words meet, as words: a Parquet column has one type."""
    made = frame.copy()
    for name in made.columns:
        if made[name].dtype == object:
            values = made[name].dropna()
            if len({type(value) for value in values}) > 1 or any(isinstance(value, dict) for value in values):
                made[name] = made[name].map(str, na_action="ignore")
    return made
