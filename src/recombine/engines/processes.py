"""Several processes on this machine."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Sequence

from recombine.engines.base import Engine, Sweep, SweepProgress
from recombine.engines.child import Child, settings
from recombine.engines.parcels import LEAST_SECONDS, Parcel
from recombine.engines.work import Work
from recombine.engines.worker import Event, Orders
from recombine.errors import BadInput
from recombine.probes.base import Measurement
from recombine.store.provenance import threads as cores
from recombine.store.store import Store
from recombine.training.config import RunConfig


class ProcessEngine(Engine):
    """Trains parcels in `jobs` processes, each with its own cores and its own limit on memory.

    A process that dies takes nothing with it: what it had not finished is tried once more, in halves.
    """

    def __init__(
        self,
        jobs: int,
        threads: int | None = None,
        memory: int | None = None,
        *,
        least: float = LEAST_SECONDS,
    ) -> None:
        if jobs < 1:
            raise BadInput(f"{jobs} processes were asked for; expected 1 or more.")
        self.jobs = jobs
        self.threads = max(1, cores() // jobs) if threads is None else threads
        """Cores of each process."""
        self.memory = memory
        """Bytes that each process may use."""
        self.least = least
        """Seconds that a parcel should last."""

    def run(
        self,
        store: Store,
        configs: Sequence[RunConfig],
        measurements: Sequence[Measurement] = (),
        progress: SweepProgress | None = None,
    ) -> Sweep:
        work = Work(store, configs, measurements, progress, workers=self.jobs, least=self.least)
        orders = Orders(store=str(store.path.resolve()), threads=self.threads, memory=self.memory)
        # Several processes may share a GPU: none may take nearly all of its memory at once.
        crew = _Crew(orders, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} | dict(os.environ) | settings())
        try:
            while True:
                while len(crew.busy) < self.jobs and (given := work.next()) is not None:
                    crew.give(*given)
                if not crew.busy:
                    return work.sweep()
                child, event = crew.events.get()
                crew.took(work, child, event)
        finally:
            crew.stop()


class _Crew:
    """The worker processes. Each has a thread here that listens to it."""

    def __init__(self, orders: Orders, environment: dict[str, str]) -> None:
        self._orders, self._environment = orders, environment
        self.events: queue.Queue[tuple[Child, Event | None]] = queue.Queue()
        self.busy: dict[Child, int] = {}
        """The number of the parcel that each is at."""
        self._idle: list[Child] = []
        self._all: list[Child] = []

    def give(self, number: int, parcel: Parcel) -> None:
        child = self._idle.pop() if self._idle else self._start()
        self.busy[child] = number
        child.send(parcel.text())

    def _start(self) -> Child:
        child = Child(self._orders, self._environment)
        self._all.append(child)
        threading.Thread(target=self._listen, args=(child,), daemon=True).start()
        return child

    def _listen(self, child: Child) -> None:
        for event in child.events():
            self.events.put((child, event))
        self.events.put((child, None))

    def took(self, work: Work, child: Child, event: Event | None) -> None:
        """What a worker told, or (None) that it ended."""
        number = self.busy.get(child)
        if event is None:
            if child in self._idle:
                self._idle.remove(child)
            if number is not None:
                del self.busy[child]
                work.lost(number, child.why())
        elif number is not None and work.hear(number, event):
            del self.busy[child]
            if event["event"] == "lost":
                child.close()  # A process that ran out of memory is not given another parcel.
            else:
                self._idle.append(child)

    def stop(self) -> None:
        """End them all; those at a parcel lose what they did since its last checkpoint."""
        for child in self._all:
            child.close()
        for child in self._all:
            child.stop()
