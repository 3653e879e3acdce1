"""Cutting what is left of a sweep into parcels: runs of one bucket, with their measurements, for one worker.

A parcel is pure data and travels as JSON text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from recombine.component import field
from recombine.probes.base import Measurement
from recombine.store.store import Store
from recombine.training.config import RunConfig
from recombine.training.estimate import flops_per_step, machine_flops
from recombine.training.program import buckets

SHARES = 3
"""Parcels a worker, so that those who are done early find more to do."""

LEAST_SECONDS = 10.0
"""What a parcel should last: about as long as its program takes to compile, which each worker does once."""

MEASUREMENT_SECONDS = 1.0
"""What a measurement is taken to last. Only the order of parcels depends on it."""


class Parcel(BaseModel):
    """What one worker does at a time."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    configs: tuple[RunConfig, ...]
    """Runs of one bucket."""
    measurements: tuple[field("probes", Measurement), ...] = ()  # type: ignore[valid-type]
    lanes: int = 1
    """Runs that are trained side by side: a parcel is cut between stacks."""
    seconds: float = 0.0
    """How long it would take, roughly."""
    attempt: int = 0
    """How often a worker was lost over it."""

    def text(self) -> str:
        """As one line of JSON."""
        return self.model_dump_json()

    @classmethod
    def of_text(cls, text: str | bytes) -> Parcel:
        """The parcel that was written so."""
        return cls.model_validate_json(text)


def unfinished(
    store: Store, configs: Sequence[RunConfig], measurements: Sequence[Measurement]
) -> list[RunConfig]:
    """Runs that are not in the store, or not measured in all these ways. A failed run is finished."""
    unique = {config.run_id: config for config in configs}
    status = {run_id: store.status(run_id) for run_id in unique}
    return [
        config
        for run_id, config in unique.items()
        if status[run_id] is None
        or (
            status[run_id] == "complete"
            and not all(store.has_measurement(run_id, measurement) for measurement in measurements)
        )
    ]


def estimated(
    store: Store, configs: Sequence[RunConfig], measurements: Sequence[Measurement]
) -> dict[str, float]:
    """About how many seconds each run is still away from its end, from the arithmetic of its steps."""
    found = {}
    for _, bucket in buckets(configs):
        step = flops_per_step(bucket[0]) / machine_flops()
        for config in bucket:
            training = 0.0 if config in store else step * config.recipe.steps
            found[config.run_id] = training + MEASUREMENT_SECONDS * len(measurements)
    return found


def cut(
    configs: Sequence[RunConfig],
    measurements: Sequence[Measurement],
    seconds: Mapping[str, float],
    workers: int,
    least: float = LEAST_SECONDS,
) -> list[Parcel]:
    """Parcels of these runs, largest first: enough for so many workers, none much shorter than `least` seconds.

    A bucket is cut between stacks, so that no run is trained beside others than it would be in one process.
    """
    unique = {config.run_id: config for config in configs}
    wanted = max(least, sum(seconds[run_id] for run_id in unique) / (workers * SHARES))
    parcels: list[Parcel] = []
    for program, bucket in buckets(unique.values()):
        stacks = [bucket[first : first + program.lanes] for first in range(0, len(bucket), program.lanes)]
        whole = sum(seconds[config.run_id] for config in bucket)
        parts = max(1, min(len(stacks), math.floor(whole / wanted) if wanted else len(stacks)))
        for part in shared_out(stacks, parts):
            runs = tuple(config for stack in part for config in stack)
            length = sum(seconds[config.run_id] for config in runs)
            parcels.append(
                Parcel(configs=runs, measurements=tuple(measurements), lanes=program.lanes, seconds=length)
            )
    return sorted(parcels, key=lambda parcel: -parcel.seconds)


def shared_out(stacks: Sequence[list[RunConfig]], parts: int) -> list[Sequence[list[RunConfig]]]:
    """The stacks in so many pieces, in their order, whose lengths differ by one at most."""
    edges = [round(index * len(stacks) / parts) for index in range(parts + 1)]
    return [stacks[low:high] for low, high in itertools.pairwise(edges)]


def halves(parcel: Parcel, store: Store) -> list[Parcel]:
    """What is left of a parcel whose worker was lost, in two, so that what broke it breaks less."""
    left = unfinished(store, parcel.configs, parcel.measurements)
    lanes = parcel.lanes if len(left) > parcel.lanes else 1
    stacks = [left[first : first + lanes] for first in range(0, len(left), lanes)]
    pieces = shared_out(stacks, min(2, len(stacks))) if stacks else []
    return [
        parcel.model_copy(
            update={
                "configs": tuple(config for stack in piece for config in stack),
                "seconds": parcel.seconds * sum(map(len, piece)) / len(parcel.configs),
                "attempt": parcel.attempt + 1,
            }
        )
        for piece in pieces
    ]
