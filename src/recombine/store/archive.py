"""Archives: runs, and the records of their studies and sweeps, in one file with the layout of a store.

The last member, archive.json, lists every file with its length, hash and time. A truncated archive has no such list.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import shutil
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from recombine.errors import BadInput, RecombineError, StoreError
from recombine.progress import StepCallback, no_progress
from recombine.store.files import replacing, sealed
from recombine.store.manifest import FORMAT, MANIFEST
from recombine.store.notes import FOLDER as NOTES, notes
from recombine.store.packed import CHUNK, INDEX, UNREADABLE, kind_of, members
from recombine.store.requests import requests
from recombine.store.selection import users
from recombine.store.store import MARKER, Store
from recombine.store.tags import tags

EARLIEST = 315_619_200.0
"""Two days into 1980: zip files have no earlier times."""

LEVEL = 1
"""Weights hardly compress, at any level."""


@dataclasses.dataclass(frozen=True)
class Archived:
    """What an archive contains."""

    runs: tuple[str, ...]
    asked: tuple[tuple[str, str], ...]
    """The studies and sweeps, by kind and name, whose records are included."""
    left_out: tuple[str, ...]
    """Damaged runs; an archive has sound runs only."""
    bytes: int
    changed: tuple[str, ...] = ()
    """Runs that changed in the meantime; they must not be deleted."""


Written = dict[str, dict[str, Any]]
"""The files of an archive by name: length, hash, time."""


Writer = Callable[[str, IO[bytes], int, float], None]
"""Adds a file to an archive: its name, its content, its length and its time in seconds."""


@contextlib.contextmanager
def _writer(path: Path, kind: str) -> Iterator[Writer]:
    if kind == "zip":
        with zipfile.ZipFile(path, "w", compresslevel=LEVEL) as file:
            yield functools.partial(_add_to_zip, file)
    else:
        with tarfile.open(path, "w:gz", compresslevel=LEVEL) as file:
            yield functools.partial(_add_to_tar, file)


def _add_to_zip(file: zipfile.ZipFile, name: str, source: IO[bytes], size: int, seconds: float) -> None:
    info = zipfile.ZipInfo(name, time.localtime(max(seconds, EARLIEST))[:6])
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    with file.open(info, "w", force_zip64=size > 2**31 - 1) as target:
        shutil.copyfileobj(source, target, CHUNK)


def _add_to_tar(file: tarfile.TarFile, name: str, source: IO[bytes], size: int, seconds: float) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime = size, seconds
    file.addfile(info, source)


def archive(store: Store, path: Path, run_ids: Sequence[str], step: StepCallback = no_progress) -> Archived:
    """Write runs to one file. The file is read back and compared before it gets its name.

    Args:
        store: The store.
        path: The file to write: .zip, .tar.gz or .tgz.
        run_ids: The runs.
        step: Called with the number of runs that are done.
    """
    kind = kind_of(path)
    if path.exists():
        raise BadInput(f"{path} exists already.", fix="choose another name, or delete it first")
    if not path.parent.is_dir():
        raise BadInput(f"The folder {path.parent} does not exist.", fix="make it first")
    sound = [run_id for run_id in run_ids if store.status(run_id) is not None]
    if not sound:
        raise BadInput("There is no sound run to archive.", fix="`recombine ls` lists the runs")
    written: Written = {}
    total = 2 * len(sound)
    try:
        with replacing(path) as part:
            asked = _write(store, part, kind, sound, written, lambda done, _: step(done, total))
            check(part, kind, written, lambda done, all_: step(len(sound) + len(sound) * done // (all_ or 1), total))
        size = path.stat().st_size
    except OSError as error:
        fix = "choose a place that has space and that you may write to; the store is as it was"
        raise RecombineError(f"The archive {path} cannot be written: {error.strerror or error}.", fix=fix) from error
    step(total, total)
    left_out = tuple(run_id for run_id in run_ids if run_id not in sound)
    return Archived(tuple(sound), asked, left_out, size, _changed(store, sound, written))


def _write(
    store: Store, part: Path, kind: str, run_ids: Sequence[str], written: Written, step: StepCallback
) -> tuple[tuple[str, str], ...]:
    """Fill the file; returns the studies and sweeps whose records are included."""
    with _writer(part, kind) as writer:
        _put(writer, written, MARKER, json.dumps({"format": FORMAT}).encode())
        for index, run_id in enumerate(run_ids):
            step(index, len(run_ids))
            for file in files_of(store.folder(run_id)):
                _put(writer, written, file.relative_to(store.path).as_posix(), file)
        whole = _whole(store, set(run_ids))
        for name, content in _records(store, whole, set(run_ids)).items():
            _put(writer, written, name, content)
        _put(writer, {}, INDEX, json.dumps({"format": FORMAT, "files": written}).encode())
    return tuple(sorted(whole))


def files_of(folder: Path) -> list[Path]:
    """The files of a run in the order of writing: records after their tables, the manifest last."""

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
    """The studies and sweeps, by kind and name, whose stored runs are all among these."""
    return {
        (kind, name)
        for (kind, name, _), runs in users(store).items()
        if (held := {run_id for run_id in runs if store.folder(run_id).is_dir()}) and held <= run_ids
    }


def _records(store: Store, whole: set[tuple[str, str]], run_ids: set[str]) -> dict[str, bytes]:
    """The records of these studies and sweeps, and the tags and notes of these runs, as files."""
    found = {
        f"requests/{request['request']}-{request['name']}.json": json.dumps(request, indent=1).encode()
        for request in requests(store)
        if (request["request"], request["name"]) in whole
    }
    for kind, name in sorted(whole):
        result = store.path / "studies" / f"{name}.json"
        if kind == "study" and result.is_file():
            found[f"studies/{name}.json"] = result.read_bytes()
    for name, runs in tags(store).items():
        kept = sorted(run_ids.intersection(runs))
        if kept:
            found[f"tags/{name}.json"] = json.dumps(sealed({"tag": name, "runs": kept}), indent=1).encode()
    for run_id, own in notes(store).items():
        if run_id in run_ids:
            found[f"{NOTES}/{run_id}.json"] = json.dumps(sealed({"run": run_id, "notes": own}), indent=1).encode()
    return found


def _put(writer: Writer, written: Written, name: str, content: Path | bytes) -> None:
    """Add one file and note its length, hash and time. The check compares these with what was written."""
    if isinstance(content, bytes):
        writer(name, io.BytesIO(content), len(content), time.time())
        written[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "mtime_ns": None}
        return
    state = content.stat()
    with open(content, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        writer(name, file, state.st_size, state.st_mtime)
    written[name] = {"bytes": state.st_size, "sha256": digest, "mtime_ns": state.st_mtime_ns}


def check(path: Path, kind: str, expected: dict[str, dict[str, Any]], step: StepCallback = no_progress) -> None:
    """Read a whole archive and compare every file with its expected hash."""
    found: dict[str, str] = {}
    try:
        for name, stream in members(path, kind):
            step(len(found), len(expected))
            found[name] = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    except UNREADABLE as error:
        raise RecombineError(f"The archive {path} cannot be read back: {error}.", fix="try again") from error
    found.pop(INDEX, None)
    wanted = {name: entry["sha256"] for name, entry in expected.items()}
    wrong = sorted(name for name in found.keys() | wanted if found.get(name) != wanted.get(name))
    if wrong:
        fix = "a run may have been written to meanwhile: try again"
        raise RecombineError(f"The archive {path} does not hold what was written: {', '.join(wrong[:3])}.", fix=fix)


def _changed(store: Store, run_ids: Sequence[str], written: Written) -> tuple[str, ...]:
    """The runs whose files changed since they were archived."""
    before: dict[str, set[tuple[str, int, int]]] = {run_id: set() for run_id in run_ids}
    for name, entry in written.items():
        if name.startswith("runs/"):
            before[name.split("/")[1]].add((name, entry["bytes"], entry["mtime_ns"]))

    def now(run_id: str) -> set[tuple[str, int, int]]:
        files = [(path, path.stat()) for path in files_of(store.folder(run_id))]
        return {(path.relative_to(store.path).as_posix(), stat.st_size, stat.st_mtime_ns) for path, stat in files}

    return tuple(run_id for run_id in run_ids if now(run_id) != before[run_id])
