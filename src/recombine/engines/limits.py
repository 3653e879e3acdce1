"""Limits of a worker: cores and memory. They are set before anything heavy is loaded.

XLA and NumPy's linear algebra count the cores of the process once, when they start. A limit on cores is therefore a limit
on threads for both, and every manifest shows it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

_held: list[int] = []
"""Open lock files. The system releases them when the process ends."""


def limit_memory(size: int) -> None:
    """Make allocations beyond this many bytes fail. Memory counts when it is written to, not when it is reserved."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def limit_cores(threads: int) -> None:
    """Run on this number of cores only, if possible on cores that no other worker of this machine uses."""
    if not hasattr(os, "sched_setaffinity"):
        return  # This system has no such limit, and the manifest does not claim one.
    allowed = sorted(os.sched_getaffinity(0))
    if threads < len(allowed):
        locks = Path(tempfile.gettempdir()) / f"recombine-cores-{os.getuid()}"
        os.sched_setaffinity(0, claim(allowed, threads, locks))


def claim(cores: Sequence[int], wanted: int, folder: Path) -> tuple[int, ...]:
    """Choose cores: free ones first, then shared ones where there are more workers than cores."""
    free: list[int] = []
    for core in cores:
        if len(free) < wanted and _lock(folder / str(core)):
            free.append(core)
    taken = [core for core in cores if core not in free]
    start = os.getpid() % max(1, len(taken))
    shared = [*taken[start:], *taken[:start]][: wanted - len(free)]
    return tuple(sorted([*free, *shared]))


def _lock(path: Path) -> bool:
    """Try to take a lock file; returns whether this process holds it now."""
    import fcntl

    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        with contextlib.suppress(OSError):
            os.close(handle)
        return False
    _held.append(handle)
    return True
