"""Progress across processes: a worker writes events, and the sweep's process reads them."""

from __future__ import annotations

import time

from recombine.engines.worker import Event, Send
from recombine.models.base import Network
from recombine.store.store import Store
from recombine.training import Outcome, Progress, RunConfig

OUTCOME_FIELDS = ("steps", "seconds", "compile_seconds", "reached", "failed_at", "stack_size")
"""The fields of an outcome that an event carries."""


class EventWriter(Progress):
    """The worker's side: turns progress into events, at most one report of steps per interval."""

    def __init__(self, send: Send, interval: float) -> None:
        self._send, self._interval = send, interval
        self._last_report = 0.0
        self._evaluations: dict[str, dict[str, float]] = {}

    def compiling(self, config: RunConfig) -> None:
        self._send({"event": "compiling", "run": config.run_id})

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        self._evaluations[config.run_id] = evaluation
        if time.monotonic() - self._last_report > self._interval:
            self._flush()

    def _flush(self) -> None:
        if self._evaluations:
            self._send({"event": "stepped", "evaluations": self._evaluations})
        self._evaluations, self._last_report = {}, time.monotonic()

    def finished(self, outcome: Outcome) -> None:
        self._flush()
        fields = {name: getattr(outcome, name) for name in OUTCOME_FIELDS}
        self._send({"event": "finished", "run": outcome.config.run_id, **fields})

    def measuring(self, done: int, total: int) -> None:
        self._send({"event": "measuring", "done": done, "total": total})


class RemoteOutcome(Outcome):
    """A run that ended in another process. Its network and curves are read from the store."""

    def __init__(self, store: Store, config: RunConfig, fields: Event) -> None:
        # An outcome is frozen, so its fields are set all at once.
        vars(self).update({name: fields[name] for name in OUTCOME_FIELDS}, config=config, _store=store)

    @property
    def network(self) -> Network:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._store.load(self.config).network  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def curves(self) -> list[dict[str, float]]:  # pyright: ignore[reportIncompatibleVariableOverride]
        frame = self._store.curves_df([self.config.run_id])  # pyright: ignore[reportAttributeAccessIssue]
        return frame.drop(columns="run").to_dict("records")


class EventReader:
    """The sweep's side: turns the events of all workers into the progress of one sweep.

    Lost work is done again, from a checkpoint or from the start. Repeated steps are not counted.
    """

    def __init__(
        self, store: Store, configs: dict[str, RunConfig], progress: Progress, *, total: int, each: int
    ) -> None:
        """`total` measurements are missing; each run that is not trained yet lacks `each`."""
        self._store, self._configs, self._progress = store, configs, progress
        self._steps: dict[str, int] = {}
        self._ended: set[str] = set()
        self._total, self._each = total, each
        self._measured: dict[int, int] = {}

    def report(self, unit: int, event: Event) -> None:
        """Report an event of a unit's worker."""
        kind = event["event"]
        if kind == "compiling":
            self._progress.compiling(self._configs[event["run"]])
        elif kind == "stepped":
            for run_id, evaluation in event["evaluations"].items():
                new_steps = int(evaluation["step"]) - self._steps.get(run_id, 0)
                if new_steps > 0:
                    self._steps[run_id] = int(evaluation["step"])
                    self._progress.stepped(new_steps, self._configs[run_id], evaluation)
        elif kind == "finished" and event["run"] not in self._ended:
            self._ended.add(event["run"])
            if event["failed_at"] is not None:
                self._total -= self._each  # It will not be measured.
                if self._measured:
                    self._report_measured()
            self._progress.finished(RemoteOutcome(self._store, self._configs[event["run"]], event))
        elif kind == "measuring":
            self._measured[unit] = event["done"]
            self._report_measured()

    def done(self, unit: int, measured: int) -> None:
        """Note that a unit is done. Its last events may have been overtaken by its result, or lost with a node."""
        if measured > self._measured.get(unit, 0):
            self._measured[unit] = measured
            self._report_measured()

    def _report_measured(self) -> None:
        done = min(self._total, sum(self._measured.values()))
        self._progress.measuring(done, self._total)
