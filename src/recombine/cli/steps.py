"""A bar for what takes its time beside training: copying, packing, deleting. On standard error."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from recombine.cli.output import errors
from recombine.store.removal import Step, silent


@contextlib.contextmanager
def steps(what: str, *, quiet: bool = False) -> Iterator[Step]:
    """A function that is told how many of how many are done. Silent where there is no terminal."""
    console = errors()
    if quiet or not console.is_terminal:
        yield silent
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
