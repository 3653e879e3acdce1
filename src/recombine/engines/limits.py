"""What a worker may use of its machine: cores and memory. Taken before anything heavy is loaded.

XLA and the linear algebra of NumPy both count the cores that the process may run on, once, when they start. So a
limit on threads is a limit on cores: it holds for both, and the execution plan of every manifest shows it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

_held: list[int] = []
"""Open lock files. They are let go when the process ends, however it ends."""


def limit_memory(size: int) -> None:
    """Allocations beyond this many bytes fail. Counts what is written to, not what is only reserved."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def limit_cores(threads: int) -> tuple[int, ...]:
    """Run on so many cores only, if possible on ones that no other worker on this machine has taken."""
    if not hasattr(os, "sched_setaffinity"):
        return ()  # Not on this system: the limit is not kept, and the manifest does not claim it.
    allowed = sorted(os.sched_getaffinity(0))
    if threads >= len(allowed):
        return tuple(allowed)
    chosen = claim(allowed, threads, Path(tempfile.gettempdir()) / f"recombine-cores-{os.getuid()}")
    os.sched_setaffinity(0, chosen)
    return chosen


def claim(cores: Sequence[int], wanted: int, folder: Path) -> tuple[int, ...]:
    """So many of these cores: free ones first, then, where there are more workers than cores, others."""
    free: list[int] = []
    for core in cores:
        if len(free) < wanted and _lock(folder / str(core)):
            free.append(core)
    taken = [core for core in cores if core not in free]
    start = os.getpid() % max(1, len(taken))
    shared = [*taken[start:], *taken[:start]][: wanted - len(free)]
    return tuple(sorted([*free, *shared]))


def _lock(path: Path) -> bool:
    """Whether this process now holds a lock file."""
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
