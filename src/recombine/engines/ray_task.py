"""What runs on the nodes of a Ray cluster. Loads nothing heavy: the work is done by a process of its own.

That process has the limits, the environment and the clean death of every other worker. Ray decides where and when.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from recombine.engines.child import Child
from recombine.engines.worker import ENDS, Orders


class Board:
    """An actor: what the workers of the whole cluster tell, until the sweep's process takes it."""

    def __init__(self) -> None:
        self._told: list[tuple[int, str]] = []

    def tell(self, number: int, event: str) -> None:
        self._told.append((number, event))

    def take(self) -> list[tuple[int, str]]:
        told, self._told = self._told, []
        return told


def environment(settings: Mapping[str, str | None], gpus: float) -> dict[str, str]:
    """The worker's environment: this node's, with the sweep's settings. None takes a variable away."""
    found = dict(os.environ)
    if not gpus:
        found["JAX_PLATFORMS"] = "cpu"  # A GPU that Ray has not given to this task is somebody else's.
    for name, value in settings.items():
        found.pop(name, None)
        if value is not None:
            found[name] = value
    return found


def do_remotely(number: int, orders: str, settings: str, gpus: float, parcel: str, board: Any) -> str:
    """A Ray task: one parcel. Text in, text out."""

    def tell(event: str) -> None:
        board.tell.remote(number, event)

    child = _child(orders, environment(json.loads(settings), gpus))
    last = do_in(child, parcel, tell)
    if gpus or json.loads(last)["event"] == "lost":
        dismiss()  # What it held of a GPU's memory must be free for the next task.
    return last


def do_in(child: Child, parcel: str, tell: Callable[[str], None]) -> str:
    """A parcel in a worker process; returns its last event."""
    try:
        child.send(parcel)
        for event in child.events():
            if event["event"] in ENDS:
                return json.dumps(event)
            tell(json.dumps(event))
        return json.dumps({"event": "lost", "why": child.why()})
    except BaseException:
        dismiss()
        raise


_kept: list[tuple[str, dict[str, str], Child]] = []
"""The worker process of the last task in this process of Ray's: the next one need not start and compile anew."""


def _child(orders: str, environment: dict[str, str]) -> Child:
    if not _kept or _kept[0][:2] != (orders, environment):
        dismiss()
        _kept.append((orders, environment, Child(Orders.model_validate_json(orders), environment)))
    return _kept[0][2]


def dismiss() -> None:
    """End the worker process that was kept."""
    while _kept:
        _kept.pop()[2].stop()
