"""What is compared: runs of a store, named by a run, a tag, a study or sweep, a filter, or a store."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from recombine.errors import BadInput
from recombine.store.selection import runs_of, users
from recombine.store.store import Store, is_store, load_store
from recombine.store.tags import tagged, tags


@dataclasses.dataclass(frozen=True)
class Side:
    """Runs that are compared with others."""

    name: str
    """What they are called in the answer."""
    store: Store
    runs: tuple[str, ...]
    """Their full names."""


def side(store: Store, what: str) -> Side:
    """The runs that a text means.

    Args:
        store: The store in which runs, tags, studies, sweeps and filters are looked up.
        what: In this order: the folder of a store (all its runs), a tag, a study or sweep, the beginning of a run's name,
            or a filter such as "width = 64".

    Returns:
        The runs. A text that means none raises `BadInput`.

    Example:
        ```python
        side(store, "family = 'scan' and width = 64").runs
        ```
    """
    folder = Path(what)
    if "\0" not in what and len(what) < 1000 and folder.is_dir() and is_store(folder):
        other = load_store(folder)
        return _filled(Side(what, other, tuple(other.index.frame(columns="run")["run"])))
    if what in tags(store):
        return _filled(Side(f"tag {what}", store, tuple(tagged(store, what))))
    for kind in ("study", "sweep"):
        if any(what in (own, study) for _, own, study in users(store, kind)):
            return _filled(Side(f"{kind} {what}", store, tuple(runs_of(store, kind, what))))
    if what and what.isalnum():
        if store.names(what):
            run = store.full_name(what)
            return Side(f"run {run}", store, (run,))
        fix = 'name a run, a tag, a study, a sweep, a store, or a filter such as "width = 64"'
        raise BadInput(f"There is no run, tag, study, sweep or store called {what!r}.", fix=fix)
    return _filled(Side(what, store, tuple(store.index.frame(where=what, columns="run")["run"])))


def _filled(found: Side) -> Side:
    if not found.runs:
        raise BadInput(
            f"{found.name!r} means no run.", fix="`recombine ls --where ...` shows which runs a filter keeps"
        )
    return found
