"""The engine that trains in this process."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from recombine import interrupts
from recombine.engines.base import Engine, Probes, Runs, Sweep
from recombine.errors import BadInput, StoreError
from recombine.probes.base import Measured, Measurement
from recombine.store.files import explained
from recombine.store.store import Store
from recombine.training import NotEnoughMemory, Progress, RunConfig, Trainer
from recombine.training.program import Program, shared_compiler
from recombine.training.timings import Stopwatch, compiled_now, names_of, program_key, timings


class LocalEngine(Engine):
    """Trains bucket after bucket in this process. Each run is stored as soon as it ends.

    The engines of a process share their compiled programs: what a second sweep shares with the first is not compiled
    again.
    """

    def __init__(self, devices: int = 1) -> None:
        """Make an engine.

        Args:
            devices: The number of devices over which the tasks of each batch are spread.
        """
        self._compiler = shared_compiler()
        self._devices = devices
        self._measured: set[str] = set()
        """What was measured in this process, by the most exact name of its time: the first one may compile."""

    def run_generation(
        self, store: Store, configs: Runs, measurements: Probes = (), progress: Progress | None = None
    ) -> Sweep:
        progress = progress or Progress()
        unique = {config.run_id: config for config in configs}
        left = [config for config in unique.values() if config not in store]
        if left:
            store.check_writable()
        # Read once for all children that follow each other.
        read = functools.lru_cache(maxsize=2)(lambda run_id: store.load(run_id).network)
        trainer = Trainer(
            store.checkpoints,
            progress,
            self._devices,
            compiler=self._compiler,
            parents=lambda parent: read(parent.run_id),
        )
        compilations, compile_seconds = self._compiler.compilations, self._compiler.seconds
        seconds = 0.0
        # Checkpoints are written in the store too, while training goes on.
        does_not_fit: NotEnoughMemory | None = None
        with explained(store.path):
            try:
                for outcome in trainer.train(left):
                    store.commit(outcome)
                    trainer.forget(outcome.config)
                    interrupts.check()
                    seconds += outcome.seconds
            except NotEnoughMemory as error:
                does_not_fit = error  # Raised after all others are trained and measured.
        complete = [run_id for run_id in unique if store.status(run_id) == "complete"]
        try:
            measured = self._measure(store, complete, measurements, progress)
        finally:
            timings().save()
        if does_not_fit is not None:
            raise does_not_fit
        return Sweep(
            trained=len(left),
            found=len(unique) - len(left),
            failed=tuple(run_id for run_id in unique if store.status(run_id) == "failed"),
            measured=measured,
            compilations=self._compiler.compilations - compilations,
            compile_seconds=self._compiler.seconds - compile_seconds,
            train_seconds=seconds,
        )

    def _measure(self, store: Store, run_ids: Sequence[str], measurements: Probes, progress: Progress) -> int:
        wanted = itertools.product(measurements, run_ids)
        missing = [
            (run_id, measurement) for measurement, run_id in wanted if not store.has_measurement(run_id, measurement)
        ]
        measured_now, damaged = 0, set[str]()
        refusals: dict[tuple[str, str], list[str]] = {}
        for index, (run_id, measurement) in enumerate(missing):
            interrupts.check()
            progress.measuring(index, len(missing))
            try:
                run = store.load(run_id)
                setting, network = run.setting, run.network
            except StoreError as error:
                # Its weights cannot be read. The others are measured, and the next sweep trains this one again.
                damaged.add(run_id)
                store.report(str(error))
                continue
            try:
                watch, misses = Stopwatch(), compiled_now()
                measured = measurement.measure(setting, network)
                self._note(measurement, run.config, watch.seconds(), compiled_now() > misses)
                measurement.check_summary(measured, run.config)
            except BadInput as refusal:
                # This run has nothing to measure (too few held-out combinations, for example). The refusal is stored,
                # so that the measurement is not tried again. The others are measured.
                measured = Measured({}, {}, refused=str(refusal))
                refusals.setdefault((measurement.kind, str(refusal)), []).append(run_id)
            store.add_measurement(run_id, measurement, measured)
            measured_now += 1
        # Once per reason: a study may measure several kinds of runs.
        for (kind, reason), refused in refusals.items():
            who = f"run {refused[0]} does" if len(refused) == 1 else f"{len(refused)} runs ({refused[0]}, ...) do"
            store.report(f"{who} not allow the measurement {kind}: {reason}")
        if missing:
            progress.measuring(len(missing), len(missing))
        for run_id in damaged:
            store.set_aside(run_id)
        return measured_now

    def _note(self, measurement: Measurement, config: RunConfig, seconds: float, compiled: bool) -> None:
        """Note how long a measurement took."""
        key = program_key(Program.of(config), config)
        first = f"{measurement.name}|{key}" not in self._measured
        self._measured.add(f"{measurement.name}|{key}")
        how = "cold" if compiled else "warm" if first else "again"
        timings().note(names_of(f"measure {how}", key, config, detail=measurement.name), seconds)
