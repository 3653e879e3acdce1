"""Names of files and folders that are being written: they say by whom, so that others can tell whether they are abandoned."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import uuid
from pathlib import Path


@functools.cache
def boot() -> str:
    """A short name of this machine (and container) that tells nothing about it."""
    parts = [platform.node()]
    for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"):
        with contextlib.suppress(OSError):
            parts.append(Path(path).read_text())
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:6]


_MINE: set[str] = set()
"""The names that this process has given."""


def own_name() -> str:
    """A new name that says which process of which machine is writing."""
    name = f"{os.getpid()}-{boot()}-{uuid.uuid4().hex[:8]}"
    _MINE.add(name)
    return name


def part_of(path: Path) -> Path:
    """Where a file is written before it takes its place."""
    return path.with_name(f"{path.name}.{own_name()}.part")


def abandoned(place: Path) -> bool:
    """Whether a file or folder was being written by a process of this machine that is gone.

    What other machines that share the folder write is never abandoned: their processes cannot be seen from here.
    """
    writer = re.search(rf"(?:^|\.)((\d+)-{boot()}-[0-9a-z]+)", place.name)
    if writer is None:
        return False
    if int(writer[2]) == os.getpid():
        # A container that is started again numbers its processes as before.
        return writer[1] not in _MINE
    return not _alive(int(writer[2]))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:
        # Killed, but its parent has not looked yet. The name of the program, in brackets, may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return True
