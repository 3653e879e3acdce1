"""Atomic writing: a file or folder is complete or does not exist."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from recombine.errors import StoreError
from recombine.store.provenance import now
from recombine.writers import abandoned, own_name, part_of

PROBE_BYTES = 65_536
"""The size of the file that tests whether a store is full."""


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the file system into messages with a fix."""
    try:
        yield
    except BrokenPipeError:
        raise  # The reader of our output is gone; the store is fine.
    except OSError as error:
        reasons = {
            errno.ENOSPC: ("there is no space left on the device", "free some space; what was stored is kept"),
            errno.EDQUOT: ("the disk quota is used up", "free some space; what was stored is kept"),
            errno.EACCES: ("permission denied", "choose a folder that you may write to with --store"),
            errno.EPERM: ("permission denied", "choose a folder that you may write to with --store"),
            errno.EROFS: ("the file system is read-only", "choose another folder with --store"),
            errno.ENOTDIR: ("a part of the path is a file", "choose a folder with --store"),
            errno.EEXIST: ("it is a file, not a folder", "choose a folder with --store"),
        }
        reason, fix = reasons.get(error.errno or 0, (str(error), None))
        raise StoreError(f"The store {path} cannot be written: {reason}.", fix=fix) from error


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's list of names, are on the disk."""
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) if path.is_dir() else os.O_RDONLY
    try:
        handle = os.open(path, flags)
    except PermissionError:
        return  # Windows opens no folders; there the names are written with the files.
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync a folder.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Make a folder, and its parents, that survive a loss of power."""
    if path.is_dir():
        return
    if not path.parent.exists():
        make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)


@contextlib.contextmanager
def replacing(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """A path to write to, which becomes `path` in one step. Until then it is in `temporary`, or beside `path`.

    After the block the file survives a loss of power: its bytes are on the disk before its name, and its name is too.
    """
    part = part_of(path) if temporary is None else temporary_path(temporary)
    try:
        yield part
        sync(part)
        os.replace(part, path)
        sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, value: Any, temporary: Path | None = None) -> None:
    """Write a JSON file atomically: a reader sees the old one or the new one. The half-written one is in `temporary`."""
    with replacing(path, temporary) as part, open(part, "w") as file:
        json.dump(value, file, indent=1, allow_nan=False)


def read_json(path: Path) -> Any:
    """Read a JSON file; StoreError if it is missing or damaged."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


SEAL = "seal"
"""The key under which a record holds the hash of the rest."""


Sound = Callable[[str, dict[str, Any]], bool]
"""Says whether the record in the file of this name has what its readers need."""


class NewerFormat(StoreError):
    """Written by a newer version of recombine. It is not damaged, and this version leaves it alone."""


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """Add a hash that shows whether the record changed. Numbers that JSON cannot hold become None."""
    record = finite({name: value for name, value in record.items() if name != SEAL})
    return record | {SEAL: _seal(record)}


