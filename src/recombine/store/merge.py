"""Taking in other stores and archives: runs by their names, the first wins; measurements, records and tags are united."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from recombine.errors import BadInput, StoreError
from recombine.store.archive import files_of
from recombine.store.files import SEAL, explained, new_folder, read_record, temporary_place, write_json
from recombine.store.manifest import WEIGHTS
from recombine.store.measurements import names_of, read_measurement
from recombine.store.packed import unpacked
from recombine.store.removal import Step, silent
from recombine.store.setting_aside import set_aside
from recombine.store.store import Store, check_marker
from recombine.store.tags import add_tag, tags


@dataclasses.dataclass
class Merged:
    """What came of a merge."""

    runs: list[str] = dataclasses.field(default_factory=list)
    """Runs that were taken in."""
    known: int = 0
    """Runs that were there already, with the same weights."""
    measurements: int = 0
    """Measurements that were added to such runs."""
    records: list[str] = dataclasses.field(default_factory=list)
    """Records of studies and sweeps that were taken in."""
    tags: int = 0
    """Tags given to runs."""
    conflicts: list[str] = dataclasses.field(default_factory=list)
    """What was kept out, in words."""
    problems: list[str] = dataclasses.field(default_factory=list)
    """What could not be read of the other store."""


def merge(store: Store, other: Path, step: Step = silent) -> Merged:
    """Take in a store (a folder) or an archive. Doing so again changes nothing."""
    with explained(store.path):
        if other.is_file():
            with unpacked(other, store.path / "temporary", step) as folder:
                return _merge(store, Store(folder, create=False), step)
        if not other.exists():
            raise BadInput(
                f"There is no store or archive {other}.", fix="name a folder, or a .zip or .tar.gz file"
            )
        if other.samefile(store.path):
            raise BadInput(f"{other} is the store itself.", fix="name another")
        return _merge(store, Store(other, create=False), step)


def _merge(store: Store, other: Store, step: Step) -> Merged:
    check_marker(other.path)  # Of a newer format this recombine cannot tell what is whole.
    merged = Merged()
    run_ids = other.run_ids()
    for index, run_id in enumerate(run_ids):
        step(index, len(run_ids))
        try:
            _take_run(store, other, run_id, merged)
        except StoreError as error:
            other.report(str(error))
    step(len(run_ids), len(run_ids))
    for folder in ("studies", "requests"):
        _take_records(store, other, folder, merged)
    held = set(store.names())
    for name, runs in tags(other).items():
        merged.tags += len(add_tag(store, name, [run_id for run_id in runs if run_id in held]))
    merged.problems = other.problems
    return merged


def _take_run(store: Store, other: Store, run_id: str, merged: Merged) -> None:
    if store.status(run_id) is None:
        if store.folder(run_id).exists():
            store.set_aside(run_id)
        with new_folder(store.path / "temporary", store.folder(run_id)) as folder:
            for file in files_of(other.folder(run_id)):
                _copy(file, folder / file.relative_to(other.folder(run_id)))
        merged.runs.append(run_id)
        return
    difference = _difference(store, other, run_id)
    if difference is not None:
        merged.conflicts.append(f"Run {run_id} of {other.path} {difference}; it was kept out.")
        return
    merged.known += 1
    merged.measurements += _take_measurements(store, other, run_id)


def _copy(source: Path, target: Path) -> None:
    """With its time, by which measurements are ordered; on the disk before what says that it is there."""
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, target)
    shutil.copystat(source, target)
    with open(target, "rb") as file:
        os.fsync(file.fileno())


def _difference(store: Store, other: Store, run_id: str) -> str | None:
    """In what a run of two stores differs, though it should be the same; None if in nothing that counts."""
    mine, theirs = store.load(run_id).manifest, other.load(run_id).manifest
    for name in ("status", "failed_at"):
        if mine[name] != theirs[name]:
            return f"ended otherwise ({name} {theirs[name]!r} instead of {mine[name]!r})"
    if mine["status"] != "complete":
        return None
    one, two = (place.folder(run_id) / WEIGHTS for place in (store, other))
    if one.read_bytes() == two.read_bytes():
        return None
    try:
        return None if _equal(load_file(one), load_file(two)) else "has other weights"
    except (SafetensorError, OSError):
        return "has weights that cannot be read, or those here cannot"


def _equal(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(
        one[name].dtype == two[name].dtype and np.array_equal(one[name], two[name], equal_nan=True)
        for name in one
    )


def _take_measurements(store: Store, other: Store, run_id: str) -> int:
    """Those that the run here does not have; the table first, then the file that says it is there."""
    here, there = (place.folder(run_id) / "measurements" for place in (store, other))
    taken = 0
    for name in names_of(there, None):
        if not _is_sound(other, there, name) or _is_sound(store, here, name):
            continue
        here.mkdir(exist_ok=True)
        for damaged in here.glob(f"{name}.*"):
            set_aside(store.path, damaged, f"{run_id}-{damaged.name}", "The measurement is damaged.")
        folder = temporary_place(store.path / "temporary")
        try:
            for ending in (".parquet", ".json"):
                _copy(there / f"{name}{ending}", folder / f"{name}{ending}")
                os.replace(folder / f"{name}{ending}", here / f"{name}{ending}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        taken += 1
    return taken


def _is_sound(store: Store, folder: Path, name: str) -> bool:
    try:
        return read_measurement(folder, name) is not None
    except StoreError as error:
        store.report(str(error))
        return False


def _take_records(store: Store, other: Store, folder: str, merged: Merged) -> None:
    for path in sorted((other.path / folder).glob("*.json")):
        place = store.path / folder / path.name
        try:
            record = read_record(path)
            known = read_record(place) if place.exists() else None
        except StoreError as error:
            other.report(str(error))
            continue
        if known is None:
            place.parent.mkdir(exist_ok=True)
            write_json(place, record, store.path / "temporary")
            merged.records.append(path.stem)
        elif _meaning(record) != _meaning(known):
            merged.conflicts.append(
                f"The record {folder}/{path.name} of {other.path} is another than the one here; it was kept out."
            )


def _meaning(record: dict[str, Any]) -> dict[str, Any]:
    """A record without when and where it was made."""
    return {name: value for name, value in record.items() if name not in ("provenance", "time", SEAL)}
