"""How far one long piece of work is, once it takes its time: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from recombine.cli.output import errors, message
from recombine.plain import plain

PATIENCE = 2.0
"""What takes longer than so many seconds is told on standard error."""
LINE_SECONDS = 20.0
"""Where there is no terminal, how far a stage is gets written so often."""


class Waiting:
    """Is told the stage of the work, and how much of the stage is done."""

    def __init__(self, stage: str, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._stage = stage
        self._share: float | None = None
        self._stage_began = self._due = time.monotonic()
        self._bar: Progress | None = None
        self._lock = threading.Lock()
        self._slow = False
        self._timer = threading.Timer(PATIENCE, self._wake)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if not self._quiet:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._quiet = True  # The timer may be about to speak.
            if self._bar is not None:
                self._bar.stop()

    def __call__(self, what: str, done: float | None = None) -> None:
        """The work is at `what`, of which a share is done (between 0 and 1), if that is known."""
        with self._lock:
            if what != self._stage:
                self._stage, self._stage_began, self._due = what, time.monotonic(), 0.0
            self._share = done
            if self._slow and not self._quiet:
                self._tell()

    def _wake(self) -> None:
        with self._lock:
            self._slow = True
            if not self._quiet:
                self._tell()

    def _tell(self) -> None:
        stage, share = plain(self._stage), self._share
        if errors().is_terminal:
            self._draw(stage, share)
            return
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + LINE_SECONDS
        left = ""
        if share:
            spent = now - self._stage_began
            left = f" {share:.0%}, about {spent * (1 - share) / share:.0f} s left"
        message(f"{stage} ...{left}")

    def _draw(self, stage: str, share: float | None) -> None:
        if self._bar is None:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=30),
                TaskProgressColumn(),
                TimeRemainingColumn(compact=True),
                console=errors(),
                transient=True,
            )
            self._bar.start()
        tasks = self._bar.tasks
        if not tasks or tasks[0].description != stage:
            for task in tasks:
                self._bar.remove_task(task.id)
            self._bar.add_task(stage, total=None)
        self._bar.update(self._bar.task_ids[0], completed=share or 0.0, total=None if share is None else 1.0)
