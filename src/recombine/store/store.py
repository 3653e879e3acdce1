"""The store: one folder per run, named by the hash of what determines its weights.

<store>/recombine.json                  says that this is a store, and its format
<store>/runs/<run>/manifest.json        what the run is and how it ended; a folder without it is not a run
<store>/runs/<run>/weights.safetensors  the trained network
<store>/runs/<run>/curves.parquet       scores over steps
<store>/runs/<run>/measurements/        NAME.parquet and NAME.json, the latter written last
<store>/checkpoints/<run>.safetensors   runs in training
<store>/studies/<study>.json            which runs a study used, and the effects of its claims
<store>/requests/<kind>-<name>.json     a study or a sweep that was requested, with its runs and measurements
<store>/tags/<tag>.json                 names that people give to runs
<store>/notes/<run>.json                what people write about a run
<store>/set-aside/                      damaged files, moved here and never deleted, each with a note of why
<store>/index.cache                     a table of all runs that may be deleted at any time
<store>/temporary/                      files and folders being written
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine import _html
from recombine.errors import BadInput, StoreError, did_you_mean
from recombine.probes.base import Measured, Measurement
from recombine.store import files, tables
from recombine.store.manifest import FORMAT, MANIFEST, read_manifest, write_run, wrong_lengths
from recombine.store.measurements import check_table, names_of, oldest_first, read_measurement, write_measurement
from recombine.store.stored_run import StoredRun
from recombine.training import Outcome, RunConfig

if TYPE_CHECKING:
    from recombine.store.index import Index

MARKER = "recombine.json"

STUDY_KEYS = frozenset({"study", "profile", "config", "runs", "effects", "provenance"})

log = logging.getLogger(__name__)


class Store:
    """A folder of runs. Readers never lock; a writer's commit is one rename.

    Example:
        ```python
        store = rc.Store("runs")
        rc.LocalEngine().run(store, configs, [rc.probes.Scores()])
        store.runs_df()
        ```
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        """Open a store for writing, or with `create=False` for reading.

        Args:
            path: The store's folder.
            create: Create the store where there is none. Without it, a store that does not exist raises `StoreError`,
                and nothing is created.
        """
        self.path = Path(path)
        self.problems: list[str] = []
        """What could not be read, in words. Reading continues without it."""
        with files.explained(self.path):
            if self.path.exists() and not self.path.is_dir():
                raise StoreError(f"The store {self.path} is a file, not a folder.", fix="choose a folder with --store")
            if is_store(self.path):
                try:
                    check_marker(self.path)
                except files.NewerFormat as error:
                    if create:
                        raise
                    log.warning(error.message)
                except StoreError as error:
                    if create:
                        raise
                    self.report(error.message)  # It can be read, as far as possible, but not written.
            elif not create:
                state = f"has no {MARKER}" if self.path.is_dir() else "does not exist"
                fix = "check the path (--store); training into a new folder creates a store"
                raise StoreError(f"There is no store at {self.path}: the folder {state}.", fix=fix)
            else:
                self._create()
            if create:
                files.reclaim(self.path)
                # Checkpoints of stored runs were left by a process that was killed in between.
                for checkpoint in self.checkpoints.glob("*.safetensors"):
                    if self.status(checkpoint.stem) is not None:
                        checkpoint.unlink(missing_ok=True)

    def _facts(self) -> list[tuple[str, object]]:
        status = [self.status(name) for name in self.names()]
        studies = sorted({str(record["study"]) for record in self.studies()})
        facts: list[tuple[str, object]] = [("runs", status.count("complete"))]
        facts += [("failed runs", status.count("failed"))] if "failed" in status else []
        facts += [("damaged runs", status.count(None))] if None in status else []
        return [*facts, ("studies", ", ".join(studies) or "none")]

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}): " + "; ".join(f"{name}: {value}" for name, value in self._facts())

    def _repr_html_(self) -> str:
        return _html.card(f"Store {self.path}", _html.table(("", ""), self._facts()))

    def _create(self) -> None:
        files.make_folder(self.path)
        # Another process may create the store now: its temporary files begin with the marker's name.
        foreign = [entry.name for entry in self.path.iterdir() if not entry.name.startswith(MARKER)]
        if foreign and not (self.path / MARKER).exists():
            raise StoreError(f"The folder {self.path} is not empty and not a store.", fix="choose an empty folder")
        write_marker(self.path)

    def check_writable(self) -> None:
        """Raise StoreError if the store cannot be written, so that this is known before training."""
        with files.explained(self.path):
            files.check_writable(self.path / "temporary")

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    def folder(self, run_id: str) -> Path:
        """The folder of a run."""
        return self.path / "runs" / run_id

    def size(self, run_id: str) -> int:
        """The size of a run in bytes."""
        return sum(path.stat().st_size for path in self.folder(run_id).rglob("*") if path.is_file())

    # Runs

    def __contains__(self, config: RunConfig) -> bool:
        return self.status(config.run_id) is not None

    def status(self, run_id: str) -> str | None:
        """`complete`, `failed`, or None if there is no sound run of this name."""
        if not self.folder(run_id).is_dir():
            return None
        try:
            return self._manifest(run_id)["status"]
        except StoreError as error:
            self.report(str(error))
            return None

    def _manifest(self, run_id: str) -> dict[str, Any]:
        folder = self.folder(run_id)
        manifest = read_manifest(folder)
        for name, state in wrong_lengths(folder, manifest).items():
            raise StoreError(f"{folder} is damaged: {name} is {state}.")
        return manifest

    def report(self, problem: str) -> None:
        """Note a problem, once, and log it as a warning."""
        if problem not in self.problems:
            self.problems.append(problem)
            log.warning(problem)

    def names(self, beginning: str = "") -> list[str]:
        """The names of all run folders, sound or damaged, with this beginning."""
        found = files.entries(self.path / "runs")
        return sorted(entry.name for entry in found if entry.is_dir() and entry.name.startswith(beginning))

    def run_ids(self) -> list[str]:
        """The names of all sound runs."""
        return [name for name in self.names() if self.status(name) is not None]

    def runs(self, run_ids: Sequence[str] | None = None) -> Iterator[StoredRun]:
        """All sound runs, or the sound ones among those named."""
        for run_id in self.run_ids() if run_ids is None else run_ids:
            if not self.folder(run_id).is_dir():
                continue
            try:
                yield StoredRun(self.folder(run_id), self._manifest(run_id))
            except StoreError as error:
                self.report(str(error))

    def load(self, run: str | RunConfig) -> StoredRun:
        """Load a run.

        Args:
            run: Its name, the beginning of its name, or its configuration.

        Returns:
            The run. Its weights are read when they are used.
        """
        run_id = self.full_name(run.run_id if isinstance(run, RunConfig) else run)
        return StoredRun(self.folder(run_id), self._manifest(run_id))

    def full_name(self, beginning: str) -> str:
        """The name of the one run, sound or damaged, with this beginning."""
        matches = self.names(beginning) if beginning else []
        if beginning in matches:
            return beginning
        if len(matches) != 1:
            what = "is not the name of a run" if not matches else f"could be any of {', '.join(matches[:5])}"
            raise BadInput(f"{beginning!r} {what} in {self.path}.", fix=did_you_mean(beginning, self.names()[:20]))
        return matches[0]

    def commit(self, outcome: Outcome) -> None:
        """Store a run that ended, completely or not at all. The first commit of a run wins."""
        run_id = outcome.config.run_id
        with files.explained(self.path):
            if self.folder(run_id).exists() and self.status(run_id) is None:
                self.set_aside(run_id)
            with files.new_folder(self.path / "temporary", self.folder(run_id)) as folder:
                write_run(outcome, folder)

    def set_aside(self, run_id: str) -> Path:
        """Move a damaged run to `set-aside/`. Nothing is deleted."""
        why = "Its weights cannot be read."
        try:
            self._manifest(run_id)
        except StoreError as error:
            why = error.message
        with files.explained(self.path):
            moved = files.set_aside(self.path, self.folder(run_id), run_id, why)
        self.report(f"The damaged run {run_id} was moved to {moved}.")
        return moved

    # Measurements

    def _measurements(self, run_id: str) -> Path:
        return self.folder(run_id) / "measurements"

    def measurement(self, run_id: str, name: str) -> dict[str, Any] | None:
        """The record of a measurement by its name; None if it is missing or damaged. Damage is reported."""
        try:
            return read_measurement(self._measurements(run_id), name)
        except StoreError as error:
            self.report(str(error))
            return None

    def has_measurement(self, run_id: str, measurement: Measurement) -> bool:
        """Whether the store has this measurement of a run, undamaged."""
        return self.measurement(run_id, measurement.name) is not None

    def measurements_sound(self, run_id: str) -> bool:
        """Whether all measurements of a run can be read, with every bit of their tables. Damage is reported."""
        folder, sound = self._measurements(run_id), True
        for name in names_of(folder, None):
            try:
                if (record := read_measurement(folder, name)) is not None:
                    check_table(folder, name, record)
            except StoreError as error:
                self.report(error.message)
                sound = False
        return sound

    def measured(self, run_id: str, chosen: Sequence[Measurement] | None = None) -> list[tuple[Path, dict[str, Any]]]:
        """The tables and records of a run's sound measurements, all or the chosen ones, oldest first."""
        folder = self._measurements(run_id)
        found = ((name, self.measurement(run_id, name)) for name in names_of(folder, chosen))
        records = oldest_first({name: record for name, record in found if record is not None})
        return [(folder / f"{name}.parquet", record) for name, record in records.items()]

    def add_measurement(self, run_id: str, measurement: Measurement, measured: Measured) -> None:
        """Store a measurement of a run. The run itself does not change."""
        folder = self._measurements(run_id)
        with files.explained(self.path):
            record = folder / f"{measurement.name}.json"
            # A table without a record: another process is writing the same measurement, with the same result.
            if record.exists() and not self.has_measurement(run_id, measurement):
                for damaged in (record, record.with_suffix(".parquet")):
                    files.set_aside(self.path, damaged, f"{run_id}-{damaged.name}", "The measurement is damaged.")
            write_measurement(folder, measurement, measured, self.path / "temporary")

    def summaries(self, run_id: str, chosen: Sequence[Measurement] | None = None) -> dict[str, Any]:
        """The summary numbers of a run's measurements. Where two give the same number, the newer one counts."""
        numbers: dict[str, Any] = {}
        for _, record in self.measured(run_id, chosen):
            numbers |= record["summary"]
        return numbers

    # Records of studies, requests and tags

    def write_study(self, name: str, record: dict[str, Any]) -> None:
        """Store which runs a study used, and its results."""
        self.write_record("studies", name, record)

    def studies(self) -> list[dict[str, Any]]:
        """The records of all studies of this store."""
        return list(self.records("studies", "a study", is_study).values())

    def write_record(self, folder: str, name: str, record: dict[str, Any]) -> None:
        """Write a record, with its hash, in one step."""
        with files.explained(self.path):
            files.make_folder(self.path / folder)
            files.write_json(self.path / folder / f"{name}.json", files.sealed(record), self.path / "temporary")

    def records(self, folder: str, what: str, sound: files.Sound) -> dict[Path, dict[str, Any]]:
        """The sound records in a folder, by path. Damaged ones are reported and left out."""
        records = {}
        for path in sorted(Path(entry.path) for entry in files.entries(self.path / folder, ".json")):
            try:
                records[path] = files.read_record(path, what, sound)
            except StoreError as error:
                self.report(str(error))
        return records

    @functools.cached_property
    def index(self) -> Index:
        """The index: all runs as one table that is filtered, grouped and sorted without reading them again.

        Example:
            ```python
            store.index.frame(where="width >= 128", sort="-score_held_out", limit=10)
            ```
        """
        from recombine.store.index import Index

        return Index(self)

    # Tables. All take names of runs, and most measurements, to restrict them.

    runs_df = tables.runs_df
    combinations_df = tables.combinations_df
    constituents_df = tables.constituents_df
    strata_df = tables.strata_df
    probes_df = tables.probes_df
    curves_df = tables.curves_df


