"""What trains reports here, and each tracker receives it in a thread of its own: no tracker delays or ends training."""

from __future__ import annotations

import json
import logging
import math
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from recombine.component import resolve
from recombine.errors import BadInput
from recombine.overrides import validate
from recombine.store.store import Store
from recombine.store.tables import flatten
from recombine.trackers.base import TrackedRun, Tracker, Values
from recombine.training import Outcome, Progress, RunConfig
from recombine.training.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

log = logging.getLogger("recombine")

WAIT_SECONDS = 60.0
"""At the end, trackers have this time to write what is left."""

INTERRUPTED_SECONDS = 5.0
"""The same after an interrupt or an error."""

Track = str | Tracker | Sequence[str | Tracker]
"""Trackers as people give them: names, or components."""


def trackers_of(track: Track | None) -> tuple[Tracker, ...]:
    """The trackers that were asked for, checked: their packages are installed.

    Args:
        track: Names (`tensorboard`, or `tensorboard,wandb`), JSON with settings
            (`{"kind": "mlflow", "uri": "http://..."}`), components, or several of them.

    Returns:
        The trackers. An unknown name, a bad setting or a missing package raises `BadInput`.

    Example:
        ```python
        trackers_of(["tensorboard", rc.trackers.WandB(mode="offline")])
        ```
    """
    given = [track] if isinstance(track, str | Tracker) else list(track or ())
    made = [tracker for each in given for tracker in _read(each)]
    for tracker in made:
        tracker.check()
    return tuple(made)


def _read(given: str | Tracker) -> list[Tracker]:
    if isinstance(given, Tracker):
        return [given]
    if not given.lstrip().startswith("{"):
        return [resolve("trackers", name.strip()) for name in given.split(",") if name.strip()]
    try:
        values = json.loads(given)
    except ValueError as error:
        fix = """e.g. --track '{"kind": "tensorboard", "folder": "events"}'"""
        raise BadInput(f"The tracker {given!r} is not JSON: {error}.", fix=fix) from error
    kind = type(resolve("trackers", {"kind": values.get("kind", "")}))
    return [validate(kind, values)]


