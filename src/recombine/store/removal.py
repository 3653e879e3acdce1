"""Deleting runs: each is moved away in one step and then deleted, so that there is never half a run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

from recombine.store.files import explained, temporary_place
from recombine.store.store import Store
from recombine.store.tags import untag_everywhere

Step = Callable[[int, int | None], None]
"""Is told how many of how many are done; None where that is not known."""


def silent(done: int, total: int | None) -> None:
    """Tells nobody."""


def remove(store: Store, run_ids: Sequence[str], step: Step = silent) -> list[str]:
    """Delete runs with their measurements, and their tags; returns those that were there.

    Killed in between, it leaves whole runs, and in `temporary/` what the next command that writes clears away.
    """
    gone = []
    with explained(store.path):
        for index, run_id in enumerate(run_ids):
            step(index, len(run_ids))
            place = temporary_place(store.path / "temporary")
            try:
                os.rename(store.folder(run_id), place)
            except FileNotFoundError:
                continue  # Another process was quicker.
            gone.append(run_id)
            shutil.rmtree(place, ignore_errors=True)
    step(len(run_ids), len(run_ids))
    untag_everywhere(store, gone)
    return gone


def size(store: Store, run_id: str) -> int:
    """The bytes that a run takes."""
    return sum(path.stat().st_size for path in store.folder(run_id).rglob("*") if path.is_file())
