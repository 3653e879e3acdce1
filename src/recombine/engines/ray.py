"""A Ray cluster. Ray decides where and when a parcel runs, and runs it again when its node is lost."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import math
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from recombine.engines.base import Engine, Sweep, SweepProgress
from recombine.engines.child import settings
from recombine.engines.parcels import LEAST_SECONDS
from recombine.engines.ray_task import Board, do_remotely
from recombine.engines.work import Work
from recombine.engines.worker import Event, Orders
from recombine.errors import BadInput, StoreError
from recombine.probes.base import Measurement
from recombine.store.remote import Remote
from recombine.store.store import Store
from recombine.training.config import RunConfig

POLL_SECONDS = 0.5

RETRIES = 3
"""How often Ray begins a parcel again after its node was lost. Runs that were stored are not trained again."""

SEEN_SECONDS = 90.0
"""A file that was written on one node may take so long to be seen on another (NFS keeps what it knew)."""


class RayEngine(Engine):
    """Trains parcels as Ray tasks, largest first, each with the cores and GPUs that it needs."""

    def __init__(
        self,
        address: str | None = None,
        *,
        cpus: float = 1,
        gpus: float = 0,
        threads: int | None = None,
        memory: int | None = None,
        remote: str | None = None,
        retries: int = RETRIES,
        least: float = LEAST_SECONDS,
    ) -> None:
        if importlib.util.find_spec("ray") is None:
            raise BadInput("The engine ray needs Ray.", fix='pip install "recombine[ray]"')
        if cpus <= 0 or gpus < 0:
            raise BadInput(f"A worker was to have {cpus} cores and {gpus} GPUs; expected more than 0 cores.")
        self.address = address
        """The cluster; None for RAY_ADDRESS, then a cluster on this machine, then a new one of this machine alone."""
        self.cpus, self.gpus = cpus, gpus
        """What Ray sets aside for each worker."""
        self.threads = math.ceil(cpus) if threads is None else threads
        """Cores that each worker uses."""
        self.memory = memory
        """Bytes that each worker may use, and that Ray sets aside for it."""
        self.remote = None if remote is None else Remote(remote)
        """Where results travel; None if all nodes see the store's folder."""
        self.retries, self.least = retries, least

    def run(
        self,
        store: Store,
        configs: Sequence[RunConfig],
        measurements: Sequence[Measurement] = (),
        progress: SweepProgress | None = None,
    ) -> Sweep:
        if self.remote is not None:
            self.remote.fetch(store, [config.run_id for config in configs])
        with connected(self.address):
            work = Work(store, configs, measurements, progress, workers=self._places(), least=self.least)
            self._share(store, work)
            with _Tasks(self, store) as tasks:
                while True:
                    while (given := work.next()) is not None:
                        tasks.give(given[0], given[1].text())
                    if not tasks.under_way:
                        return work.sweep()
                    for number, event in tasks.news():
                        self._collect(store, event)
                        work.hear(number, event)

    def _share(self, store: Store, work: Work) -> None:
        """Runs that only want measuring must be where the workers are."""
        if self.remote is not None:
            for parcel in work.waiting.values():
                for config in parcel.configs:
                    if store.status(config.run_id) == "complete":
                        self.remote.send(store, config.run_id)

    def _places(self) -> int:
        """How many workers the cluster has room for at once."""
        import ray

        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        wanted = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory or 0}
        room = [
            min(int(node.get(name, 0.0) // value) for name, value in wanted.items() if value)
            for node in nodes
        ]
        if not sum(room):
            has = "; ".join(f"{node.get('CPU', 0):g} cores, {node.get('GPU', 0):g} GPUs" for node in nodes)
            raise BadInput(
                f"No node of the Ray cluster has room for a worker with {self.cpus:g} cores, {self.gpus:g} GPUs "
                f"and {(self.memory or 0) / 1e9:.1f} GB. The nodes have: {has}.",
                fix="ask for less with --threads, --gpus or --memory, or start larger nodes",
            )
        return sum(room)

    def _collect(self, store: Store, event: Event) -> None:
        """What a worker stored must be in this store too."""
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
    """Connect to a cluster, or start Ray on this machine alone. A connection that was there stays."""
    import ray

    if ray.is_initialized():
        yield
        return
    # Nothing about a sweep is sent to Ray's makers, and nothing of Ray is printed between our lines.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        # JAX warns of every fork; Ray's are followed by an exec at once.
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
        # Errors in a parcel are told as events; what Ray sees as a failure is a lost worker or node.
        self._task = ray.remote(max_retries=engine.retries, retry_exceptions=False, **wanted)(do_remotely)
        # On this node, which lives as long as the sweep, if Ray can have it there. Elsewhere it may die with its node: then
        # it begins again, and what was told and not yet taken is missing from the progress, not from the results.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        lasting = {"max_restarts": -1, "max_task_retries": -1}
        self._board: Any = ray.remote(num_cpus=0, scheduling_strategy=here, **lasting)(Board).remote()  # type: ignore[attr-defined]
        remote = None if engine.remote is None else engine.remote.url
        self._orders = Orders(
            store=str(store.path.resolve()), remote=remote, threads=engine.threads, memory=engine.memory
        ).model_dump_json()
        # Ray sets this one for its workers; a sweep means the same with every engine.
        same = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}
        self._settings = json.dumps(settings() | same)
        self._gpus = engine.gpus
        self.under_way: dict[Any, int] = {}
        """The number of each task's parcel."""

    def __enter__(self) -> _Tasks:
        return self

    def give(self, number: int, parcel: str) -> None:
        """Hand a parcel to Ray. Tasks of one kind are begun in the order in which they came."""
        task = self._task.remote(number, self._orders, self._settings, self._gpus, parcel, self._board)  # type: ignore[attr-defined]
        self.under_way[task] = number

    def news(self) -> Iterator[tuple[int, Event]]:
        """What the workers told since the last time, then the tasks that ended."""
        import ray
        from ray.exceptions import RayError

        ended, _ = ray.wait(list(self.under_way), num_returns=len(self.under_way), timeout=POLL_SECONDS)
        with contextlib.suppress(RayError):  # Without the board the sweep goes on in silence.
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

    def __exit__(self, *_: object) -> None:
        import ray

        with contextlib.suppress(Exception):
            for task in self.under_way:
                ray.cancel(task, force=True)
            ray.kill(self._board)
