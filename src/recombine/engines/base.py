"""Engines: train the runs that are missing, store them, measure them."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import ClassVar

from recombine.errors import BadInput
from recombine.probes.base import Measurement
from recombine.registry import check_known
from recombine.store.repair import mend
from recombine.store.store import Store
from recombine.training import Outcome, Progress, RunConfig
from recombine.training.estimate import Estimate
from recombine.training.prepare import check_line
from recombine.training.program import buckets

Runs = Sequence[RunConfig]
"""The runs of a sweep; repeated ones count once."""

Probes = Sequence[Measurement]
"""What is measured of each run."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a sweep would do, and what is done already."""

    runs: int
    """Different runs. Parents that were not asked for are not counted."""
    done: int
    """Runs that are in the store."""
    failed: int
    """Runs that are in the store as failed."""
    buckets: int
    """Programs to compile."""
    steps: int
    """Steps left over all runs."""
    measurements: int
    """Measurements left."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What a sweep did."""

    trained: int
    """Runs trained now."""
    found: int
    """Runs that were in the store already."""
    failed: tuple[str, ...]
    """Runs whose loss did not stay finite, now or earlier."""
    measured: int
    """Measurements made now."""
    compilations: int
    """Programs compiled."""
    compile_seconds: float
    train_seconds: float


def plan(store: Store | None, configs: Runs, measurements: Probes = ()) -> Plan:
    """Say what is left to do. Nothing is drawn or trained. Runs that cannot start from their parents raise `BadInput`.

    Args:
        store: The store, or None where there is none yet.
        configs: The runs; repeated ones count once.
        measurements: What is to be measured of each run.

    Returns:
        The numbers of runs, programs, steps and measurements.
    """
    unique = {config.run_id: config for config in configs}
    check_lines(list(unique.values()))
    status = {run_id: None if store is None else store.status(run_id) for run_id in unique}
    left = [config for run_id, config in unique.items() if status[run_id] is None]
    left += missing_parents(store, left)
    measured = [
        store is not None and status[run_id] == "complete" and store.has_measurement(run_id, measurement)
        for run_id in unique
        for measurement in measurements
        if status[run_id] != "failed"
    ]
    return Plan(
        runs=len(unique),
        done=sum(word == "complete" for word in status.values()),
        failed=sum(word == "failed" for word in status.values()),
        buckets=len(buckets(left)),
        steps=sum(config.recipe.steps for config in left),
        measurements=measured.count(False),
    )


def check_lines(configs: Runs) -> None:
    """Raise BadInput if one of these runs, or of their ancestors, cannot start from its parents (see `check_line`)."""
    line = {run_id: parent for config in configs for run_id, parent in config.ancestors().items()}
    for config in (*configs, *line.values()):
        if config.parents or config.trains:
            check_line(config)


def missing_parents(store: Store | None, configs: Runs) -> list[RunConfig]:
    """The ancestors that these runs need and that are neither among them nor in the store, the oldest first."""
    unique = {config.run_id for config in configs}
    found: dict[str, RunConfig] = {}

    def need(config: RunConfig) -> None:
        for parent in config.parents:
            known = parent.run_id in unique or parent.run_id in found
            # A parent that is in the store needs no parents of its own any more.
            if not known and (store is None or parent not in store):
                need(parent)
                found[parent.run_id] = parent

    for config in configs:
        need(config)
    return list(found.values())


