"""The engine that trains on a Ray cluster. Ray decides where and when a unit runs, and runs it again if its node is lost."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import math
import os
import time
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

from recombine.engines.base import Engine, Probes, Runs, Sweep, missing_parents
from recombine.engines.ray_task import EventBoard, run_remotely
from recombine.engines.work_queue import WorkQueue
from recombine.engines.worker import Event, WorkerOptions
from recombine.engines.worker_process import settings
from recombine.errors import BadInput, MissingPackage, StoreError
from recombine.store.remote import Remote
from recombine.store.store import Store
from recombine.training import Progress

POLL_SECONDS = 0.5

RETRIES = 3
"""How often Ray restarts a unit whose node was lost. Stored runs are not trained again."""

SEEN_SECONDS = 90.0
"""The longest time before a file written on one node is visible on another (NFS caches)."""


class RayEngine(Engine):
    """Trains work units as Ray tasks, largest first. Ray reserves cores and GPUs for each."""

    elsewhere: ClassVar[bool] = True

    def __init__(
        self,
        address: str | None = None,
        *,
        cpus: float = 1,
        gpus: float = 0,
        threads: int | None = None,
        memory: int | None = None,
        remote: str | None = None,
    ) -> None:
        """Make an engine. The cluster is contacted when a sweep runs.

        Args:
            address: The cluster. By default `RAY_ADDRESS`, then a cluster on this machine, then a new one here.
            cpus: Cores that Ray reserves for each worker.
            gpus: GPUs that Ray reserves for each worker.
            threads: Cores that each worker uses; `cpus` by default.
            memory: Bytes that each worker may use, and that Ray reserves.
            remote: An object store through which results travel; None if all nodes see the store's folder.
        """
        if importlib.util.find_spec("ray") is None:
            raise MissingPackage("The engine ray needs Ray.", fix='pip install "recombine[ray]"')
        if cpus <= 0 or gpus < 0:
            raise BadInput(f"A worker was to have {cpus} cores and {gpus} GPUs; expected more than 0 cores.")
        self.address = address
        self.cpus, self.gpus, self.memory = cpus, gpus, memory
        self.threads = math.ceil(cpus) if threads is None else threads
        self.remote = None if remote is None else Remote(remote)

    def run_generation(
        self, store: Store, configs: Runs, measurements: Probes = (), progress: Progress | None = None
    ) -> Sweep:
        if self.remote is not None:
            self.remote.fetch(store, [config.run_id for config in (*configs, *missing_parents(None, configs))])
        with connected(self.address):
            work = WorkQueue(store, configs, measurements, progress, self._places())
            self._share(store, work)
            with contextlib.closing(_Tasks(self, store)) as tasks:
                while True:
                    while (numbered := work.next()) is not None:
                        tasks.give(numbered[0], numbered[1].model_dump_json())
                    if not tasks.under_way:
                        return work.result()
                    for number, event in tasks.news():
                        self._collect(store, event)
                        work.take(number, event)

    def _share(self, store: Store, work: WorkQueue) -> None:
        """Upload runs that only need measuring, and parents, so that workers find them."""
        if self.remote is not None:
            for unit in work.waiting.values():
                for config in (*unit.configs, *missing_parents(None, unit.configs)):
                    if store.status(config.run_id) == "complete":
                        self.remote.send(store, config.run_id)

    def _places(self) -> int:
        """The number of workers that the cluster has room for."""
        import ray

        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        wanted = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory or 0}
        room = [min(int(node.get(name, 0.0) // value) for name, value in wanted.items() if value) for node in nodes]
        if not sum(room):
            has = "; ".join(f"{node.get('CPU', 0):g} cores, {node.get('GPU', 0):g} GPUs" for node in nodes)
            raise BadInput(
                f"No node of the Ray cluster has room for a worker with {self.cpus:g} cores, {self.gpus:g} GPUs "
                f"and {(self.memory or 0) / 1e9:.1f} GB. The nodes have: {has}.",
                fix="ask for less with --threads, --gpus or --memory, or start larger nodes",
            )
        return sum(room)

    def _collect(self, store: Store, event: Event) -> None:
        """Wait until this store has what a worker stored."""
        if event["event"] != "done":
            return
        if self.remote is not None:
            self.remote.fetch(store, event["stored"])
        deadline = time.monotonic() + SEEN_SECONDS
        while missing := [run_id for run_id in event["stored"] if store.status(run_id) is None]:
            if self.remote is not None or time.monotonic() > deadline:
                raise StoreError(
                    f"A worker has stored {missing[0]}, but it is not in {store.path} as seen from here.",
                    fix="use a folder that all nodes see, or an object store: --remote s3://bucket/runs",
                )
            time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connect to a cluster, or start Ray on this machine. An existing connection is kept."""
    import ray

    if ray.is_initialized():
        yield
        return
    # Ray sends no usage statistics and prints nothing between our lines.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        # JAX warns of every fork. Ray's forks call exec at once.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise BadInput(
            f"There is no Ray cluster at {address or 'this machine'}: {str(error).splitlines()[0]}",
            fix="start one with `ray start --head`, or name its address, e.g. --address 10.0.0.1:6379",
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


