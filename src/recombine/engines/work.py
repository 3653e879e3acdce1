"""A sweep that workers share: parcels that wait, what came of them, and what was lost.

How parcels reach workers is the engine's affair; what is done with their answers is the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence

from recombine.engines.base import Sweep, SweepProgress, plan
from recombine.engines.parcels import Parcel, cut, estimated, halves, unfinished
from recombine.engines.telling import Hearing
from recombine.engines.worker import ENDS, Event
from recombine.errors import BadInput, RecombineError, StoreError
from recombine.probes.base import Measurement
from recombine.store.store import Store
from recombine.training.config import RunConfig

SHOWN = 5
"""Runs that a message names."""


class Work:
    """What is left of a sweep."""

    def __init__(
        self,
        store: Store,
        configs: Sequence[RunConfig],
        measurements: Sequence[Measurement],
        progress: SweepProgress | None,
        *,
        workers: int,
        least: float,
    ) -> None:
        self.store = store
        self._unique = {config.run_id: config for config in configs}
        ahead = plan(store, configs, measurements)
        self._left = [config for config in self._unique.values() if config not in store]
        if self._left:
            store.check_writable()
        todo = unfinished(store, configs, measurements)
        seconds = estimated(store, todo, measurements)
        self.waiting: dict[int, Parcel] = dict(enumerate(cut(todo, measurements, seconds, workers, least)))
        """Parcels that no worker has, largest first, by their number."""
        self._given: dict[int, Parcel] = {}
        self._numbers = len(self.waiting)
        self._failures: list[tuple[list[str], str, str | None]] = []
        self._sums = dict.fromkeys(("measured", "compilations", "compile_seconds", "train_seconds"), 0.0)
        progress = progress or SweepProgress()
        progress.started(len(self._left), ahead.steps)
        self._hearing = Hearing(
            store, self._unique, progress, total=ahead.measurements, each=len(measurements)
        )

    def next(self) -> tuple[int, Parcel] | None:
        """The largest parcel that waits, with its number; it counts as given to a worker then."""
        if not self.waiting:
            return None
        number = next(iter(self.waiting))
        self._given[number] = self.waiting.pop(number)
        return number, self._given[number]

    def hear(self, number: int, event: Event) -> bool:
        """Take in what the worker of a parcel told; whether it is through with the parcel."""
        kind = event["event"]
        if kind not in ENDS:
            self._hearing.hear(number, event)
            return False
        if kind == "lost":
            self.lost(number, event["why"])
            return True
        parcel = self._given.pop(number)
        if kind == "refused":
            error = StoreError if event["kind"] == "store" else BadInput
            raise error(event["message"], fix=event["fix"])
        if kind == "broken":
            self._fail(parcel, event["why"], event["fix"])
        else:
            for name in self._sums:
                self._sums[name] += event[name]
            for problem in event["problems"]:
                self.store.report(problem)
        return True

    def lost(self, number: int, why: str) -> None:
        """A worker was lost over a parcel. What it did not finish is tried once more, in halves."""
        parcel = self._given.pop(number)
        pieces = halves(parcel, self.store)
        if parcel.attempt:
            self._fail(
                parcel, why, "give each process more memory (--memory, fewer --jobs), then run it again"
            )
            return
        for piece in pieces:
            self.waiting[self._numbers] = piece
            self._numbers += 1

    def _fail(self, parcel: Parcel, why: str, fix: str | None) -> None:
        runs = [config.run_id for config in unfinished(self.store, parcel.configs, parcel.measurements)]
        if runs:
            self._failures.append((runs, why, fix))

    def sweep(self) -> Sweep:
        """What was done, when nothing waits any more; RecombineError names the runs that could not be finished."""
        if self._failures:
            runs = [run for lost, _, _ in self._failures for run in lost]
            _, why, fix = self._failures[0]
            named = ", ".join(runs[:SHOWN]) + (", ..." if len(runs) > SHOWN else "")
            raise RecombineError(
                f"{len(runs)} runs could not be finished, the others are stored: {named}. The first worker "
                f"that stopped: {why.rstrip('.')}.",
                fix=fix,
            )
        status = {run_id: self.store.status(run_id) for run_id in self._unique}
        return Sweep(
            trained=len(self._left),
            found=len(self._unique) - len(self._left),
            failed=tuple(run_id for run_id, word in status.items() if word == "failed"),
            measured=int(self._sums["measured"]),
            compilations=int(self._sums["compilations"]),
            compile_seconds=self._sums["compile_seconds"],
            train_seconds=self._sums["train_seconds"],
        )
