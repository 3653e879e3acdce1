"""Stamps: whether a run's files are those that were read, without reading them.

A stamp is made of the lengths, times and inodes of a run's files. It decides only whether a run is read again, never
which of two things is true: a copied or restored store has other stamps and is read once.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

from recombine.store.files import SETTLED_NS

MEASUREMENTS = "measurements"


def file_names(folder: str) -> list[str]:
    """The files of a run, by their paths below its folder, and the folder of its measurements."""
    names = []
    for below in ("", MEASUREMENTS + "/"):
        try:
            names += [below + entry.name for entry in os.scandir(f"{folder}/{below}")]
        except OSError:
            continue  # Not there, not readable, or no folder: reading the run says so.
    return sorted({*names, MEASUREMENTS})


def stamp(folder: str, names: Iterable[str]) -> int:
    """The stamp of a run: a hash of the states of its files.

    Args:
        folder: The run's folder.
        names: Its files, from `file_names`.
    """
    states: list[int] = []
    for name in names:
        try:
            state = os.stat(f"{folder}/{name}")
        except OSError:
            states.append(-1)
            continue
        states += (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return hash(tuple(states))


def latest_change(folder: str, names: Iterable[str]) -> int:
    """The time of the latest change of a run's files, in nanoseconds."""
    latest = 0
    for name in names:
        with contextlib.suppress(OSError):
            state = os.stat(f"{folder}/{name}")
            latest = max(latest, state.st_ctime_ns, state.st_mtime_ns)
    return latest


def settled(latest: int, begin: int) -> bool:
    """Whether files that last changed then can be trusted not to have changed unseen while they were read from `begin` on.

    Two changes within a tick of the clock have one time.
    """
    return latest < begin - SETTLED_NS


def now() -> int:
    """The time in nanoseconds."""
    return time.time_ns()
