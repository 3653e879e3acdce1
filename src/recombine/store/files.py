"""Writing whole files and whole folders, or nothing."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recombine.errors import StoreError
from recombine.writers import abandoned, own_name, part_of

PROBE_BYTES = 65_536
"""A store in which this little does not fit is full."""


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns errors of the file system into messages that say what to do."""
    try:
        yield
    except BrokenPipeError:
        raise  # Somebody stopped reading what we print: not the store's fault.
    except OSError as error:
        reasons = {
            errno.ENOSPC: (
                "there is no space left on the device",
                "free some space; what was stored is kept",
            ),
            errno.EDQUOT: ("the disk quota is used up", "free some space; what was stored is kept"),
            errno.EACCES: ("permission denied", "choose a folder that you may write to with --store"),
            errno.EPERM: ("permission denied", "choose a folder that you may write to with --store"),
            errno.EROFS: ("the file system is read-only", "choose another folder with --store"),
            errno.ENOTDIR: ("a part of the path is a file", "choose a folder with --store"),
            errno.EEXIST: ("it is a file, not a folder", "choose a folder with --store"),
        }
        reason, fix = reasons.get(error.errno or 0, (str(error), None))
        raise StoreError(f"The store {path} cannot be written: {reason}.", fix=fix) from error


def write_json(path: Path, value: Any, temporary: Path | None = None) -> None:
    """Write a JSON file whole: a reader sees the old one or the new one. Half of it is only ever in `temporary`."""
    part = part_of(path) if temporary is None else temporary_place(temporary)
    try:
        with open(part, "w") as file:
            json.dump(value, file, indent=1, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Read a JSON file; StoreError if it is missing or damaged."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


SEAL = "seal"
"""Under this name a record holds the hash of the rest of it."""


class NewerFormat(StoreError):
    """Written by a newer version of recombine: not damaged, and not to be touched by this one."""


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """A record that shows whether it is as it was written. Numbers that JSON cannot hold become None."""
    record = finite({name: value for name, value in record.items() if name != SEAL})
    return record | {SEAL: _seal(record)}


def _seal(record: dict[str, Any]) -> str:
    # As it will be read: with names that are text, and lists.
    text = json.dumps(json.loads(json.dumps(record)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_record(path: Path) -> dict[str, Any]:
    """Read a JSON file that is a record; StoreError if it is not as it was written. Old records have no seal."""
    record = read_json(path)
    if not isinstance(record, dict):
        raise StoreError(f"{path} is damaged: it is not a record.")
    seal = record.get(SEAL)
    if seal is not None and seal != _seal({name: value for name, value in record.items() if name != SEAL}):
        raise StoreError(f"{path} is damaged: what it says is not what was written.")
    return record


def size_of(path: Path) -> int | None:
    """The length of a file in bytes; None if there is no such file."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None  # Moved away between the two questions.


def sha256_of(path: Path) -> str:
    """The hash of a file's contents."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def temporary_place(temporary: Path) -> Path:
    """A new name among what is being written or thrown away: `reclaim` sees from it whose process it is."""
    temporary.mkdir(parents=True, exist_ok=True)
    return temporary / own_name()


@contextlib.contextmanager
def new_folder(temporary: Path, final: Path) -> Iterator[Path]:
    """A folder to fill, which then becomes `final` in one step. If somebody else was first, theirs stays."""
    folder = temporary_place(temporary)
    folder.mkdir()
    try:
        yield folder
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(folder, final)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_writable(folder: Path) -> None:
    """Write a little and take it away again; raises OSError where that is not possible."""
    probe = temporary_place(folder).with_suffix(".probe")
    try:
        with open(probe, "wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        probe.unlink(missing_ok=True)


def reclaim(store: Path) -> int:
    """Remove what this machine's dead processes left half-written; returns how many files and folders.

    What other machines that share the store are writing is left alone: their processes cannot be seen from here.
    """
    parts = [*store.glob("*.part"), *(store / "checkpoints").glob("*.part")]
    temporary = store / "temporary"
    left = [*parts, *(temporary.iterdir() if temporary.is_dir() else ())]
    removed = 0
    for place in filter(abandoned, left):
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)
        removed += 1
    return removed


def finite(value: Any) -> Any:
    """The value with numbers that JSON cannot hold replaced by None."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value
