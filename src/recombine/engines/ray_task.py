"""The code that runs on the nodes of a Ray cluster. It loads nothing heavy: a worker process does the work.

That process has the same limits, environment and shutdown as every other worker.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from recombine.engines.worker import ENDS, WorkerOptions
from recombine.engines.worker_process import WorkerProcess


class EventBoard:
    """A Ray actor that holds the events of all workers until the sweep's process takes them."""

    def __init__(self) -> None:
        self._events: list[tuple[int, str]] = []

    def tell(self, number: int, event: str) -> None:
        self._events.append((number, event))

    def take(self) -> list[tuple[int, str]]:
        events, self._events = self._events, []
        return events


def environment(settings: Mapping[str, str | None], gpus: float) -> dict[str, str]:
    """This node's environment with the sweep's settings. None removes a variable."""
    variables = dict(os.environ)
    if not gpus:
        variables["JAX_PLATFORMS"] = "cpu"  # A GPU that Ray has not given to this task belongs to another.
    for name, value in settings.items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value
    return variables


def run_remotely(number: int, options: str, settings: str, gpus: float, unit: str, board: Any) -> str:
    """The Ray task: run one unit in a worker process. Takes and returns JSON text."""

    def tell(event: str) -> None:
        board.tell.remote(number, event)

    worker = _worker(options, environment(json.loads(settings), gpus))
    last = run_in_worker(worker, unit, tell)
    if gpus or json.loads(last)["event"] == "lost":
        end_worker()  # The next task needs its GPU memory.
    return last


def run_in_worker(worker: WorkerProcess, unit: str, tell: Callable[[str], None]) -> str:
    """Run a unit in a worker process; returns its last event."""
    try:
        worker.send(unit)
        for event in worker.events():
            if event["event"] in ENDS:
                return json.dumps(event)
            tell(json.dumps(event))
        return json.dumps({"event": "lost", "why": worker.why()})
    except BaseException:
        end_worker()
        raise


_kept: list[tuple[str, dict[str, str], WorkerProcess]] = []
"""The worker process of the last task, kept so that the next task need not start and compile again."""


def _worker(options: str, environment: dict[str, str]) -> WorkerProcess:
    if not _kept or _kept[0][:2] != (options, environment):
        end_worker()
        _kept.append((options, environment, WorkerProcess(WorkerOptions.model_validate_json(options), environment)))
    return _kept[0][2]


def end_worker() -> None:
    """End the kept worker process."""
    while _kept:
        _kept.pop()[2].stop()
