"""Checking every byte of a store, and repairing it. What cannot be repaired is moved to set-aside/; nothing is deleted.

The next sweep makes lost runs again: runs follow from their configurations, and equal plans give equal bits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from recombine.errors import StoreError
from recombine.progress import StepCallback, no_progress
from recombine.store.files import NewerFormat, explained, read_record, reclaim, replacing, set_aside, write_json
from recombine.store.manifest import CURVES, MANIFEST, WEIGHTS, damage, read_manifest, rebuilt, with_files, write_curves
from recombine.store.measurements import check_table, read_measurement
from recombine.store.store import MARKER, Store, check_marker, is_store, is_study, write_marker
from recombine.store.stored_run import StoredRun
from recombine.training.checkpoint import read_arrays
from recombine.writers import abandoned

RECORDS = ("studies", "requests", "tags", "notes")
"""Folders of records, one JSON file each."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """A problem in a store."""

    place: str
    """The path, relative to the store."""
    problem: str
    """The problem, in words."""
    done: str
    """What was done, or would be done without --dry-run."""
    remains: bool
    """Whether the problem remains."""


class Examination:
    """Checks everything in a store, and repairs it unless `repair` is false."""

    def __init__(self, path: Path, *, repair: bool = True, step: StepCallback = no_progress) -> None:
        if not path.is_dir() or not is_store(path):
            Store(path, create=False)  # Raises the error that says what is wrong.
        self.path = path
        self.repair = repair
        self.findings: list[Finding] = []
        self.runs = 0
        """The number of sound runs, after `run`."""
        self._step = step

    def run(self) -> list[Finding]:
        """Check everything; returns the problems."""
        with explained(self.path):
            self._marker()
            if self.repair and (left := reclaim(self.path)):
                self._note(self.path / "temporary", f"{left} left half-written by dead processes", "removed")
            runs = sorted(entry for entry in (self.path / "runs").glob("*") if entry.is_dir())
            for index, run in enumerate(runs):
                self._step(index, len(runs))
                self.runs += self.check_run(run)
            self._step(len(runs), len(runs))
            for name in RECORDS:
                for path in sorted((self.path / name).glob("*.json")):
                    self._record(path)
            for path in sorted((self.path / "checkpoints").glob("*.safetensors")):
                self._checkpoint(path)
        return self.findings

    def _note(self, place: Path, problem: str, done: str, *, remains: bool | None = None) -> None:
        where = place.relative_to(self.path).as_posix()
        remains = not self.repair if remains is None else remains
        problem = problem.replace(f"{self.path}/", "")
        self.findings.append(Finding(where, problem, done, remains))

    def _set_aside(self, place: Path, problem: str, *, name: str | None = None) -> None:
        """Move something to `set-aside/`."""
        if self.repair:
            set_aside(self.path, place, name or place.name, problem)
        self._note(place, problem, "set aside")

    def _marker(self) -> None:
        place = self.path / MARKER
        try:
            check_marker(self.path)
        except NewerFormat as error:
            self._note(place, error.message, "left alone: use the version that wrote it", remains=True)
            self.repair = False
        except StoreError as error:
            if self.repair:
                set_aside(self.path, place, MARKER, error.message)
                write_marker(self.path, self.path / "temporary")
            self._note(place, error.message, "written anew")

    # Runs

    def check_run(self, folder: Path) -> bool:
        """Check a run; returns whether it is sound now."""
        try:
            manifest = read_manifest(folder)
        except NewerFormat as error:
            self._note(folder, error.message, "left alone: use the version that wrote it", remains=True)
            return False
        except StoreError as error:
            if not self._made_anew(folder, folder / MANIFEST, error.message):
                return False
            manifest = read_manifest(folder)
        wrong = damage(folder, manifest)
        if wrong:
            name, state = next(iter(wrong.items()))
            problem = f"{name} is {state}"
            if set(wrong) != {CURVES}:
                self._set_aside(folder, problem)
                return False
            if not self._made_anew(folder, folder / CURVES, problem):
                return False
        if not self._loads(folder, manifest):
            return False
        self._measurements(folder)
        return True

    def _made_anew(self, folder: Path, damaged: Path, problem: str) -> bool:
        """Make the manifest or the curves again from the weights, or set the run aside; returns whether the run is sound now."""
        try:
            manifest, curves = rebuilt(folder)
        except StoreError:
            files = {path.name for path in folder.iterdir()}
            known = files & {MANIFEST, WEIGHTS, CURVES}
            self._set_aside(folder, problem if known else "not a run")
            return False
        self._note(damaged, problem, "made anew from the weights")
        if not self.repair:
            return False
        set_aside(self.path, damaged, f"{folder.name}-{damaged.name}", problem)
        if damaged.name == CURVES:
            manifest = read_manifest(folder)  # It has the times too.
        # Always the curves: without a manifest it is unknown whether they are complete.
        place = folder / CURVES
        with replacing(place, self.path / "temporary") as part:
            write_curves(part, curves)
            if place.exists() and place.read_bytes() != part.read_bytes():
                set_aside(self.path, place, f"{folder.name}-{CURVES}", problem)
        write_json(folder / MANIFEST, with_files(manifest, folder), self.path / "temporary")
        return True

    def _loads(self, folder: Path, manifest: dict[str, Any]) -> bool:
        """Whether a run can be used. The hash proves it; a run without a hash is loaded to see."""
        run = StoredRun(folder, manifest)
        try:
            _ = run.config
        except StoreError as error:
            done = "left alone: a component that is not installed here?"
            self._note(folder, error.message, done, remains=True)
            return False
        if "sha256" in manifest or manifest["status"] != "complete":
            return True
        try:
            _ = run.network
        except StoreError as error:
            self._set_aside(folder, error.message)
            return False
        return True

    def _measurements(self, run: Path) -> None:
        folder = run / "measurements"
        for place in sorted(folder.glob("*.json")):
            table = place.with_suffix(".parquet")
            try:
                record = read_measurement(folder, place.stem)
                if record is not None:
                    check_table(folder, place.stem, record)
            except StoreError as error:
                for damaged in (place, table) if self.repair else ():
                    set_aside(self.path, damaged, f"{run.name}-{damaged.name}", error.message)
                self._note(place, error.message, "set aside; the run is kept")
        for table in sorted(folder.glob("*.parquet")):
            if not self._being_written() and not table.with_suffix(".json").exists():
                self._set_aside(table, "a table without its record", name=f"{run.name}-{table.name}")

    def _being_written(self) -> bool:
        """Whether a process may be writing: it keeps a record in `temporary/` until the table is in place."""
        folder = self.path / "temporary"
        return folder.is_dir() and any(not abandoned(entry) for entry in folder.iterdir())

    # The rest

    def _record(self, path: Path) -> None:
        try:
            read_record(path, "a study", is_study if path.parent.name == "studies" else None)
        except StoreError as error:
            self._set_aside(path, error.message, name=f"{path.parent.name}-{path.name}")

    def _checkpoint(self, path: Path) -> None:
        try:
            read_arrays(path)
        except StoreError as error:
            if path.exists():  # The run may have ended meanwhile.
                self._set_aside(path, error.message, name=f"checkpoint-{path.name}")


def mend(store: Store, run_ids: Iterable[str]) -> list[Finding]:
    """Read every byte of these runs and repair what can be repaired, before a sweep trains and a verdict reads them.

    What cannot be repaired is set aside, so that the sweep makes it again. Everything is reported to the store.

    Args:
        store: The store, open for writing.
        run_ids: The runs; those that do not exist are skipped.

    Returns:
        The problems that were found.
    """
    examination = Examination(store.path)
    with explained(store.path):
        for run_id in dict.fromkeys(run_ids):
            if store.folder(run_id).is_dir():
                examination.check_run(store.folder(run_id))
    for finding in examination.findings:
        store.report(f"{finding.place}: {finding.problem}: {finding.done}.")
    return examination.findings
