"""Which runs of a store are meant: by name, tag, study, sweep, or how they ended. Each condition narrows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from recombine.errors import BadInput, StoreError, did_you_mean
from recombine.overrides import split
from recombine.store.files import read_record
from recombine.store.requests import Request, requests
from recombine.store.store import STUDY_KEYS, Store
from recombine.store.tables import flatten
from recombine.store.tags import tagged


@dataclasses.dataclass(frozen=True)
class Selection:
    """Conditions on runs; all must hold."""

    runs: Sequence[str] = ()
    """The (beginnings of the) names of runs."""
    tag: str | None = None
    study: str | None = None
    """The name of a study, or of one of its records."""
    sweep: str | None = None
    failed: bool = False
    """Only runs whose loss did not stay finite."""
    where: Sequence[str] = ()
    """Settings of the runs, as name=value; a leaf name suffices."""

    def __bool__(self) -> bool:
        return bool(self.runs or self.tag or self.study or self.sweep or self.failed or self.where)

    def run_ids(self, store: Store) -> list[str]:
        """The runs that are meant, by name. Damaged ones only where they are named."""
        found = [named(store, run) for run in self.runs] if self.runs else store.run_ids()
        wanted = [] if self.tag is None else [tagged(store, self.tag)]
        for kind, name in (("study", self.study), ("sweep", self.sweep)):
            if name is not None:
                wanted.append(runs_of(store, kind, name))
        for some in wanted:
            found = [run_id for run_id in found if run_id in set(some)]
        if self.failed:
            found = [run_id for run_id in found if store.status(run_id) == "failed"]
        if self.where:
            found = _where(store, found, self.where)
        return list(dict.fromkeys(found))


def _where(store: Store, run_ids: Sequence[str], conditions: Sequence[str]) -> list[str]:
    """The runs with these settings; BadInput for a name that is no setting of any of them."""
    settings = {run.run_id: dict(flatten(run.manifest["config"])) for run in store.runs(run_ids)}
    for name, value in (split(text) for text in conditions):
        places = {place for one in settings.values() for place in one}
        if settings and not any(place == name or place.endswith(f".{name}") for place in places):
            raise BadInput(f"There is no setting called {name!r}.", fix=did_you_mean(name, places))
        settings = {run_id: one for run_id, one in settings.items() if _holds(one, name, value)}
    return list(settings)


def _holds(settings: dict[str, object], name: str, value: object) -> bool:
    places = [name] if name in settings else [place for place in settings if place.endswith(f".{name}")]
    return any(settings[place] == value or str(settings[place]) == str(value) for place in places)


def named(store: Store, beginning: str) -> str:
    """The one run, sound or not, whose name begins so."""
    matches = store.names(beginning) if beginning else []
    if beginning in matches:
        return beginning
    if len(matches) != 1:
        what = "is not the name of a run" if not matches else f"could be any of {', '.join(matches[:5])}"
        raise BadInput(
            f"{beginning!r} {what} in {store.path}.", fix=did_you_mean(beginning, store.names()[:20])
        )
    return matches[0]


def asked(store: Store, name: str, kind: str | None = None) -> list[Request]:
    """The requests that a name means: its own, or all of a study's."""
    return [one for one in requests(store, kind) if name in (one["name"], one.get("study"))]


def runs_of(store: Store, kind: str, name: str) -> list[str]:
    """The runs of a study or a sweep."""
    known = users(store, kind)
    found = [runs for (_, own, study), runs in known.items() if name in (own, study)]
    if not found:
        names = {name for _, own, study in known for name in (own, study)}
        raise BadInput(f"There is no {kind} {name!r} in {store.path}.", fix=did_you_mean(name, names))
    return list(dict.fromkeys(run_id for runs in found for run_id in runs))


User = tuple[str, str, str]
"""Who uses runs: `study` or `sweep`, the name of its record, and the study's own name (a sweep's name again)."""


def users(store: Store, kind: str | None = None) -> dict[User, frozenset[str]]:
    """The runs of every study and sweep of a store: of what was asked, and of what was found."""
    found: dict[User, frozenset[str]] = {}
    for record in requests(store, kind):
        name = record["name"]
        found[record["request"], name, record.get("study", name)] = frozenset(record["runs"])
    if kind != "sweep":
        for path in sorted((store.path / "studies").glob("*.json")):
            try:
                record = read_record(path)
            except StoreError:
                continue  # `Store.studies` reports it.
            if record.keys() >= STUDY_KEYS:
                user = ("study", path.stem, record["study"])
                found[user] = found.get(user, frozenset()) | frozenset(record["runs"])
    return found


def used_by_others(store: Store, run_ids: Iterable[str], selection: Selection) -> dict[str, str]:
    """Of these runs, those that a study or sweep uses that was not named: by run, who."""
    mine = {("study", selection.study), ("sweep", selection.sweep)}
    found: dict[str, str] = {}
    for (kind, name, study), runs in users(store).items():
        if (kind, name) in mine or (kind, study) in mine:
            continue
        for run_id in set(run_ids) & runs:
            found[run_id] = f"{found[run_id]}, {name}" if run_id in found else name
    return found
