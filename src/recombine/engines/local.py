"""This process."""

from __future__ import annotations

from collections.abc import Sequence

from recombine.engines.base import Engine, Sweep, SweepProgress
from recombine.errors import BadInput, StoreError
from recombine.probes.base import Measured, Measurement
from recombine.store.files import explained
from recombine.store.store import Store
from recombine.training.config import RunConfig
from recombine.training.memory import NotEnoughMemory
from recombine.training.program import Compiler
from recombine.training.train import Trainer


class LocalEngine(Engine):
    """Trains bucket after bucket in this process. Each run is stored the moment it ends.

    Keeps its compiled programs: what a second sweep shares with the first is not compiled again.
    """

    def __init__(self, devices: int = 1) -> None:
        self._compiler = Compiler()
        self._devices = devices

    def run(
        self,
        store: Store,
        configs: Sequence[RunConfig],
        measurements: Sequence[Measurement] = (),
        progress: SweepProgress | None = None,
    ) -> Sweep:
        progress = progress or SweepProgress()
        unique = {config.run_id: config for config in configs}
        left = [config for config in unique.values() if config not in store]
        if left:
            store.check_writable()
        trainer = Trainer(store.checkpoints, progress, self._devices)
        trainer.compiler = self._compiler
        compilations, compile_seconds = self._compiler.compilations, self._compiler.seconds
        seconds = 0.0
        # Checkpoints are written in the store too, while training goes on.
        too_large: NotEnoughMemory | None = None
        with explained(store.path):
            try:
                for outcome in trainer.train(left):
                    store.commit(outcome)
                    trainer.forget(outcome.config)
                    seconds += outcome.seconds
            except NotEnoughMemory as error:
                too_large = error  # It comes when all others are trained: they are measured all the same.
        complete = [run_id for run_id in unique if store.status(run_id) == "complete"]
        measured = self._measure(store, complete, measurements, progress)
        if too_large is not None:
            raise too_large
        return Sweep(
            trained=len(left),
            found=len(unique) - len(left),
            failed=tuple(run_id for run_id in unique if store.status(run_id) == "failed"),
            measured=measured,
            compilations=self._compiler.compilations - compilations,
            compile_seconds=self._compiler.seconds - compile_seconds,
            train_seconds=seconds,
        )

    def _measure(
        self,
        store: Store,
        run_ids: Sequence[str],
        measurements: Sequence[Measurement],
        progress: SweepProgress,
    ) -> int:
        missing = [
            (run_id, measurement)
            for measurement in measurements
            for run_id in run_ids
            if not store.has_measurement(run_id, measurement)
        ]
        made, damaged = 0, set[str]()
        for index, (run_id, measurement) in enumerate(missing):
            progress.measuring(index, len(missing))
            try:
                run = store.load(run_id)
                setting, network = run.setting, run.model
            except StoreError as error:
                # Its weights cannot be read. The others are measured; the next sweep trains this one again.
                damaged.add(run_id)
                store.report(str(error))
                continue
            try:
                measured = measurement.measure(setting, network)
            except BadInput as refusal:
                # Nothing to measure in this run (too few combinations held out, say): so it is written down, and not
                # tried again. The others are measured.
                measured = Measured({}, {}, refused=str(refusal))
                store.report(f"run {run_id} does not allow the measurement {measurement.kind}: {refusal}")
            store.add_measurement(run_id, measurement, measured)
            made += 1
        if missing:
            progress.measuring(len(missing), len(missing))
        for run_id in damaged:
            store.set_aside(run_id)
        return made