class _Tasks:
    """The Ray tasks of a sweep."""

    def __init__(self, engine: RayEngine, store: Store) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        wanted: dict[str, Any] = {"num_cpus": engine.cpus, "num_gpus": engine.gpus}
        if engine.memory is not None:
            wanted["memory"] = engine.memory
        # Errors in a unit are events. A failure that Ray sees is a lost worker or node.
        self._task = ray.remote(max_retries=RETRIES, retry_exceptions=False, **wanted)(run_remotely)
        # On this node if possible, because this node lives as long as the sweep. Elsewhere the board may die with its
        # node. It then restarts: some events are missing from the progress, but nothing from the results.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        lasting = {"max_restarts": -1, "max_task_retries": -1}
        self._board: Any = ray.remote(num_cpus=0, scheduling_strategy=here, **lasting)(EventBoard).remote()  # type: ignore[attr-defined]
        remote = None if engine.remote is None else engine.remote.url
        limits: dict[str, Any] = {"threads": engine.threads, "memory": engine.memory}
        self._orders = WorkerOptions(store=str(store.path.resolve()), remote=remote, **limits).model_dump_json()
        # Ray sets this variable for its workers. A sweep must mean the same with every engine.
        same = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}
        self._settings = json.dumps(settings() | same)
        self._gpus = engine.gpus
        self.under_way: dict[Any, int] = {}
        """The unit number of each task."""

    def give(self, number: int, unit: str) -> None:
        """Give a unit to Ray. Ray starts equal tasks in order."""
        task = self._task.remote(number, self._orders, self._settings, self._gpus, unit, self._board)  # type: ignore[attr-defined]
        self.under_way[task] = number

    def news(self) -> Iterator[tuple[int, Event]]:
        """New events of the workers, then the last events of tasks that ended."""
        import ray
        from ray.exceptions import RayError

        ended, _ = ray.wait(list(self.under_way), num_returns=len(self.under_way), timeout=POLL_SECONDS)
        with contextlib.suppress(RayError):  # Without the board the sweep goes on without progress.
            for number, text in ray.get(self._board.take.remote()):
                if number in self.under_way.values():
                    yield number, json.loads(text)
        for task in ended:
            number = self.under_way.pop(task)
            try:
                yield number, json.loads(ray.get(task))
            except RayError as error:
                lines = str(error).strip().splitlines()
                yield number, {"event": "lost", "why": lines[0] if lines else type(error).__name__}

    def close(self) -> None:
        """End the tasks that are under way, and the board."""
        import ray

        with contextlib.suppress(Exception):
            for task in self.under_way:
                ray.cancel(task, force=True)
            ray.kill(self._board)
