"""Engines: train the runs that are missing, store them, measure them."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence

from recombine.probes.base import Measurement
from recombine.store.store import Store
from recombine.training import Progress, RunConfig
from recombine.training.program import buckets

Runs = Sequence[RunConfig]
"""The runs of a sweep; repeated ones count once."""

Probes = Sequence[Measurement]
"""What is measured of each run."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a sweep would do, and what is done already."""

    runs: int
    """Different runs."""
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
    """Say what is left to do. Nothing is drawn or trained.

    Args:
        store: The store, or None where there is none yet.
        configs: The runs; repeated ones count once.
        measurements: What is to be measured of each run.

    Returns:
        The numbers of runs, programs, steps and measurements.
    """
    unique = {config.run_id: config for config in configs}
    status = {run_id: None if store is None else store.status(run_id) for run_id in unique}
    left = [config for run_id, config in unique.items() if status[run_id] is None]
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


class Engine(abc.ABC):
    """Trains and measures the runs of a sweep."""

    @abc.abstractmethod
    def run(self, store: Store, configs: Runs, measurements: Probes = (), progress: Progress | None = None) -> Sweep:
        """Make the store hold all these runs and measurements. Nothing is done twice.

        Args:
            store: Where results go.
            configs: The runs; repeated ones count once.
            measurements: What to measure of each run.
            progress: Called as the sweep goes on.

        Returns:
            What was done. Runs that do not fit into memory raise `NotEnoughMemory` after the others are done.
        """
