"""What the tests of trackers share: a tracker that remembers, and the settings of small runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pytest

if TYPE_CHECKING:
    from recombine.trackers.base import Tracker

SETTINGS: dict[str, Any] = {
    "space": {"kind": "subset", "modules": 8, "max_active": 2},
    "model": {"kind": "mlp", "width": 8, "depth": 1},
    "recipe": {"kind": "paper", "learning_rate": 0.01, "steps": 30, "tasks": 8, "samples": 4},
    "support": {"kind": "random", "number": 20, "reserve": 12},
    "eval_every": 10,
    "validation_tasks": 8,
}
"""The same program as in tests/studies and tests/cli, so that it is compiled once."""


@pytest.fixture
def settings() -> dict[str, Any]:
    return SETTINGS


@pytest.fixture
def remembering() -> Tracker:
    """A tracker that keeps what it was given, in `.given`: (run, what, step or name, values)."""
    from recombine.trackers.base import TrackedRun, Tracker

    class Remembered(TrackedRun):
        def __init__(self, name: str, given: list[Any], fails: str) -> None:
            self._name, self._given, self._fails = name, given, fails

        def _note(self, what: str, *values: Any) -> None:
            if what == self._fails:
                raise OSError("the disk of the tracker is full")
            self._given.append((self._name, what, *values))

        def curve(self, step: int, values: Any) -> None:
            self._note("curve", step, values)

        def summary(self, step: int, values: Any) -> None:
            self._note("summary", step, values)

        def table(self, name: str, frame: Any) -> None:
            self._note("table", name, frame)

        def figure(self, name: str, path: Any) -> None:
            self._note("figure", name, path.read_bytes()[:8])

        def close(self) -> None:
            self._note("close")

    class Remembering(Tracker):
        kind: Literal["remembering"] = "remembering"
        package: ClassVar[str] = "json"
        install: ClassVar[str] = "nothing"
        given: ClassVar[list[Any]] = []
        fails: str = ""

        def open(self, group: str, name: str, settings: Any) -> TrackedRun:
            if self.fails == "open":
                raise SystemExit(3)
            self.given.append((name, "open", group, settings))
            return Remembered(name, self.given, self.fails)

    Remembering.given.clear()
    return Remembering()