def is_study(_file: str, record: dict[str, Any]) -> bool:
    """Whether a record is that of a study."""
    return record.keys() >= STUDY_KEYS


def load_store(path: str | os.PathLike[str]) -> Store:
    """Open an existing store for reading. Nothing is created, moved or deleted.

    Args:
        path: The store's folder.

    Returns:
        The store. If there is none at `path`, `BadInput` says so.

    Example:
        ```python
        store = rc.load_store("runs")
        store.runs_df()
        ```
    """
    return Store(path, create=False)


def is_store(path: Path) -> bool:
    """Whether a folder is a store: it has the marker, or runs without a marker."""
    return (path / MARKER).exists() or any((path / "runs").glob(f"*/{MANIFEST}"))


def write_marker(path: Path, temporary: Path | None = None) -> None:
    """Write the file that says that a folder is a store."""
    files.write_json(path / MARKER, {"format": FORMAT}, temporary)


def check_marker(path: Path) -> None:
    """Raise StoreError unless the marker exists, is undamaged, and has a known format."""
    repair = f"recombine doctor --store {path}"
    try:
        marker = files.read_json(path / MARKER)
    except StoreError as error:
        raise StoreError(error.message, fix=repair) from error
    version = marker.get("format") if isinstance(marker, dict) else None
    if isinstance(version, int) and version > FORMAT:
        fix = "use the version of recombine that wrote it, or a newer one"
        raise files.NewerFormat(f"The store {path} has format {version}; this recombine knows {FORMAT}.", fix=fix)
    if version != FORMAT:
        raise StoreError(f"The store {path} is damaged: its {MARKER} does not say its format.", fix=repair)