class Engine(abc.ABC):
    """Trains and measures the runs of a sweep."""

    elsewhere: ClassVar[bool] = False
    """Whether other processes train: they must be able to import the components."""

    def run(self, store: Store, configs: Runs, measurements: Probes = (), progress: Progress | None = None) -> Sweep:
        """Make the store hold all these runs and measurements. Nothing is done twice. Parents are trained first, once.

        First every byte of those that are there is checked: what can be rebuilt is rebuilt, the rest is made again.

        Args:
            store: Where results go.
            configs: The runs; repeated ones count once.
            measurements: What to measure of each run.
            progress: Called as the sweep goes on.

        Returns:
            What was done. Runs that do not fit into memory raise `NotEnoughMemory` after the others are done.
        """
        unique = list({config.run_id: config for config in configs}.values())
        mend(store, (config.run_id for config in unique))
        check_lines(unique)
        parts = {type(part): part for config in unique for part in config.components().values()}
        check_known([*parts.values(), *measurements], elsewhere=self.elsewhere)
        if progress is not None:
            from recombine.engines.time_estimate import estimate  # It needs `missing_parents`.

            progress.expecting(functools.partial(estimate, store, unique, measurements))
        if not any(config.parents for config in unique):
            return self.run_generation(store, unique, measurements, progress)
        left = [config for config in unique if config not in store]
        # A measurement may compare a network with the one that it started from.
        unmeasured = [
            config
            for config in unique
            if config.parents and not all(store.has_measurement(config.run_id, each) for each in measurements)
        ]
        extra = missing_parents(store, [*left, *unmeasured])
        self._blocked(store, left, extra)
        generations = sorted({config.generation for config in (*unique, *extra)})
        progress = _OneBar(progress or Progress(), [*left, *extra])
        sweeps = []
        for generation in generations:
            for some, probes in ((extra, ()), (unique, measurements)):
                runs = [config for config in some if config.generation == generation]
                if runs := [config for config in runs if config in store or not failed_parents(store, config)]:
                    sweeps.append(self.run_generation(store, runs, probes, progress))
        return Sweep(
            *(sum(getattr(sweep, name) for sweep in sweeps) for name in ("trained", "found")),
            failed=tuple(run_id for sweep in sweeps for run_id in sweep.failed),
            measured=sum(sweep.measured for sweep in sweeps),
            compilations=sum(sweep.compilations for sweep in sweeps),
            compile_seconds=sum(sweep.compile_seconds for sweep in sweeps),
            train_seconds=sum(sweep.train_seconds for sweep in sweeps),
        )

    def _blocked(self, store: Store, left: Runs, extra: Runs) -> None:
        """Say which runs cannot be trained as a parent failed earlier; BadInput where none can."""
        blocked = {config.run_id: failed for config in left if (failed := failed_parents(store, config))}
        for run_id, failed in blocked.items():
            store.report(f"The run {run_id} cannot be trained: its parent {failed[0]} failed.")
        if left and not extra and len(blocked) == len(left):
            run_id, failed = next(iter(blocked.items()))
            fix = (
                f"recombine show {failed[0]} says where; give the parent other settings, such as a lower learning rate"
            )
            raise BadInput(f"The run {run_id} cannot be trained: its parent {failed[0]} failed.", fix=fix)

    @abc.abstractmethod
    def run_generation(
        self, store: Store, configs: Runs, measurements: Probes = (), progress: Progress | None = None
    ) -> Sweep:
        """`run` for runs whose parents are all in the store."""


def failed_parents(store: Store, config: RunConfig) -> list[str]:
    """The parents of a run that failed, or that are missing as their own parents failed."""

    def failed(parent: RunConfig) -> bool:
        status = store.status(parent.run_id)
        return status == "failed" or (status is None and bool(failed_parents(store, parent)))

    return [parent.run_id for parent in config.parents if failed(parent)]


class _OneBar(Progress):
    """The progress of several generations as one: it starts once, with the sum of all steps."""

    def __init__(self, progress: Progress, configs: Runs) -> None:
        self._progress, self._left = progress, (len(configs), sum(config.recipe.steps for config in configs))

    def expecting(self, estimate: Callable[[], Estimate]) -> None:
        self._progress.expecting(estimate)

    def started(self, runs: int, steps: int) -> None:
        if self._left is not None:
            self._progress.started(*self._left)
            self._left = None

    def compiling(self, config: RunConfig) -> None:
        self._progress.compiling(config)

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        self._progress.stepped(steps, config, evaluation)

    def finished(self, outcome: Outcome) -> None:
        self._progress.finished(outcome)

    def measuring(self, done: int, total: int) -> None:
        self._progress.measuring(done, total)
