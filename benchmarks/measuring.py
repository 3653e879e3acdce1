"""How the benchmarks measure, and the table that they fill."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

ROWS: list[tuple[str, str, str]] = []


def row(what: str, value: str, note: str = "") -> None:
    """One line of the table."""
    ROWS.append((what, value, note))
    Console(stderr=True).print(f"  {what}: {value}  {note}", highlight=False, markup=False)


def seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """The median time of a call, after one that warms up."""
    return side_by_side([call], repeats)[0]


def side_by_side(calls: Sequence[Callable[[], Any]], repeats: int = 5) -> list[float]:
    """The median time of each call, after one that warms up. They take turns, so that what else the machine does hits all
    of them alike."""
    for call in calls:
        jax.block_until_ready(call())
    times = np.empty((repeats, len(calls)))
    for turn in range(repeats):
        for index, call in enumerate(calls):
            begin = time.perf_counter()
            jax.block_until_ready(call())
            times[turn, index] = time.perf_counter() - begin
    return np.median(times, axis=0).tolist()


def print_table(facts: dict[str, Any]) -> None:
    """What was measured, and on what."""
    table = Table(title="recombine bench: ratios from one run", title_justify="left")
    for column in ("what", "ratio", "for orientation"):
        table.add_column(column)
    for line in ROWS:
        table.add_row(*line)
    out = Console()
    out.print(table)
    out.print(", ".join(f"{name} {value}" for name, value in facts.items()), highlight=False)
