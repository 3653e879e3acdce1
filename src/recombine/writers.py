"""Names of files that are being written. They name the process, so that abandoned files can be found."""

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
    """A short anonymous name of this machine and of its PID namespace.

    Two containers may have one host name, one kernel and the same process numbers; their namespaces differ.
    """
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"):
        with contextlib.suppress(OSError):
            parts.append(Path(path).read_text())
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:6]


_MINE: set[str] = set()
"""The names that this process has used."""


def own_name() -> str:
    """A new name that contains the process, when it started, and the machine."""
    name = f"{os.getpid()}-{boot()}-{_started(os.getpid())}z{uuid.uuid4().hex[:8]}"
    _MINE.add(name)
    return name


def part_of(path: Path) -> Path:
    """The path to write a file to before it is renamed to `path`."""
    return path.with_name(f"{path.name}.{own_name()}.part")


def abandoned(place: Path) -> bool:
    """Whether a file or folder was being written by a process of this machine that no longer exists.

    Files of other machines that share the folder are never abandoned, because their processes cannot be seen from here.
    """
    writer = re.search(rf"(?:^|\.)((\d+)-{boot()}-(?:(\d+)z)?[0-9a-z]+)", place.name)
    if writer is None:
        return False
    if int(writer[2]) == os.getpid():
        # A restarted container uses the same process numbers again.
        return writer[1] not in _MINE
    # The number of a dead process may belong to another one by now, which started later.
    return not _alive(int(writer[2])) or (writer[3] is not None and int(writer[3]) != _started(int(writer[2])))


def _started(pid: int) -> int:
    """When a process started, in ticks since the machine did; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:
        # Z: killed, but not yet collected by its parent. The program's name, in brackets, may contain anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return True
