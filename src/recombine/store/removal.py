"""Deleting runs: each is moved away in one step and then deleted, so that half a run never exists."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from recombine.progress import StepCallback, no_progress
from recombine.store.files import explained, temporary_path
from recombine.store.store import Store
from recombine.store.tags import untag_everywhere


def remove(store: Store, run_ids: Sequence[str], step: StepCallback = no_progress) -> list[str]:
    """Delete runs with their measurements and tags; returns those that existed.

    If the process is killed, the remaining runs are complete, and the next writing command deletes the rest.
    """
    removed = []
    with explained(store.path):
        for index, run_id in enumerate(run_ids):
            step(index, len(run_ids))
            place = temporary_path(store.path / "temporary")
            try:
                os.rename(store.folder(run_id), place)
            except FileNotFoundError:
                continue  # Another process deleted it.
            removed.append(run_id)
            shutil.rmtree(place, ignore_errors=True)
    step(len(run_ids), len(run_ids))
    untag_everywhere(store, removed)
    return removed


def size(store: Store, run_id: str) -> int:
    """The size of a run in bytes."""
    return sum(path.stat().st_size for path in store.folder(run_id).rglob("*") if path.is_file())
