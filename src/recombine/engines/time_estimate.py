"""How long a sweep will take here: programs to compile, steps to train and measurements to make, each times what it took before."""

from __future__ import annotations

from collections.abc import Sequence

from recombine.engines.base import Probes, Runs, missing_parents
from recombine.probes.base import Measurement
from recombine.store.store import Store
from recombine.training.config import RunConfig
from recombine.training.estimate import Estimate, flops_per_step, machine_flops
from recombine.training.flops import step_flops
from recombine.training.program import Program, buckets
from recombine.training.timings import Timings, names_of, program_key, timings

GUESSES = {
    "start cold": 8.0,
    "start warm": 1.5,
    "start again": 0.2,
    "measure cold": 4.0,
    "measure warm": 1.0,
    "measure again": 0.5,
}
"""Seconds where nothing was measured on this machine yet: typical of two cores."""


def estimate(store: Store | None, configs: Runs, measurements: Probes = ()) -> Estimate:
    """Estimate how long a sweep takes in one process on this machine. Nothing is drawn, compiled or trained.

    Args:
        store: The store, or None where there is none yet: what it has takes no time.
        configs: The runs; repeated ones count once.
        measurements: What is to be measured of each run.

    Returns:
        The times of compiling, training and measuring.

    Example:
        ```python
        estimate(None, [config], [rc.probes.Scores()]).seconds
        ```
    """
    unique = {config.run_id: config for config in configs}
    status = {run_id: None if store is None else store.status(run_id) for run_id in unique}
    left = [config for run_id, config in unique.items() if status[run_id] is None]
    left += missing_parents(store, left)
    known = timings()
    starts: dict[str, float] = {}
    steps: dict[str, float] = {}
    compiling = training = 0.0
    counts = {"cold": 0, "warm": 0}
    guessed = 0
    for program, bucket in buckets(left):
        first, key = bucket[0], program_key(program, bucket[0])
        step, measured = _step_seconds(known, key, first)
        again = _seconds(known, names_of("start again", key, first))
        trained = [config for config in bucket if config.recipe.steps]
        if trained:  # Networks that are not trained need no program.
            how = "warm" if _compiled(known, "start", key) else "cold"
            counts[how] += 1
            guessed += not measured
            starts[trained[0].run_id] = _seconds(known, names_of(f"start {how}", key, first))
            compiling += starts[trained[0].run_id]
        for config in bucket:
            steps[config.run_id] = step
            starts.setdefault(config.run_id, again)
            training += step * config.recipe.steps
        # A stack is prepared as a whole.
        training += again * max(0, -(-len(trained) // program.stack_size) - 1)
    wanted = [
        (config, measurement)
        for run_id, config in unique.items()
        if status[run_id] != "failed"
        for measurement in measurements
        if status[run_id] is None or store is None or not store.has_measurement(run_id, measurement)
    ]
    measuring = _measuring_seconds(known, wanted)
    return Estimate(compiling, training, measuring, counts["cold"], counts["warm"], guessed, starts, steps)


def _compiled(known: Timings, what: str, key: str, detail: str = "") -> bool:
    """Whether a program was compiled on this machine before, so that it is in the cache on disk."""
    return any(known.knows(f"{what} {how}|{detail}|{key}") for how in ("cold", "warm", "again"))


def _seconds(known: Timings, names: Sequence[str]) -> float:
    found = known.seconds(names)
    return GUESSES[names[-1]] if found is None else found


def _step_seconds(known: Timings, key: str, config: RunConfig) -> tuple[float, bool]:
    """The seconds of a step, and whether they rest on a measured time."""
    exact, *alike = names_of("step", key, config)
    if (seconds := known.seconds([exact])) is not None:
        return seconds, True
    if (per_operation := known.seconds(alike[:-1])) is not None:
        return per_operation * max(1.0, flops_per_step(config)), True
    return flops_per_step(config) * _correction(config) / machine_flops(), False


def _correction(config: RunConfig) -> float:
    """The compiler's count of a step's operations relative to `flops_per_step`."""
    # Sequences are close to one, and their families take long to draw.
    if config.family.targets == "tokens":
        return 1.0
    parts = config.model.kind, config.family.kind, config.objective.kind
    if parts not in _corrections:
        _corrections[parts] = max(1.0, step_flops(config)) / max(1.0, flops_per_step(config))
    return _corrections[parts]


_corrections: dict[tuple[str, str, str], float] = {}
"""Counting takes up to a second, and runs of one kind have about the same ratio."""


def _measuring_seconds(known: Timings, wanted: Sequence[tuple[RunConfig, Measurement]]) -> float:
    seconds, met = 0.0, set[str]()
    keys: dict[str, str] = {}
    for config, measurement in wanted:
        if config.run_id not in keys:
            keys[config.run_id] = program_key(Program.of(config), config)
        key = keys[config.run_id]
        place = f"{measurement.name}|{key}"
        kept = _compiled(known, "measure", key, measurement.name)
        how = "again" if place in met else "warm" if kept else "cold"
        met.add(place)
        seconds += _seconds(known, names_of(f"measure {how}", key, config, detail=measurement.name))
    return seconds
