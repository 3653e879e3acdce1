"""What the commands print: tables and words for people, one JSON document for machines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from recombine.errors import RecombineError
from recombine.plain import plain

if TYPE_CHECKING:
    from recombine.store.store import Store

VERDICT_STYLE = {"supported": "green", "contradicted": "red", "equivalent": "blue", "inconclusive": "yellow"}


class Warnings(logging.Handler):
    """Warnings of the library (damaged runs, for example), one line each on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        message(f"warning: {record.getMessage()}", style="yellow")


class CheckFailed(RecombineError):
    """Something did not hold, and the JSON document that says so was printed already: there must be only one."""


def console() -> Console:
    """Standard output."""
    return Console(soft_wrap=False)


def errors() -> Console:
    """Standard error: progress, warnings and messages."""
    return Console(stderr=True)


def message(text: str, style: str | None = None) -> None:
    """A line on standard error: not wrapped, so that paths can be copied, and no signs in it mean anything.

    What a server, a model or a file says may be in it, so that what a terminal would obey is escaped.
    """
    text = "\n".join(plain(line) for line in text.split("\n"))
    errors().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document. Numbers that JSON cannot hold become null."""
    from recombine.store.files import finite

    sys.stdout.write(json.dumps(finite(value), indent=2, allow_nan=False, default=str) + "\n")


def answer(as_json: bool, document: Any, shown: str | Table) -> None:
    """Print a result: a JSON document, or what people are shown instead."""
    if as_json:
        print_json(document)
    else:
        say(shown)


def say(shown: str | Table, style: str | None = None, *, soft_wrap: bool = False) -> None:
    """Print a text as it stands, or a table, whose texts are escaped already."""
    plain_text = False if isinstance(shown, str) else None
    console().print(shown, style=style, highlight=plain_text, markup=plain_text, soft_wrap=soft_wrap)


def number(value: Any) -> str:
    """A number as people read it."""
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, left: int = 1) -> Table:
    """A table; all but the first `left` columns are set to the right. Names from data are escaped."""
    style: dict[str, Any] = {"title_justify": "left", "title_style": "bold", "box": SIMPLE_HEAD, "pad_edge": False}
    made = Table(title=escape(title), show_header=any(columns), padding=(0, 1), **style)
    for index, column in enumerate(columns):
        made.add_column(escape(column), justify="left" if index < left else "right", overflow="fold")
    for row in rows:
        made.add_row(*(escape(value if isinstance(value, str) else number(value)) for value in row))
    return made


def verdict_table(records: Sequence[dict[str, Any]]) -> Table:
    """One row a verdict: the word first, then the claim in words, then what it rests on."""
    made = Table(title="Verdicts", title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    made.add_column("verdict", no_wrap=True)
    made.add_column("claim", overflow="fold", ratio=1)
    made.add_column("effect [95 % interval]", justify="right", no_wrap=True)
    for record in records:
        word, style = record["verdict"], VERDICT_STYLE[record["verdict"]]
        role = "primary" if record["primary"] else record["role"] if record["role"] != "claim" else "secondary"
        low, high = record["interval"]
        text = f"[bold]{escape(record['claim'])}[/bold] [dim]({role})[/dim]\n{escape(record['statement'])}"
        if record["note"]:
            text += f"\n[dim]{escape(record['note'])}[/dim]"
        effect = escape(f"{number(record['effect'])} [{number(low)}, {number(high)}]")
        basis = f"{record['direction']} {record['margin']:g}, n = {record['replicates']}"
        made.add_row(f"[{style}]{word}[/{style}]", text, f"{effect}\n[dim]{basis}[/dim]", end_section=True)
    return made


def asked_rows(store: Store, kind: str | None = None) -> list[dict[str, Any]]:
    """The studies and sweeps that were asked of a store, and how far they are."""
    from recombine.store.requests import requests, standing

    rows = []
    for request in requests(store, kind):
        how = standing(store, request)
        row = {"name": request["name"], "kind": request["request"], "cells": len(request.get("cells", ()))}
        row |= {"runs": how.runs, "done": how.done, "failed": how.failed}
        row |= {"measured": how.measured, "measurements": how.measurements, "complete": how.complete}
        rows.append(row | {"time": request["time"]})
    return rows


def print_asked(rows: list[dict[str, Any]], nothing: str | None = None) -> None:
    """Print studies and sweeps, one line each."""
    if rows:
        lines = []
        for row in rows:
            done, measured = f"{row['done']} of {row['runs']}", f"{row['measured']} of {row['measurements']}"
            lines.append((row["name"], row["kind"], row["cells"] or "", done, row["failed"], measured, row["complete"]))
        columns = ["asked", "", "cells", "runs done", "failed", "measured", "complete"]
        console().print(table("studies and sweeps", columns, lines, left=2))
        if not all(row["complete"] for row in rows):
            say("`recombine resume` finishes what is not.")
    elif nothing is not None:
        say(nothing)
