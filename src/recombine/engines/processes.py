"""The engine that trains in several processes of this machine."""

from __future__ import annotations

import os
import queue
import threading
import time
from typing import ClassVar

from recombine.engines.base import Engine, Probes, Runs, Sweep
from recombine.engines.work_queue import WorkQueue
from recombine.engines.work_units import WorkUnit
from recombine.engines.worker import Event, WorkerOptions
from recombine.engines.worker_process import WorkerProcess, settings
from recombine.errors import BadInput
from recombine.store.provenance import threads as cores
from recombine.store.store import Store
from recombine.training import Progress

LOOK_SECONDS = 5.0
"""After this time without an event, it is looked whether a worker was stopped."""

STOPPED_SECONDS = 60.0
"""A worker that was stopped for this time is ended, and its work is done by another one."""


class ProcessEngine(Engine):
    """Trains in `jobs` processes, each with its own cores and memory limit.

    A process that dies loses only unfinished runs. They are tried once more, in halves.
    """

    elsewhere: ClassVar[bool] = True

    def __init__(self, jobs: int, threads: int | None = None, memory: int | None = None) -> None:
        """Make an engine.

        Args:
            jobs: The number of processes.
            threads: Cores of each process; by default an equal share of the machine's.
            memory: Bytes that each process may use.
        """
        if jobs < 1:
            raise BadInput(f"{jobs} processes were asked for; expected 1 or more.")
        self.jobs = jobs
        self.threads = max(1, cores() // jobs) if threads is None else threads
        self.memory = memory

    def run_generation(
        self, store: Store, configs: Runs, measurements: Probes = (), progress: Progress | None = None
    ) -> Sweep:
        work = WorkQueue(store, configs, measurements, progress, self.jobs)
        options = WorkerOptions(store=str(store.path.resolve()), threads=self.threads, memory=self.memory)
        # Several processes may share a GPU, so none may reserve most of its memory.
        workers = _Workers(options, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} | dict(os.environ) | settings())
        try:
            while True:
                while len(workers.busy) < self.jobs and (numbered := work.next()) is not None:
                    workers.give(*numbered)
                if not workers.busy:
                    return work.result()
                workers.wait(work, store)
        finally:
            workers.stop()


class _Workers:
    """The worker processes. One thread here reads the events of each."""

    def __init__(self, options: WorkerOptions, environment: dict[str, str]) -> None:
        self._orders, self._environment = options, environment
        self.events: queue.Queue[tuple[WorkerProcess, Event | None]] = queue.Queue()
        self.busy: dict[WorkerProcess, int] = {}
        """The number of the unit that each busy worker has."""
        self._idle: list[WorkerProcess] = []
        self._all: list[WorkerProcess] = []
        self._stopped: dict[WorkerProcess, float] = {}
        """Since when stopped workers are seen to be so."""

    def give(self, number: int, unit: WorkUnit) -> None:
        worker = self._idle.pop() if self._idle else self._start()
        self.busy[worker] = number
        worker.send(unit.model_dump_json())

    def _start(self) -> WorkerProcess:
        worker = WorkerProcess(self._orders, self._environment)
        self._all.append(worker)
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()
        return worker

    def _listen(self, worker: WorkerProcess) -> None:
        for event in worker.events():
            self.events.put((worker, event))
        self.events.put((worker, None))

    def wait(self, work: WorkQueue, store: Store) -> None:
        """Take in the next event. A worker that somebody stopped is reported; if it stays so, another one gets its work."""
        try:
            worker, event = self.events.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            for each in self.busy:
                self._look_at(each, store)
            return
        self._stopped.pop(worker, None)
        self.take(work, worker, event)

    def _look_at(self, worker: WorkerProcess, store: Store) -> None:
        if not worker.stopped():
            self._stopped.pop(worker, None)
            return
        since = self._stopped.setdefault(worker, time.monotonic())
        if time.monotonic() - since > STOPPED_SECONDS:
            worker.kill()
        else:
            ahead = f"another process takes over after {STOPPED_SECONDS:.0f} s"
            store.report(f"Process {worker.pid} was stopped: `kill -CONT {worker.pid}` lets it go on; {ahead}.")

    def take(self, work: WorkQueue, worker: WorkerProcess, event: Event | None) -> None:
        """Take in an event of a worker; None says that the worker ended."""
        number = self.busy.get(worker)
        if event is None:
            if worker in self._idle:
                self._idle.remove(worker)
            if number is not None:
                del self.busy[worker]
                work.lost(number, worker.why())
        elif number is not None and work.take(number, event):
            del self.busy[worker]
            if event["event"] == "lost":
                worker.close()  # A process that ran out of memory gets no other unit.
            else:
                self._idle.append(worker)

    def stop(self) -> None:
        """End all workers. Busy ones lose the work since their last checkpoint."""
        for worker in self._all:
            worker.close()
        for worker in self._all:
            worker.stop()
