"""Progress in the terminal, with the time left. On standard error, so that it never mixes with results."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from recombine.cli.output import errors
from recombine.engines.base import SweepProgress
from recombine.training.config import RunConfig
from recombine.training.train import Outcome

LINE_SECONDS = 20.0
"""Where there is no terminal, a line of progress is written so often."""


class TerminalProgress(SweepProgress):
    """A bar over the steps of all runs, then one over the measurements."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = errors()
        self._quiet = quiet
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("[dim]{task.fields[look]}"),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._training: TaskID | None = None
        self._measuring: TaskID | None = None
        self._said = time.monotonic()
        self._begin = 0.0
        self._total = self._done = self._runs = self._ended = 0

    def __enter__(self) -> Self:
        if not self._bars.disable:  # Some versions of rich write an empty line all the same.
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._bars.disable:
            self._bars.stop()

    def _say(self, text: str, *, always: bool = False) -> None:
        """A line for logs, now and then."""
        due = always or time.monotonic() - self._said > LINE_SECONDS
        if due and not self._quiet and not self._console.is_terminal:
            self._console.print(text, highlight=False, markup=False)
            self._said = time.monotonic()

    def started(self, runs: int, steps: int) -> None:
        self._total, self._runs, self._begin = steps, runs, time.monotonic()
        if runs:
            self._training = self._bars.add_task(f"training {runs} runs", total=steps, unit="steps", look="")
            self._say(f"training {runs} runs, {steps} steps in all", always=True)

    def compiling(self, config: RunConfig) -> None:
        if self._training is not None:
            self._bars.update(self._training, look="preparing and compiling")

    def stepped(self, steps: int, config: RunConfig, look: dict[str, float]) -> None:
        self._done += steps
        shown = f"in {look['score_in']:.3f}  held out {look['score_held_out']:.3f}"
        if self._training is not None:
            self._bars.update(self._training, completed=self._done, look=shown)
        left = (time.monotonic() - self._begin) * (self._total - self._done) / max(1, self._done)
        self._say(f"  {self._done} of {self._total} steps, about {left:.0f} s left; {shown}")

    def finished(self, outcome: Outcome) -> None:
        self._ended += 1
        if outcome.failed_at is not None:
            name = outcome.config.run_id
            self._console.print(f"run {name} failed: its loss was not finite at step {outcome.failed_at}")
        if self._training is not None:
            # A run that stopped at its target leaves steps that will not be made.
            self._total -= outcome.config.recipe.steps - outcome.steps
            self._bars.update(self._training, total=self._total)
            self._bars.update(self._training, description=f"training {self._ended}/{self._runs} runs")

    def measuring(self, done: int, total: int) -> None:
        if self._measuring is None:
            self._measuring = self._bars.add_task("measuring", total=total, unit="measurements", look="")
            self._say(f"making {total} measurements", always=True)
        self._bars.update(self._measuring, completed=done)
        self._say(f"  {done} of {total} measurements")
