"""The progress bar: how far a long piece of work is, and the time left.

A terminal shows a bar, anything else a line now and then. Both go to standard error, so that they never mix with results.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from recombine import interrupts
from recombine.plain import plain

if TYPE_CHECKING:
    from rich.progress import Progress

StepCallback = Callable[[int, int | None], None]
"""Called with the number that is done and the number in all; None where this is unknown. `ProgressBar.update` is one."""


def no_progress(done: int, total: int | None) -> None:
    """The callback that does nothing."""


PATIENCE = 2.0
"""Work that takes fewer seconds shows nothing."""
LINE_SECONDS = 20.0
"""Seconds between two lines where there is no terminal. A new stage is shown at once."""


class ProgressBar:
    """The progress of one long piece of work, stage by stage.

    Example:
        ```python
        with ProgressBar("reading", unit="files") as bar:
            for number, file in enumerate(files):
                bar.update(number, len(files))
                ...
            bar("fitting")
        ```
    """

    def __init__(self, stage: str, *, unit: str = "", quiet: bool = False, patience: float | None = None) -> None:
        """Make a bar, shown from `__enter__` on.

        Args:
            stage: What is being done first.
            unit: What is counted; without it, progress is a percentage.
            quiet: Show nothing.
            patience: Seconds before anything is shown; `PATIENCE` by default.
        """
        self._stage, self._unit, self._note = stage, unit, ""
        self._done: float | None = None
        self._total: float | None = None
        self._quiet = quiet
        self._began = time.monotonic()
        self._next_line = 0.0
        self._bar: Progress | None = None
        self.left: Callable[[], float] | None = None
        """Gives the seconds that are left, where somebody knows better than the speed of this stage."""
        self._lock = threading.RLock()
        self._visible = False
        self._timer = threading.Timer(PATIENCE if patience is None else patience, self._appear)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._quiet:
            return self
        if self._timer.interval <= 0:
            self._visible = True
        else:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._quiet = True  # The timer may be about to show it.
            if self._bar is not None:
                self._bar.stop()

    def __call__(self, what: str, done: float | None = None) -> None:
        """Report the stage, and the share of it that is done (between 0 and 1) where this is known."""
        with self._lock:
            if what != self._stage:
                self._begin(what, "")
            self.update(done, None if done is None else 1.0)

    def start(self, stage: str, total: float | None = None, unit: str = "") -> None:
        """Begin a stage.

        Args:
            stage: What is being done from now on.
            total: How much there is to do.
            unit: What is counted; without it, progress is a percentage.
        """
        with self._lock:
            self._begin(stage, unit)
            self.update(None if total is None else 0, total)

    def _begin(self, stage: str, unit: str) -> None:
        self._stage, self._unit, self._note = stage, unit, ""
        self._began, self._next_line = time.monotonic(), 0.0
        if self._bar is not None:
            self._bar.reset(self._bar.task_ids[0], total=None)

    def update(self, done: float | None, total: float | None = None, note: str | None = None) -> None:
        """Report how much of the stage is done.

        Args:
            done: How much is done.
            total: How much there is to do, where this changed.
            note: A word on the latest state, such as scores.
        """
        interrupts.check()
        with self._lock:
            self._done = done
            if total is not None or done is None:
                self._total = total
            if note is not None:
                self._note = note
            self._show()

    def rename(self, stage: str) -> None:
        """Change the words of the stage; it goes on."""
        with self._lock:
            self._stage = stage
            self._show()

    def message(self, text: str) -> None:
        """Write a line that stays, above the bar."""
        with self._lock:
            if self._bar is not None:
                self._bar.console.print(plain(text), markup=False, highlight=False, soft_wrap=True)
            else:
                _write(text)

    def _appear(self) -> None:
        with self._lock:
            self._visible = True
            self._show()

    def _show(self) -> None:
        if self._quiet or not self._visible:
            return
        if sys.stderr.isatty():
            self._draw()
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            _write(self._line())

    def _line(self) -> str:
        """The state in words, for logs."""
        words = f"{self._stage} ..."
        if self._done and self._total:
            share = self._done / self._total
            speed = (time.monotonic() - self._began) * (1 - share) / share
            words += f" {self._count()}, {self._left_words(speed)}"
        elif self._unit and self._total:
            words += f" {self._total:,.0f} {self._unit}"
            words += "" if self.left is None else f", {self._left_words(0.0)}"
        return f"{words}; {self._note}" if self._note else words

    def _left_words(self, by_speed: float) -> str:
        return f"about {by_speed if self.left is None else self.left():.0f} s left"

    def _count(self) -> str:
        if not self._total or self._done is None:
            return ""
        if not self._unit:
            return f"{self._done / self._total:.0%}"
        return f"{self._done:,.0f} of {self._total:,.0f} {self._unit}"

    def _draw(self) -> None:
        stage = plain(self._stage)
        if self._bar is None:
            self._bar = _rich_bar(own_time=self.left is not None)
            self._bar.add_task(stage, total=None, count="", left="", note="")
            self._bar.start()
        self._bar.update(
            self._bar.task_ids[0],
            description=stage,
            completed=self._done or 0.0,
            total=self._total,
            count=self._count(),
            left="" if self.left is None else self._left_words(0.0),
            note=plain(self._note),
        )


def _rich_bar(*, own_time: bool) -> Progress:
    # Imported here: a library that shows no bar does not load rich.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[count]}", markup=False),
        TextColumn("{task.fields[left]}", markup=False) if own_time else TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", style="dim", markup=False),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _write(text: str) -> None:
    # A closed pipe or a full disk behind standard error must not end the work that is reported.
    with contextlib.suppress(OSError):
        sys.stderr.write("\n".join(plain(line) for line in text.split("\n")) + "\n")
        sys.stderr.flush()
