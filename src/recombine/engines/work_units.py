"""Work units: what is left of a sweep, split into pieces for workers.

A unit is some runs of one bucket with their measurements. It is pure data and travels as JSON text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from recombine.component import field
from recombine.engines.base import Probes, Runs
from recombine.probes.base import Measurement
from recombine.store.store import Store
from recombine.training.config import RunConfig
from recombine.training.estimate import flops_per_step, machine_flops
from recombine.training.program import buckets

UNITS_PER_WORKER = 3
"""Units per worker, so that a worker that is done early finds more to do."""

MIN_UNIT_SECONDS = 10.0
"""The shortest time for a unit: about the time to compile its program, which each worker does once."""

MEASUREMENT_SECONDS = 1.0
"""The assumed time of a measurement. Only the order of units depends on it."""


class WorkUnit(BaseModel):
    """Some runs of one bucket, for one worker."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    configs: tuple[RunConfig, ...]
    """Runs of one bucket."""
    measurements: tuple[field("probes", Measurement), ...] = ()  # type: ignore[valid-type]
    stack_size: int = 1
    """Runs that are trained side by side. Stacks are not split."""
    seconds: float = 0.0
    """The estimated time."""
    attempt: int = 0
    """How many workers were lost while they worked on it."""


def unfinished(store: Store, configs: Runs, measurements: Probes) -> list[RunConfig]:
    """The runs that are not in the store, or lack one of the measurements. A failed run is finished."""
    unique = {config.run_id: config for config in configs}
    status = {run_id: store.status(run_id) for run_id in unique}
    measured = {
        run_id: word == "failed" or all(store.has_measurement(run_id, measurement) for measurement in measurements)
        for run_id, word in status.items()
        if word is not None
    }
    return [config for run_id, config in unique.items() if not measured.get(run_id)]


def estimated(store: Store, configs: Runs, measurements: Probes) -> dict[str, float]:
    """Estimate the seconds that each run still needs, from the arithmetic of its steps."""
    left = {}
    for _, bucket in buckets(configs):
        step = flops_per_step(bucket[0]) / machine_flops()
        for config in bucket:
            training = 0.0 if config in store else step * config.recipe.steps
            left[config.run_id] = training + MEASUREMENT_SECONDS * len(measurements)
    return left


def split_work(
    configs: Runs, measurements: Probes, seconds: Mapping[str, float], workers: int, least: float = MIN_UNIT_SECONDS
) -> list[WorkUnit]:
    """Split runs into work units, largest first.

    Buckets are split between stacks, so that each run is stacked with the same others as in one process.

    Args:
        configs: The runs.
        measurements: What to measure of each run.
        seconds: The estimated time of each run.
        workers: The number of workers to keep busy.
        least: Seconds that a unit should last at least.
    """
    unique = {config.run_id: config for config in configs}
    wanted = max(least, sum(seconds[run_id] for run_id in unique) / (workers * UNITS_PER_WORKER))
    units: list[WorkUnit] = []
    for program, bucket in buckets(unique.values()):
        stacks = [bucket[first : first + program.stack_size] for first in range(0, len(bucket), program.stack_size)]
        whole = sum(seconds[config.run_id] for config in bucket)
        parts = max(1, min(len(stacks), math.floor(whole / wanted) if wanted else len(stacks)))
        for part in split_evenly(stacks, parts):
            runs = tuple(itertools.chain(*part))
            length = sum(seconds[config.run_id] for config in runs)
            units.append(
                WorkUnit(configs=runs, measurements=tuple(measurements), stack_size=program.stack_size, seconds=length)
            )
    return sorted(units, key=lambda unit: -unit.seconds)


def split_evenly(stacks: Sequence[list[RunConfig]], parts: int) -> list[Sequence[list[RunConfig]]]:
    """Split stacks into pieces, in order, whose lengths differ by at most one."""
    edges = [round(index * len(stacks) / parts) for index in range(parts + 1)]
    return [stacks[low:high] for low, high in itertools.pairwise(edges)]


def halves(unit: WorkUnit, store: Store) -> list[WorkUnit]:
    """Split what is left of a unit whose worker was lost into two, so that the cause affects fewer runs."""
    left = unfinished(store, unit.configs, unit.measurements)
    stack_size = unit.stack_size if len(left) > unit.stack_size else 1
    stacks = [left[first : first + stack_size] for first in range(0, len(left), stack_size)]
    pieces = split_evenly(stacks, min(2, len(stacks))) if stacks else []
    return [
        unit.model_copy(
            update={
                "configs": tuple(itertools.chain(*piece)),
                "seconds": unit.seconds * sum(map(len, piece)) / len(unit.configs),
                "attempt": unit.attempt + 1,
            }
        )
        for piece in pieces
    ]
