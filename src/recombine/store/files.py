"""Writing whole files and whole folders, or nothing."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import platform
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recombine.errors import StoreError

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


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole: a reader sees the old one or the new one."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
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


def size_of(path: Path) -> int | None:
    """The length of a file in bytes; None if there is no such file."""
    return path.stat().st_size if path.is_file() else None


@contextlib.contextmanager
def new_folder(temporary: Path, final: Path) -> Iterator[Path]:
    """A folder to fill, which then becomes `final` in one step. If somebody else was first, theirs stays."""
    temporary.mkdir(parents=True, exist_ok=True)
    folder = temporary / f"{os.getpid()}-{_boot()}-{uuid.uuid4().hex[:8]}"
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
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f"{os.getpid()}-{_boot()}-{uuid.uuid4().hex[:8]}.probe"
    try:
        with open(probe, "wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        probe.unlink(missing_ok=True)


def reclaim(temporary: Path) -> int:
    """Remove this machine's temporary folders and files whose process is gone; returns how many.

    Those of other machines that share the store are left alone: their processes cannot be seen from here.
    """
    removed = 0
    for place in list(temporary.glob(f"*-{_boot()}-*")) if temporary.is_dir() else ():
        pid = place.name.partition("-")[0]
        if pid.isdigit() and not _alive(int(pid)):
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink(missing_ok=True)
            removed += 1
    return removed


@functools.cache
def _boot() -> str:
    """A short name of this machine (and container) that tells nothing about it."""
    parts = [platform.node()]
    for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"):
        with contextlib.suppress(OSError):
            parts.append(Path(path).read_text())
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:6]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def finite(value: Any) -> Any:
    """The value with numbers that JSON cannot hold replaced by None."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value
