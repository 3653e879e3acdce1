"""Archives: whole runs, and the records of their studies and sweeps, in one file that is laid out like a store.

The last member, archive.json, lists every file with its length, digest and time: an archive that was cut short has none.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import tarfile
import time
import uuid
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from recombine.errors import BadInput, RecombineError, StoreError
from recombine.store.files import sealed
from recombine.store.manifest import FORMAT, MANIFEST
from recombine.store.packed import CHUNK, INDEX, UNREADABLE, kind_of, members
from recombine.store.removal import Step, silent
from recombine.store.requests import requests
from recombine.store.selection import users
from recombine.store.store import MARKER, Store
from recombine.store.tags import tags

EARLIEST = 315_619_200.0
"""Two days into 1980: a zip file knows no earlier time."""

LEVEL = 1
"""Weights hardly become smaller, however long one tries."""


@dataclasses.dataclass(frozen=True)
class Archived:
    """What went into an archive."""

    path: Path
    runs: tuple[str, ...]
    asked: tuple[tuple[str, str], ...]
    """The studies and sweeps, by kind and name, whose records went along."""
    left_out: tuple[str, ...]
    """Damaged runs: an archive holds sound ones only."""
    bytes: int
    changed: tuple[str, ...] = ()
    """Runs that were written to since: they must not be removed."""


Written = dict[str, dict[str, Any]]
"""The files of an archive by name: length, digest, time."""


class _Writer(Protocol):
    def add(self, name: str, source: IO[bytes], size: int, seconds: float) -> None: ...

    def close(self) -> None: ...


class _Zip:
    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(path, "w", compresslevel=LEVEL)

    def add(self, name: str, source: IO[bytes], size: int, seconds: float) -> None:
        then = time.localtime(max(seconds, EARLIEST))[:6]
        info = zipfile.ZipInfo(name, then)
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        with self._file.open(info, "w", force_zip64=size > 2**31 - 1) as target:
            while chunk := source.read(CHUNK):
                target.write(chunk)

    def close(self) -> None:
        self._file.close()


class _Tar:
    def __init__(self, path: Path) -> None:
        self._file = tarfile.open(path, "w:gz", compresslevel=LEVEL)  # noqa: SIM115

    def add(self, name: str, source: IO[bytes], size: int, seconds: float) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mtime = size, seconds
        self._file.addfile(info, source)

    def close(self) -> None:
        self._file.close()


def archive(store: Store, path: Path, run_ids: Sequence[str], step: Step = silent) -> Archived:
    """Write runs to one file, which is read back and compared before it gets its name."""
    kind = kind_of(path)
    if path.exists():
        raise BadInput(f"{path} exists already.", fix="choose another name, or delete it first")
    if not path.parent.is_dir():
        raise BadInput(f"The folder {path.parent} does not exist.", fix="make it first")
    sound = [run_id for run_id in run_ids if store.status(run_id) is not None]
    if not sound:
        raise BadInput("There is no sound run to archive.", fix="`recombine ls` lists the runs")
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
    written: Written = {}
    total = 2 * len(sound)
    try:
        asked = _write(store, part, kind, sound, written, lambda done, _: step(done, total))
        check(
            part, kind, written, lambda done, all_: step(len(sound) + len(sound) * done // (all_ or 1), total)
        )
        os.replace(part, path)
        size = path.stat().st_size
    except OSError as error:
        raise RecombineError(
            f"The archive {path} cannot be written: {error.strerror or error}.",
            fix="choose a place that has space and that you may write to; the store is as it was",
        ) from error
    finally:
        part.unlink(missing_ok=True)
    step(total, total)
    left_out = tuple(run_id for run_id in run_ids if run_id not in sound)
    return Archived(path, tuple(sound), asked, left_out, size, _changed(store, sound, written))


def _write(
    store: Store, part: Path, kind: str, run_ids: Sequence[str], written: Written, step: Step
) -> tuple[tuple[str, str], ...]:
    """Fill a file; returns the studies and sweeps whose records went along."""
    writer: _Writer = _Zip(part) if kind == "zip" else _Tar(part)
    try:
        _put(writer, written, MARKER, json.dumps({"format": FORMAT}).encode())
        for index, run_id in enumerate(run_ids):
            step(index, len(run_ids))
            for file in files_of(store.folder(run_id)):
                _put(writer, written, file.relative_to(store.path).as_posix(), file)
        whole = _whole(store, set(run_ids))
        for name, content in _records(store, whole, set(run_ids)).items():
            _put(writer, written, name, content)
        _put(writer, {}, INDEX, json.dumps({"format": FORMAT, "files": written}).encode())
    finally:
        writer.close()
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    return tuple(sorted(whole))


def files_of(folder: Path) -> list[Path]:
    """The files of a run, in the order in which they must be written: what says that others are there comes last."""

    def rank(path: Path) -> tuple[bool, bool, str]:
        return (path == folder / MANIFEST, path.suffix == ".json", path.as_posix())

    found = []
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise StoreError(f"{path} is a link.", fix="put the file itself there")
        if path.is_file() and path.suffix != ".part":
            found.append(path)
    return sorted(found, key=rank)


def _whole(store: Store, run_ids: set[str]) -> set[tuple[str, str]]:
    """The studies and sweeps of which all runs that the store holds are among these, by kind and name."""
    return {
        (kind, name)
        for (kind, name, _), runs in users(store).items()
        if (held := {run_id for run_id in runs if store.folder(run_id).is_dir()}) and held <= run_ids
    }


def _records(store: Store, whole: set[tuple[str, str]], run_ids: set[str]) -> dict[str, bytes]:
    """The files that say what these studies and sweeps are, and the tags of these runs."""
    found = {
        f"requests/{one['request']}-{one['name']}.json": json.dumps(one, indent=1).encode()
        for one in requests(store)
        if (one["request"], one["name"]) in whole
    }
    for kind, name in sorted(whole):
        result = store.path / "studies" / f"{name}.json"
        if kind == "study" and result.is_file():
            found[f"studies/{name}.json"] = result.read_bytes()
    for name, runs in tags(store).items():
        kept = sorted(run_ids.intersection(runs))
        if kept:
            found[f"tags/{name}.json"] = json.dumps(sealed({"tag": name, "runs": kept}), indent=1).encode()
    return found


def _put(writer: _Writer, written: Written, name: str, content: Path | bytes) -> None:
    """Add one file and note what it is. The digest is that of the source; the check compares what was written."""
    if isinstance(content, bytes):
        writer.add(name, io.BytesIO(content), len(content), time.time())
        written[name] = {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "mtime_ns": None,
        }
        return
    state = content.stat()
    with open(content, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        writer.add(name, file, state.st_size, state.st_mtime)
    written[name] = {"bytes": state.st_size, "sha256": digest, "mtime_ns": state.st_mtime_ns}


def check(path: Path, kind: str, expected: dict[str, dict[str, Any]], step: Step = silent) -> None:
    """Read an archive from beginning to end and compare every file with what it should be."""
    found: dict[str, str] = {}
    try:
        for name, stream in members(path, kind):
            step(len(found), len(expected))
            digest = hashlib.sha256()
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
            found[name] = digest.hexdigest()
    except UNREADABLE as error:
        raise RecombineError(f"The archive {path} cannot be read back: {error}.", fix="try again") from error
    found.pop(INDEX, None)
    wanted = {name: one["sha256"] for name, one in expected.items()}
    wrong = sorted(name for name in found.keys() | wanted if found.get(name) != wanted.get(name))
    if wrong:
        raise RecombineError(
            f"The archive {path} does not hold what was written: {', '.join(wrong[:3])}.",
            fix="a run may have been written to meanwhile: try again",
        )


def _changed(store: Store, run_ids: Sequence[str], written: Written) -> tuple[str, ...]:
    """Runs whose files are no longer those that were archived."""
    before: dict[str, set[tuple[str, int, int]]] = {run_id: set() for run_id in run_ids}
    for name, one in written.items():
        if name.startswith("runs/"):
            before[name.split("/")[1]].add((name, one["bytes"], one["mtime_ns"]))

    def now(run_id: str) -> set[tuple[str, int, int]]:
        files = [(path, path.stat()) for path in files_of(store.folder(run_id))]
        return {
            (path.relative_to(store.path).as_posix(), one.st_size, one.st_mtime_ns) for path, one in files
        }

    return tuple(run_id for run_id in run_ids if now(run_id) != before[run_id])
