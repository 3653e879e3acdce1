"""What the commands print: tables and words for people, one JSON document for machines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from recombine.errors import RecombineError
from recombine.plain import plain

VERDICT_STYLE = {"supported": "green", "contradicted": "red", "equivalent": "blue", "inconclusive": "yellow"}


class Warnings(logging.Handler):
    """What the library warns of (damaged runs, for one), a line each on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        message(f"warning: {record.getMessage()}", style="yellow")


class Told(RecombineError):
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
    headed = any(columns)
    made = Table(
        title=escape(title),
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_header=headed,
        padding=(0, 1),
        pad_edge=False,
    )
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
        role = (
            "primary" if record["primary"] else record["role"] if record["role"] != "claim" else "secondary"
        )
        low, high = record["interval"]
        text = f"[bold]{escape(record['claim'])}[/bold] [dim]({role})[/dim]\n{escape(record['statement'])}"
        if record["note"]:
            text += f"\n[dim]{escape(record['note'])}[/dim]"
        effect = escape(f"{number(record['effect'])} [{number(low)}, {number(high)}]")
        basis = f"{record['direction']} {record['margin']:g}, n = {record['replicates']}"
        made.add_row(f"[{style}]{word}[/{style}]", text, f"{effect}\n[dim]{basis}[/dim]", end_section=True)
    return made