class _Channel:
    """One tracker, in a thread of its own. After a failure it is left alone."""

    def __init__(self, tracker: Tracker, group: str) -> None:
        self._tracker, self._group = tracker, group
        self._runs: dict[str, TrackedRun] = {}
        self._failed = False
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def put(self, name: str, settings: Mapping[str, Any], job: Callable[[TrackedRun], None]) -> None:
        """Give a job for a run, which is opened where it is not open yet."""

        def do() -> None:
            if name not in self._runs:
                self._runs[name] = self._tracker.open(self._group, name, settings)
            job(self._runs[name])

        self._jobs.put(do)

    def close(self, name: str) -> None:
        """Close a run, if it is open."""
        self._jobs.put(lambda: self._close(name))

    def _close(self, name: str) -> None:
        if (run := self._runs.pop(name, None)) is not None:
            run.close()

    def _work(self) -> None:
        for job in iter(self._jobs.get, None):
            self._try(job)
        for name in list(self._runs):
            self._try(lambda name=name: self._close(name))

    def _try(self, job: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            job()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a tracker's library may raise anything.
            self._failed = True
            what = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            log.warning(f"The tracker {self._tracker.kind!r} failed and gets nothing more; the work goes on. {what}")

    def end(self, deadline: float) -> None:
        """Wait until everything is written, at most until a time."""
        self._jobs.put(None)
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            log.warning(f"The tracker {self._tracker.kind!r} is still busy: what it has not written yet is lost.")


class Tracking(Progress):
    """The progress of runs, passed on, and also given to trackers. Use it in a `with` block.

    Example:
        ```python
        with Tracking(trackers_of("tensorboard"), "my-sweep", progress) as tracking:
            engine.run(store, configs, probes, tracking)
            tracking.scores(store)
        ```
    """

    def __init__(self, trackers: Sequence[Tracker], group: str, progress: Progress | None = None) -> None:
        """Make it.

        Args:
            trackers: What receives; it may be nothing.
            group: The study or the sweep.
            progress: Called as before.
        """
        self._progress = progress or Progress()
        self._trackers, self._group = trackers, group
        self._channels: list[_Channel] = []
        self._seen: dict[str, RunConfig] = {}
        self._steps: dict[str, set[int]] = {}
        """The steps of each run whose points were given."""

    def __enter__(self) -> Self:
        self._channels = [_Channel(tracker, self._group) for tracker in self._trackers]
        return self

    def __exit__(self, *error: object) -> None:
        deadline = time.monotonic() + (WAIT_SECONDS if error[0] is None else INTERRUPTED_SECONDS)
        for channel in self._channels:
            channel.end(deadline)

    def _give(self, name: str, job: Callable[[TrackedRun], None]) -> None:
        config = self._seen.get(name)
        for channel in self._channels:
            channel.put(name, {} if config is None else dict(flatten(config.dump())), job)

    def _point(self, run_id: str, evaluation: Mapping[str, float]) -> None:
        step = int(evaluation["step"])
        if step not in self._steps.setdefault(run_id, set()):
            self._steps[run_id].add(step)
            values = {name: float(value) for name, value in evaluation.items() if name != "step" and _is_number(value)}
            self._give(run_id, lambda run: run.curve(step, values))

    # The progress of runs

    def expecting(self, estimate: Callable[[], Estimate]) -> None:
        self._progress.expecting(estimate)

    def started(self, runs: int, steps: int) -> None:
        self._progress.started(runs, steps)

    def compiling(self, config: RunConfig) -> None:
        self._progress.compiling(config)

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        self._progress.stepped(steps, config, evaluation)
        if self._channels:
            self._seen[config.run_id] = config
            self._point(config.run_id, evaluation)

    def finished(self, outcome: Outcome) -> None:
        self._progress.finished(outcome)
        if self._channels:
            self._seen[outcome.config.run_id] = outcome.config

    def measuring(self, done: int, total: int) -> None:
        self._progress.measuring(done, total)

    # What is known at the end

    def scores(self, store: Store) -> None:
        """Give the scores of the runs that were trained now, and the points of their curves that no worker reported.

        Args:
            store: The store that has them.
        """
        if not self._channels:
            return
        for run_id in self._seen:
            if (status := store.status(run_id)) is None:
                continue
            curves: Any = store.curves_df([run_id])  # pyright: ignore[reportAttributeAccessIssue]
            for point in curves.drop(columns="run").to_dict("records"):
                self._point(run_id, point)
            end: dict[str, float | str] = {"status": status}
            end |= {name: value for name, value in store.summaries(run_id).items() if _is_number(value)}
            last = max(self._steps.get(run_id, {0}), default=0)
            self._give(run_id, lambda run, last=last, end=end: run.summary(last, end))
            for channel in self._channels:
                channel.close(run_id)

    def group_table(self, name: str, frame: pd.DataFrame, summary: Values | None = None) -> None:
        """Give a table of the study or the sweep as a whole, with its most important numbers.

        Args:
            name: The name of the table.
            frame: The table.
            summary: Numbers by name.
        """
        self._give(self._group, lambda run: run.table(name, frame))
        if summary:
            self._give(self._group, lambda run: run.summary(0, summary))

    def figures(self, make: Callable[[], Sequence[Figure]]) -> None:
        """Give the figures of a study. They are only made where a tracker receives them.

        Args:
            make: Makes the figures.
        """
        if not self._channels:
            return
        try:
            made = list(make())
        except Exception as error:  # noqa: BLE001 - the runs and the verdicts are there; a figure ends nothing.
            log.warning(f"The figures could not be made for trackers: {type(error).__name__}: {error}")
            return
        for channel in self._channels:
            channel.put(self._group, {}, lambda run: _send(run, made))


def _send(run: TrackedRun, figures: Sequence[Figure]) -> None:
    with tempfile.TemporaryDirectory(prefix="recombine-") as folder:
        for figure in figures:
            run.figure(figure.name, figure.save(Path(folder) / f"{figure.name}.png"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