def _seal(record: dict[str, Any]) -> str:
    # As JSON reads it back: names are text, tuples are lists.
    text = json.dumps(json.loads(json.dumps(record)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_record(path: Path, what: str = "", sound: Sound | None = None) -> dict[str, Any]:
    """Read a record; StoreError if it changed since it was written, or is not a `sound` record of `what`.

    Old records have no hash.
    """
    record = read_json(path)
    if not isinstance(record, dict):
        raise StoreError(f"{path} is damaged: it is not a record.")
    if not _unchanged(record):
        raise StoreError(f"{path} is damaged: what it says is not what was written.")
    if sound is not None and not sound(path.name, record):
        raise StoreError(f"{path} is damaged: it is not the record of {what}.")
    return record


def _unchanged(record: dict[str, Any]) -> bool:
    """Whether a record is what was sealed. One without a seal is old, unless the name of its seal was damaged."""

    def rest(name: str) -> str:
        return _seal({key: value for key, value in record.items() if key != name})

    if SEAL in record:
        return record[SEAL] == rest(SEAL)
    return not any(isinstance(value, str) and len(value) == 64 and value == rest(key) for key, value in record.items())


def entries(folder: Path, ending: str = "") -> list[os.DirEntry[str]]:
    """What is in a folder; nothing if there is no folder. StoreError if it cannot be read: that is not the same as empty."""
    try:
        return [entry for entry in os.scandir(folder) if entry.name.endswith(ending)]
    except FileNotFoundError:
        return []
    except OSError as error:
        fix = "allow this user to read it; nothing was changed"
        raise StoreError(f"The folder {folder} cannot be read: {error.strerror or error}.", fix=fix) from error


def size_of(path: Path) -> int | None:
    """The length of a file in bytes; None if there is no such file. StoreError if this cannot be known."""
    try:
        state = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}.") from error
    return state.st_size if stat.S_ISREG(state.st_mode) else None


def sha256_of(path: Path) -> str:
    """The hash of a file's contents. A file that this process has read is read again only if it changed since.

    The cache ends with the process: a disk may change bits without changing times.
    """
    with open(path, "rb") as file:
        state = os.fstat(file.fileno())
        key = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        if key in _CHECKED:
            return _CHECKED[key]
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        settled = time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > SETTLED_NS
        if settled and len(_CHECKED) < MOST_CHECKED:
            _CHECKED[key] = digest
    return digest


_CHECKED: dict[tuple[int, ...], str] = {}
"""Hashes by device, inode, size and times."""

SETTLED_NS = 1_000_000_000
"""Only files older than this are remembered: two changes within a tick of the clock have one time."""

MOST_CHECKED = 200_000
"""Files that are remembered; some 300 bytes each."""


def temporary_path(temporary: Path) -> Path:
    """A new path for something that is being written or deleted. Its name tells `reclaim` the process."""
    temporary.mkdir(parents=True, exist_ok=True)
    return temporary / own_name()


@contextlib.contextmanager
def new_folder(temporary: Path, final: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `final` in one step. If another process was first, its folder stays.

    After the block it survives a loss of power: all of its files are on the disk before the folder has its name.
    """
    folder = temporary_path(temporary)
    folder.mkdir()
    try:
        yield folder
        make_folder(final.parent)
        _sync_tree(folder)
        try:
            os.rename(folder, final)
            sync(final.parent)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    for path in folder.iterdir():
        _sync_tree(path) if path.is_dir() else sync(path)
    sync(folder)


def check_writable(folder: Path) -> None:
    """Write a small file and delete it; raises OSError if this is impossible."""
    probe = temporary_path(folder).with_suffix(".probe")
    try:
        with open(probe, "wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        probe.unlink(missing_ok=True)


def reclaim(store: Path) -> int:
    """Delete what dead processes of this machine left half-written; returns the number of files and folders.

    Files of other machines that share the store stay, because their processes cannot be seen from here.
    """
    parts = [*store.glob("*.part"), *(store / "checkpoints").glob("*.part")]
    temporary = store / "temporary"
    left = [*parts, *(temporary.iterdir() if temporary.is_dir() else ())]
    removed = 0
    for entry in filter(abandoned, left):
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
        removed += 1
    return removed


def finite(value: Any) -> Any:
    """Replace numbers that JSON cannot hold by None."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value


ASIDE, NOTE = "set-aside", ".note.json"
"""The folder of damaged files, which are never deleted, and the ending of the note that says why one is there."""


def set_aside(store: Path, damaged: Path, name: str, why: str) -> Path:
    """Move a file or folder to `set-aside/` under a new name, with a note that says why."""
    folder = store / ASIDE
    make_folder(folder)
    place = folder / f"{name}-{uuid.uuid4().hex[:8]}"
    while os.path.lexists(place):
        place = folder / f"{name}-{uuid.uuid4().hex}"
    note = place.with_name(place.name + NOTE)
    what = os.path.relpath(damaged, store)
    # The note first: if it cannot be written, nothing is moved.
    write_json(note, {"what": what, "when": now(), "why": why}, store / "temporary")
    try:
        os.rename(damaged, place)
        sync(folder)
        sync(damaged.parent)
    except FileNotFoundError:
        note.unlink(missing_ok=True)  # It did not exist, or another process moved it.
    return place


def moved(store: Path) -> list[Path]:
    """All files and folders in set-aside/."""
    return sorted(path for path in (store / ASIDE).glob("*") if not path.name.endswith(NOTE))
