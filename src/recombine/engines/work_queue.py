"""The queue of a sweep that workers share: waiting units, their results, and lost units.

Engines differ in how units reach workers. What happens with the answers is the same for all.
"""

from __future__ import annotations

from typing import Any

from recombine.engines.base import Probes, Runs, Sweep, plan
from recombine.engines.events import EventReader
from recombine.engines.work_units import MIN_UNIT_SECONDS, WorkUnit, estimated, halves, split_work, unfinished
from recombine.engines.worker import ENDS, Event
from recombine.errors import BadInput, RecombineError, StoreError
from recombine.store.store import Store
from recombine.training import Progress

SHOWN = 5
"""The number of runs that a message names."""


class WorkQueue:
    """The work units that are left of a sweep."""

    def __init__(
        self, store: Store, configs: Runs, measurements: Probes, progress: Progress | None, workers: int
    ) -> None:
        self.store = store
        self._unique = {config.run_id: config for config in configs}
        ahead = plan(store, configs, measurements)
        self._left = [config for config in self._unique.values() if config not in store]
        if self._left:
            store.check_writable()
        todo = unfinished(store, configs, measurements)
        seconds = estimated(store, todo, measurements)
        units = split_work(todo, measurements, seconds, workers, MIN_UNIT_SECONDS)
        self.waiting: dict[int, WorkUnit] = dict(enumerate(units))
        """Units without a worker, largest first, by their number."""
        self._given: dict[int, WorkUnit] = {}
        self._numbers = len(self.waiting)
        self._failures: list[tuple[list[str], str, str | None]] = []
        self._sums: dict[str, Any] = dict.fromkeys(("measured", "compilations", "compile_seconds", "train_seconds"), 0)
        progress = progress or Progress()
        progress.started(len(self._left), ahead.steps)
        self._events = EventReader(store, self._unique, progress, total=ahead.measurements, each=len(measurements))

    def next(self) -> tuple[int, WorkUnit] | None:
        """Take the largest waiting unit, with its number, for a worker; None if none waits."""
        if not self.waiting:
            return None
        number = next(iter(self.waiting))
        self._given[number] = self.waiting.pop(number)
        return number, self._given[number]

    def take(self, number: int, event: Event) -> bool:
        """Take in an event of a unit's worker; returns whether the unit is done."""
        kind = event["event"]
        if kind not in ENDS:
            self._events.report(number, event)
            return False
        if kind == "lost":
            self.lost(number, event["why"])
            return True
        unit = self._given.pop(number)
        if kind == "refused":
            error = StoreError if event["kind"] == "store" else BadInput
            raise error(event["message"], fix=event["fix"])
        if kind == "broken":
            self._fail(unit, event["why"], event["fix"])
        else:
            self._events.done(number, event["measured"])
            for name in self._sums:
                self._sums[name] += event[name]
            for problem in event["problems"]:
                self.store.report(problem)
        return True

    def lost(self, number: int, why: str) -> None:
        """Note that a unit's worker was lost. Unfinished runs are tried once more, in halves."""
        unit = self._given.pop(number)
        if unit.attempt:
            self._fail(unit, why, "give each process more memory (--memory, fewer --jobs), then run it again")
            return
        for piece in halves(unit, self.store):
            self.waiting[self._numbers] = piece
            self._numbers += 1

    def _fail(self, unit: WorkUnit, why: str, fix: str | None) -> None:
        runs = [config.run_id for config in unfinished(self.store, unit.configs, unit.measurements)]
        if runs:
            self._failures.append((runs, why, fix))

    def result(self) -> Sweep:
        """The result of the sweep, after the last unit. RecombineError names the runs that could not be finished."""
        if self._failures:
            runs = [run for lost, _, _ in self._failures for run in lost]
            _, why, fix = self._failures[0]
            named = ", ".join(runs[:SHOWN]) + (", ..." if len(runs) > SHOWN else "")
            raise RecombineError(
                f"{len(runs)} runs could not be finished, the others are stored: {named}. The first worker "
                f"that stopped: {why.rstrip('.')}.",
                fix=fix,
            )
        return Sweep(
            trained=len(self._left),
            found=len(self._unique) - len(self._left),
            failed=tuple(run_id for run_id in self._unique if self.store.status(run_id) == "failed"),
            **self._sums,
        )
