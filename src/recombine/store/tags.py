"""Tags: names that people give to runs. They are not part of the hash.

<store>/tags/<tag>.json has the names of the runs; it is replaced atomically.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from recombine.errors import BadInput, did_you_mean
from recombine.store.files import explained, make_folder, read_record
from recombine.store.store import Store

try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""The names that tags can have, as they are names of files."""


def tags(store: Store) -> dict[str, list[str]]:
    """The runs of every tag. A damaged tag is reported and left out."""
    return {path.stem: record["runs"] for path, record in store.records("tags", "a tag", _sound).items()}


def _sound(_file: str, record: dict[str, Any]) -> bool:
    runs = record.get("runs")
    return isinstance(runs, list) and all(isinstance(run_id, str) for run_id in runs)


def tagged(store: Store, name: str) -> list[str]:
    """The runs of one tag."""
    known = tags(store)
    if name not in known:
        raise BadInput(f"There is no tag {name!r} in {store.path}.", fix=did_you_mean(name, known))
    return known[name]


def add_tag(store: Store, name: str, run_ids: Iterable[str]) -> list[str]:
    """Tag runs, all or none; returns those that did not have the tag."""
    if not NAME.fullmatch(name):
        raise BadInput(f"{name!r} cannot be a tag.", fix="use up to 100 letters, digits, dots, dashes and underscores")
    path = store.path / "tags" / f"{name}.json"
    with locked(store, "tags"):
        # A damaged record is an error: overwriting it would lose its runs.
        held = read_record(path, "a tag", _sound)["runs"] if path.exists() else []
        new = [run_id for run_id in dict.fromkeys(run_ids) if run_id not in held]
        if new:
            _write(store, name, [*held, *new])
    return new


def drop_tag(store: Store, name: str, run_ids: Collection[str] | None = None) -> list[str]:
    """Remove a tag from runs, or from all; returns those that had it. A tag without runs is deleted."""
    with locked(store, "tags"):
        held = tagged(store, name)
        untagged = [run_id for run_id in held if run_ids is None or run_id in run_ids]
        if untagged:
            _write(store, name, [run_id for run_id in held if run_id not in untagged])
    return untagged


@contextlib.contextmanager
def locked(store: Store, folder: str) -> Iterator[None]:
    """Hold a folder of records (tags, notes): one is read, changed and written, and two processes may do so at once.

    The lock dies with its process. Where the system has none, the later of two writers wins.
    """
    with explained(store.path):
        make_folder(store.path / folder)
        if fcntl is None:
            yield
            return
        handle = os.open(store.path / folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(store: Store, name: str, run_ids: Sequence[str]) -> None:
    if run_ids:
        store.write_record("tags", name, {"tag": name, "runs": sorted(run_ids)})
        return
    with explained(store.path):
        (store.path / "tags" / f"{name}.json").unlink(missing_ok=True)
