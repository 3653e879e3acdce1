"""What an engine does: train what is missing, store it, measure it."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence

from recombine.probes.base import Measurement
from recombine.store.store import Store
from recombine.training.config import RunConfig
from recombine.training.program import buckets
from recombine.training.train import Progress


class SweepProgress(Progress):
    """What a sweep reports beyond training."""

    def measuring(self, done: int, total: int) -> None:
        """So many of so many measurements are made."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a sweep would do, and what is done already."""

    runs: int
    done: int
    failed: int
    buckets: int
    """Programs that would be compiled."""
    steps: int
    """Steps left, over all runs."""
    measurements: int
    """Measurements left."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What a sweep did."""

    trained: int
    found: int
    """Runs that were there already."""
    failed: tuple[str, ...]
    """Runs whose loss did not stay finite, now or earlier."""
    measured: int
    compilations: int
    compile_seconds: float
    train_seconds: float


def plan(store: Store | None, configs: Sequence[RunConfig], measurements: Sequence[Measurement] = ()) -> Plan:
    """What is left to do, in a store that may not be there yet. Draws nothing and trains nothing."""
    unique = {config.run_id: config for config in configs}
    status = {run_id: None if store is None else store.status(run_id) for run_id in unique}
    left = [config for run_id, config in unique.items() if status[run_id] is None]
    to_measure = [
        (run_id, measurement)
        for run_id in unique
        for measurement in measurements
        if status[run_id] != "failed"
        and not (store is not None and status[run_id] and store.has_measurement(run_id, measurement))
    ]
    return Plan(
        runs=len(unique),
        done=sum(word == "complete" for word in status.values()),
        failed=sum(word == "failed" for word in status.values()),
        buckets=len(buckets(left)),
        steps=sum(config.recipe.steps for config in left),
        measurements=len(to_measure),
    )


class Engine(abc.ABC):
    """Where buckets run."""

    @abc.abstractmethod
    def run(
        self,
        store: Store,
        configs: Sequence[RunConfig],
        measurements: Sequence[Measurement] = (),
        progress: SweepProgress | None = None,
    ) -> Sweep:
        """Bring the store to hold all these runs and measurements. What is there is not done again."""
