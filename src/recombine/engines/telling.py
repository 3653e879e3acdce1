"""Progress across processes: what a worker tells, and how it is heard."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from recombine.engines.base import SweepProgress
from recombine.models.base import Network
from recombine.store.store import Store
from recombine.training.config import RunConfig
from recombine.training.train import Outcome

Event = dict[str, Any]

KEPT = ("steps", "seconds", "compile_seconds", "reached", "failed_at", "lanes")
"""What is told of a run that ended."""


class Telling(SweepProgress):
    """The worker's side: a line now and then."""

    def __init__(self, say: Callable[[Event], None], interval: float) -> None:
        self._say, self._interval = say, interval
        self._said = 0.0
        self._reached: dict[str, dict[str, float]] = {}

    def compiling(self, config: RunConfig) -> None:
        self._say({"event": "compiling", "run": config.run_id})

    def stepped(self, steps: int, config: RunConfig, look: dict[str, float]) -> None:
        self._reached[config.run_id] = look
        if time.monotonic() - self._said > self._interval:
            self._flush()

    def _flush(self) -> None:
        if self._reached:
            self._say({"event": "stepped", "looks": self._reached})
        self._reached, self._said = {}, time.monotonic()

    def finished(self, outcome: Outcome) -> None:
        self._flush()
        told = {name: getattr(outcome, name) for name in KEPT}
        self._say({"event": "finished", "run": outcome.config.run_id, **told})

    def measuring(self, done: int, total: int) -> None:
        self._say({"event": "measuring", "done": done, "total": total})


class Elsewhere(Outcome):
    """A run that ended in another process. Its network and curves are in the store, or will be in a moment."""

    def __init__(self, store: Store, config: RunConfig, told: Event) -> None:
        object.__setattr__(self, "_store", store)
        object.__setattr__(self, "config", config)
        for name in KEPT:
            object.__setattr__(self, name, told[name])

    @property
    def network(self) -> Network:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._store.load(self.config).model  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def curves(self) -> list[dict[str, float]]:  # pyright: ignore[reportIncompatibleVariableOverride]
        frame = self._store.curves_df([self.config.run_id])  # pyright: ignore[reportAttributeAccessIssue]
        return frame.drop(columns="run").to_dict("records")


class Hearing:
    """The other side: what all workers tell, as the progress of one sweep.

    Work that was lost is done again, from a checkpoint or from the start; only steps beyond the furthest count.
    """

    def __init__(
        self,
        store: Store,
        configs: dict[str, RunConfig],
        progress: SweepProgress,
        *,
        total: int,
        each: int,
    ) -> None:
        """`total` measurements are missing, `each` of every run that is not trained yet."""
        self._store, self._configs, self._progress = store, configs, progress
        self._steps: dict[str, int] = {}
        self._ended: set[str] = set()
        self._total, self._each = total, each
        self._measured: dict[int, int] = {}

    def hear(self, parcel: int, event: Event) -> None:
        """Pass on what the worker of a parcel told."""
        kind = event["event"]
        if kind == "compiling":
            self._progress.compiling(self._configs[event["run"]])
        elif kind == "stepped":
            for run_id, look in event["looks"].items():
                made = int(look["step"]) - self._steps.get(run_id, 0)
                if made > 0:
                    self._steps[run_id] = int(look["step"])
                    self._progress.stepped(made, self._configs[run_id], look)
        elif kind == "finished" and event["run"] not in self._ended:
            self._ended.add(event["run"])
            if event["failed_at"] is not None:
                self._total -= self._each  # It will not be measured.
                if self._measured:
                    self._tell_measured()
            self._progress.finished(Elsewhere(self._store, self._configs[event["run"]], event))
        elif kind == "measuring":
            self._measured[parcel] = event["done"]
            self._tell_measured()

    def _tell_measured(self) -> None:
        done = min(self._total, sum(self._measured.values()))
        self._progress.measuring(done, self._total)
