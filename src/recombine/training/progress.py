"""What training and sweeps report as they go: callbacks, and their display as a progress bar."""

from __future__ import annotations

from typing import Any

from recombine.progress import ProgressBar
from recombine.training.config import RunConfig
from recombine.training.outcome import Outcome


class Progress:
    """Callbacks of training and of sweeps. Subclasses override what they need; these do nothing."""

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

    def __enter__(self) -> ProgressDisplay:
        self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def started(self, runs: int, steps: int) -> None:
        self._runs, self._ended, self._done, self._total = runs, 0, 0, steps
        self._measuring = False
        if runs:
            self._bar.start(f"training {runs} runs", steps, "steps")

    def compiling(self, config: RunConfig) -> None:
        self._bar.update(self._done, self._total, "preparing and compiling")

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        self._done += steps
        scores = f"in {evaluation['score_in']:.3f}  held out {evaluation['score_held_out']:.3f}"
        self._bar.update(self._done, self._total, scores)

    def finished(self, outcome: Outcome) -> None:
        self._ended += 1
        if outcome.failed_at is not None:
            name = outcome.config.run_id
            self._bar.message(f"run {name} failed: its loss was not finite at step {outcome.failed_at}")
        # A run that reached its target leaves steps that will not be made.
        self._total -= outcome.config.recipe.steps - outcome.steps
        self._bar.rename(f"training {self._ended}/{self._runs} runs")
        self._bar.update(self._done, self._total)

    def measuring(self, done: int, total: int) -> None:
        if not self._measuring:
            self._measuring = True
            self._bar.start("measuring", total, "measurements")
        self._bar.update(done, total)
