"""What training and sweeps report as they go: callbacks, and their display as a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from recombine.progress import ProgressBar
from recombine.training.config import RunConfig
from recombine.training.estimate import Estimate
from recombine.training.outcome import Outcome


class Progress:
    """Callbacks of training and of sweeps. Subclasses override what they need; these do nothing."""

    def expecting(self, estimate: Callable[[], Estimate]) -> None:
        """Called first, with a function that estimates the time of all that follows. It may take a second."""

    def started(self, runs: int, steps: int) -> None:
        """Called before training, with the number of runs and of steps over all runs."""

    def compiling(self, config: RunConfig) -> None:
        """Called before a run's program is compiled."""

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        """Called after each evaluation of a run, with the steps made since the last one."""

    def finished(self, outcome: Outcome) -> None:
        """Called when a run ended."""

    def measuring(self, done: int, total: int) -> None:
        """Called before each measurement of a sweep and after the last, with the number that is done."""


class ProgressDisplay(Progress):
    """Shows training and then measurements as one progress bar on standard error. Use it in a `with` block."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._bar = ProgressBar("preparing", quiet=quiet, patience=0.0)
        self._runs = self._ended = self._done = self._total = 0
        self._measuring = False
        self._quiet = quiet
        self._clock: _Clock | None = None

    def __enter__(self) -> ProgressDisplay:
        self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def expecting(self, estimate: Callable[[], Estimate]) -> None:
        if not self._quiet:
            self._clock = _Clock(estimate())
            self._bar.left = self._clock.left

    def started(self, runs: int, steps: int) -> None:
        self._runs, self._ended, self._done, self._total = runs, 0, 0, steps
        self._measuring = False
        if runs:
            self._bar.start(f"training {runs} runs", steps, "steps")

    def compiling(self, config: RunConfig) -> None:
        self._bar.update(self._done, self._total, "preparing and compiling")

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        self._done += steps
        if self._clock is not None:
            self._clock.stepped(config.run_id, steps)
        scores = f"in {evaluation['score_in']:.3f}  held out {evaluation['score_held_out']:.3f}"
        self._bar.update(self._done, self._total, scores)

    def finished(self, outcome: Outcome) -> None:
        self._ended += 1
        if outcome.failed_at is not None:
            name = outcome.config.run_id
            self._bar.message(f"run {name} failed: its loss was not finite at step {outcome.failed_at}")
        if self._clock is not None:
            self._clock.left_out(outcome.config.run_id, outcome.config.recipe.steps - outcome.steps)
        # A run that reached its target leaves steps that will not be made.
        self._total -= outcome.config.recipe.steps - outcome.steps
        self._bar.rename(f"training {self._ended}/{self._runs} runs")
        self._bar.update(self._done, self._total)

    def measuring(self, done: int, total: int) -> None:
        if not self._measuring:
            self._measuring = True
            self._bar.start("measuring", total, "measurements")
        if self._clock is not None:
            self._clock.measured(done, total)
        self._bar.update(done, total)


class _Clock:
    """The time left of a sweep: what the estimate says of the rest, times how wrong it was so far."""

    TRUST = 0.1
    """The share of the whole for which the estimate counts as if it had been right."""

    def __init__(self, expected: Estimate) -> None:
        self._began = time.monotonic()
        self._starts, self._steps = dict(expected.starts), expected.steps
        self._whole, self._measuring = expected.seconds, expected.measuring
        self._trained = self._measured = 0.0
        """The estimated seconds of what is done."""

    def stepped(self, run_id: str, steps: int) -> None:
        """Steps of a run were made; its preparation is over."""
        self._trained += self._starts.pop(run_id, 0.0) + steps * self._steps.get(run_id, 0.0)

    def left_out(self, run_id: str, steps: int) -> None:
        """Steps of a run will not be made."""
        self._whole -= steps * self._steps.get(run_id, 0.0)

    def measured(self, done: int, total: int) -> None:
        """Measurements were made."""
        self._measured = self._measuring * done / max(1, total)

    def left(self) -> float:
        """The seconds that are left."""
        done, trust = self._trained + self._measured, self.TRUST * self._whole
        wrong = (time.monotonic() - self._began + trust) / max(1e-9, done + trust)
        return max(0.0, self._whole - done) * wrong
