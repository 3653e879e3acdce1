"""Choosing runs (by name, tag, study, sweep, setting or failure; each condition narrows it), and deleting them."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterable, Sequence

from recombine.errors import BadInput, did_you_mean
from recombine.overrides import split
from recombine.progress import StepCallback, no_progress
from recombine.store.files import explained, sync, temporary_path
from recombine.store.notes import FOLDER as NOTES, drop_notes
from recombine.store.requests import Request, requests, runs_with_parents
from recombine.store.store import Store, is_study
from recombine.store.tables import settings_of
from recombine.store.tags import drop_tag, tagged, tags


@dataclasses.dataclass(frozen=True)
class Selection:
    """Conditions on runs; all must hold."""

    runs: Sequence[str] = ()
    """Names of runs, or beginnings of names."""
    tag: str | None = None
    """A tag."""
    study: str | None = None
    """The name of a study, or of one of its records."""
    sweep: str | None = None
    """The name of a sweep."""
    failed: bool = False
    """Only runs whose loss did not stay finite."""
    where: Sequence[str] = ()
    """Settings of the runs, as name=value; a leaf name suffices."""

    def __bool__(self) -> bool:
        return bool(self.runs or self.tag or self.study or self.sweep or self.failed or self.where)

    def run_ids(self, store: Store) -> list[str]:
        """The names of the selected runs. Damaged runs count only where they are named."""
        chosen = [store.full_name(run) for run in self.runs] if self.runs else store.run_ids()
        wanted = [] if self.tag is None else [tagged(store, self.tag)]
        named = (("study", self.study), ("sweep", self.sweep))
        wanted += [runs_of(store, kind, name) for kind, name in named if name is not None]
        for allowed in wanted:
            chosen = [run_id for run_id in chosen if run_id in set(allowed)]
        if self.failed:
            chosen = [run_id for run_id in chosen if store.status(run_id) == "failed"]
        if self.where:
            chosen = _where(store, chosen, self.where)
        return list(dict.fromkeys(chosen))


def _where(store: Store, run_ids: Sequence[str], conditions: Sequence[str]) -> list[str]:
    """The runs with these settings. A name that no run has raises `BadInput`."""
    settings = {run.run_id: settings_of(run.manifest) for run in store.runs(run_ids)}
    for name, value in (split(text) for text in conditions):
        names = {full for run_settings in settings.values() for full in run_settings}
        if settings and not any(full == name or full.endswith(f".{name}") for full in names):
            raise BadInput(f"There is no setting called {name!r}.", fix=did_you_mean(name, names))
        settings = {run_id: own for run_id, own in settings.items() if _holds(own, name, value)}
    return list(settings)


def _holds(settings: dict[str, object], name: str, value: object) -> bool:
    names = [name] if name in settings else [full for full in settings if full.endswith(f".{name}")]
    return any(settings[full] == value or str(settings[full]) == str(value) for full in names)


def asked(store: Store, name: str, kind: str | None = None) -> list[Request]:
    """The requests with a name, or all requests of the study with this name."""
    return [request for request in requests(store, kind) if name in (request["name"], request.get("study"))]


def runs_of(store: Store, kind: str, name: str) -> list[str]:
    """The runs of a study or a sweep."""
    known = users(store, kind)
    found = [runs for (_, own, study), runs in known.items() if name in (own, study)]
    if not found:
        names = {name for _, own, study in known for name in (own, study)}
        raise BadInput(f"There is no {kind} {name!r} in {store.path}.", fix=did_you_mean(name, names))
    return list(dict.fromkeys(run_id for runs in found for run_id in runs))


User = tuple[str, str, str]
"""A user of runs: `study` or `sweep`, the name of its record, and the study's name (for a sweep, its name again)."""


def users(store: Store, kind: str | None = None) -> dict[User, frozenset[str]]:
    """The runs of every study and sweep of a store, by requests and by results."""
    runs: dict[User, frozenset[str]] = {}
    for record in requests(store, kind):
        name = record["name"]
        runs[record["request"], name, record.get("study", name)] = runs_with_parents(record)
    if kind != "sweep":
        for path, record in store.records("studies", "a study", is_study).items():
            user = ("study", path.stem, record["study"])
            runs[user] = runs.get(user, frozenset()) | frozenset(record["runs"])
    return runs


def used_by_others(store: Store, run_ids: Iterable[str], selection: Selection) -> dict[str, str]:
    """The runs that a study or sweep outside the selection uses too, with its name."""
    mine = {("study", selection.study), ("sweep", selection.sweep)}
    shared: dict[str, str] = {}
    for (kind, name, study), runs in users(store).items():
        if (kind, name) in mine or (kind, study) in mine:
            continue
        for run_id in set(run_ids) & runs:
            shared[run_id] = f"{shared[run_id]}, {name}" if run_id in shared else name
    for run_id, child in children_outside(store, run_ids).items():
        shared[run_id] = f"{shared[run_id]}, {child}" if run_id in shared else child
    return shared


def children_outside(store: Store, run_ids: Iterable[str]) -> dict[str, str]:
    """The runs that others, which are not among them, started from; each with one of those."""
    chosen = set(run_ids)
    lines = {run.run_id: run.parents for run in store.runs() if run.run_id not in chosen}
    return {parent: f"run {child}" for child, parents in lines.items() for parent in parents if parent in chosen}


def with_ancestors(store: Store, run_ids: Sequence[str]) -> list[str]:
    """The runs, and before them those of the store that they started from."""
    found: dict[str, None] = {}
    for run in store.runs(run_ids):
        older = [parent for parent in run.parents if store.folder(parent).is_dir()]
        found |= dict.fromkeys([*with_ancestors(store, older), run.run_id] if older else [run.run_id])
    return list(dict.fromkeys([*found, *run_ids]))


def remove(store: Store, run_ids: Sequence[str], step: StepCallback = no_progress) -> list[str]:
    """Delete runs with their measurements, tags and notes; returns those that existed.

    Each one is moved away in one step and then deleted, so that half a run never exists.
    If the process is killed, the remaining runs are complete, and the next writing command deletes the rest.
    """
    removed = []
    with explained(store.path):
        for index, run_id in enumerate(run_ids):
            step(index, len(run_ids))
            doomed = temporary_path(store.path / "temporary")
            try:
                os.rename(store.folder(run_id), doomed)
            except FileNotFoundError:
                continue  # Another process deleted it.
            sync(store.folder(run_id).parent)  # Before its files go: a loss of power must not leave half a run.
            removed.append(run_id)
            shutil.rmtree(doomed, ignore_errors=True)
    step(len(run_ids), len(run_ids))
    for name, held in tags(store).items():
        if not set(held).isdisjoint(removed):
            drop_tag(store, name, removed)
    for run_id in removed:
        if (store.path / NOTES / f"{run_id}.json").exists():
            drop_notes(store, run_id)
    return removed
