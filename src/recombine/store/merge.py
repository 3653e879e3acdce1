"""Merging other stores and archives: an existing run stays; measurements, records, tags and notes are added."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from recombine.errors import BadInput, StoreError
from recombine.progress import StepCallback, no_progress
from recombine.store.archive import files_of
from recombine.store.files import (
    SEAL,
    explained,
    make_folder,
    new_folder,
    read_record,
    replacing,
    set_aside,
    write_json,
)
from recombine.store.manifest import WEIGHTS
from recombine.store.measurements import names_of
from recombine.store.notes import add_note, notes
from recombine.store.packed import unpacked
from recombine.store.store import Store, check_marker
from recombine.store.tags import add_tag, tags


@dataclasses.dataclass
class Merged:
    """The result of a merge."""

    runs: list[str] = dataclasses.field(default_factory=list)
    """New runs."""
    known: int = 0
    """Runs that the store had already, with the same weights."""
    measurements: int = 0
    """New measurements of such runs."""
    records: list[str] = dataclasses.field(default_factory=list)
    """New records of studies and sweeps."""
    tags: int = 0
    """Tags given to runs."""
    notes: int = 0
    """New notes on runs."""
    conflicts: list[str] = dataclasses.field(default_factory=list)
    """What was not merged, in words."""
    problems: list[str] = dataclasses.field(default_factory=list)
    """What could not be read in the other store."""


def merge(store: Store, other: Path, step: StepCallback = no_progress) -> Merged:
    """Merge a store (a folder) or an archive into a store. A second merge changes nothing.

    Args:
        store: The store that grows.
        other: The folder of a store, or an archive.
        step: Called with the number of runs that are done.
    """
    with explained(store.path):
        if other.is_file():
            with unpacked(other, store.path / "temporary", step) as folder:
                return _merge(store, Store(folder, create=False), step)
        if not other.exists():
            raise BadInput(f"There is no store or archive {other}.", fix="name a folder, or a .zip or .tar.gz file")
        if other.samefile(store.path):
            raise BadInput(f"{other} is the store itself.", fix="name another")
        return _merge(store, Store(other, create=False), step)


def _merge(store: Store, other: Store, step: StepCallback) -> Merged:
    check_marker(other.path)  # In a newer format this version cannot tell what is damaged.
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
    for run_id, own in notes(other).items():
        if run_id in held:
            merged.notes += sum(add_note(store, run_id, note["text"], note["time"]) for note in own)
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
    """Copy a file with its time."""
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, target)
    shutil.copystat(source, target)


def _difference(store: Store, other: Store, run_id: str) -> str | None:
    """How a run differs between two stores, in words; None if it is the same run."""
    mine, theirs = store.load(run_id).manifest, other.load(run_id).manifest
    for name in ("status", "failed_at"):
        if mine[name] != theirs[name]:
            return f"ended otherwise ({name} {theirs[name]!r} instead of {mine[name]!r})"
    if mine["status"] != "complete":
        return None
    mine_file, their_file = (side.folder(run_id) / WEIGHTS for side in (store, other))
    if mine_file.read_bytes() == their_file.read_bytes():
        return None
    try:
        return None if _equal(load_file(mine_file), load_file(their_file)) else "has other weights"
    except (SafetensorError, OSError):
        return "has weights that cannot be read, or those here cannot"


def _equal(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return first.keys() == second.keys() and all(
        first[name].dtype == second[name].dtype and np.array_equal(first[name], second[name], equal_nan=True)
        for name in first
    )


def _take_measurements(store: Store, other: Store, run_id: str) -> int:
    """Copy the measurements that the run lacks: the table first, then the record."""
    here, there = (side.folder(run_id) / "measurements" for side in (store, other))
    taken = 0
    for name in names_of(there, None):
        if other.measurement(run_id, name) is None or store.measurement(run_id, name) is not None:
            continue
        make_folder(here)
        for damaged in here.glob(f"{name}.*"):
            set_aside(store.path, damaged, f"{run_id}-{damaged.name}", "The measurement is damaged.")
        for file in (f"{name}.parquet", f"{name}.json"):
            with replacing(here / file, store.path / "temporary") as part:
                _copy(there / file, part)
        taken += 1
    return taken


def _take_records(store: Store, other: Store, folder: str, merged: Merged) -> None:
    for path in sorted((other.path / folder).glob("*.json")):
        target = store.path / folder / path.name
        try:
            record = read_record(path)
            known = read_record(target) if target.exists() else None
        except StoreError as error:
            other.report(str(error))
            continue
        if known is None:
            make_folder(target.parent)
            write_json(target, record, store.path / "temporary")
            merged.records.append(path.stem)
        elif _meaning(record) != _meaning(known):
            theirs = f"The record {folder}/{path.name} of {other.path}"
            merged.conflicts.append(f"{theirs} is another than the one here; it was kept out.")


def _meaning(record: dict[str, Any]) -> dict[str, Any]:
    """A record without its time and machine."""
    return {name: value for name, value in record.items() if name not in ("provenance", "time", SEAL)}
