"""Running a study: its runs through an engine, then its verdicts. The only place where this happens."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recombine import _html
from recombine.design.claims import Effect
from recombine.design.study import SIZES, Study
from recombine.design.tables import Tables
from recombine.engines.base import Engine, Sweep, failed_parents
from recombine.errors import BadInput, StoreError
from recombine.stats.power import needed_replicates
from recombine.stats.verdicts import settle
from recombine.store.provenance import now, provenance
from recombine.store.requests import Request, parents_of, remember
from recombine.store.store import Store
from recombine.trackers.base import Tracker
from recombine.trackers.tracking import Tracking
from recombine.training.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

Record = dict[str, Any]
"""What a store keeps of a study that ran: its configuration, runs, effects and provenance."""


@dataclasses.dataclass(frozen=True, repr=False)
class StudyResult:
    """What a study found. Everything is computed from its tables when it is first asked for."""

    study: Study
    record: Record
    """What the store keeps of the study."""
    store: Store
    records: list[dict[str, Any]]
    """The verdicts as plain values; `p_portfolio` is corrected together with the other studies of the store."""
    tables: Tables
    sweep: Sweep | None = None
    """What was trained and measured; None where the study was only read from a store."""

    @property
    def profile(self) -> str:
        """The profile, with `changed` behind it where settings were changed."""
        return self.record["profile"]

    @functools.cached_property
    def missing(self) -> tuple[str, ...]:
        """The study's runs that the store does not have, sound. Tables and figures rest on the others."""
        return tuple(run_id for run_id in self.record["runs"] if self.store.status(run_id) is None)

    @functools.cached_property
    def damaged(self) -> tuple[str, ...]:
        """The study's runs of which a measurement cannot be read. Tables and figures lack them."""
        sound = [run_id for run_id in self.record["runs"] if self.store.status(run_id) == "complete"]
        return tuple(run_id for run_id in sound if not self.store.measurements_sound(run_id))

    @functools.cached_property
    def verdicts(self) -> pd.DataFrame:
        """One row per claim: name, role, answer, verdict, effect, interval, margin, number of replicates, statement."""
        import pandas as pd

        rows = [
            {
                "claim": record["claim"],
                "role": "primary" if record["primary"] else record["role"],
                "answer": record["answer"],
                "verdict": record["verdict"],
                "effect": record["effect"],
                "low": record["interval"][0],
                "high": record["interval"][1],
                "direction": record["direction"],
                "margin": record["margin"],
                "replicates": record["replicates"],
                "p_adjusted": record["p_adjusted"],
                "p_portfolio": record["p_portfolio"],
                "statement": record["statement"],
                "note": record["note"],
            }
            for record in self.records
        ]
        return pd.DataFrame(rows)

    @functools.cached_property
    def overview(self) -> pd.DataFrame:
        """Means over replicates in each cell of each arm."""
        return self.study.design.overview(self.tables)

    @functools.cached_property
    def figures(self) -> list[Figure]:
        """The study's figures."""
        return self.study.design.figures(self.tables)

    def report(self, path: str | Path) -> Path:
        """Write the study's page: one HTML file that opens from disk and needs no network.

        Args:
            path: The file, e.g. `report.html`. Its folder must exist.

        Returns:
            The path of the page.
        """
        from recombine.design.page import study_page

        return study_page(self, Path(path))

    def __repr__(self) -> str:
        lines = [f"{self.study.kind} ({self.profile} profile): {self.study.question}"]
        for record in self.records:
            role = "primary" if record["primary"] else record["role"]
            lines.append(f"  {record['answer']:<20} {role:<12} {record['claim']:<34} {_effect(record)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (record["answer"], record["claim"], "primary" if record["primary"] else record["role"], _effect(record))
            for record in self.records
        ]
        table = _html.table(["answer", "claim", "role", "effect [95 % interval]"], rows)
        return _html.card(f"{self.study.kind} ({self.profile}): {self.study.question}", table)


def _effect(record: dict[str, Any]) -> str:
    low, high = record["interval"]
    if record["effect"] is None or low is None or high is None:
        return "no interval"
    return f"{record['effect']:.3f} [{low:.3f}, {high:.3f}], {record['direction']} {record['margin']:g}"


def run_study(
    study: Study,
    profile: str,
    store: Store,
    engine: Engine,
    progress: Progress | None = None,
    overrides: Sequence[str] = (),
    trackers: Sequence[Tracker] = (),
) -> StudyResult:
    """Bring a store to hold a study's runs and measurements, decide its claims and record them.

    The study's design is built once, its runs are listed once and its tables are read once.

    Args:
        study: The study, with its settings.
        profile: The profile that it began from.
        store: Where runs are kept. What is there already is not trained again.
        engine: What trains and measures.
        progress: Called while it works.
        overrides: The overrides that `study` already has, for the record.
        trackers: What also receives curves, scores, verdicts and figures.

    Returns:
        The result, with verdicts, tables and figures.
    """
    design = study.design
    remember(store, request_of(study, profile, overrides))
    with Tracking(trackers, record_name(study, profile), progress) as tracking:
        sweep = engine.run(store, [config for config, _ in design.runs], design.measurements, tracking)
        tracking.scores(store)
        result = _decided(study, profile, store, sweep, overrides)
        effects = {record["claim"]: record["effect"] for record in result.records if record["effect"] is not None}
        tracking.group_table("verdicts", result.verdicts, effects)
        tracking.figures(lambda: result.figures)
    return result


def _decided(study: Study, profile: str, store: Store, sweep: Sweep, overrides: Sequence[str]) -> StudyResult:
    """Decide the claims of a study whose runs are there, and record them."""
    design = study.design
    configs = {config.run_id: config for config, _ in design.runs}
    # A run whose parent failed is not trained.
    lost = [run_id for run_id in missing_runs(store, design.run_ids) if not failed_parents(store, configs[run_id])]
    tables, before = design.tables(store), len(store.problems)
    changed = study != type(study).profile(profile)
    record: Record = {
        "study": study.kind,
        "profile": f"{profile}, changed" if changed else profile,
        "overrides": list(overrides),
        "config": study.model_dump(mode="json"),
        "runs": design.run_ids,
        "effects": [effect.record() for effect in design.effects(tables)],
        "provenance": provenance(),
    }
    if unreadable := store.problems[before:]:
        fix = "recombine resume measures again what is damaged"
        raise StoreError(f"The verdicts were not recorded: while they were decided, {unreadable[0]}", fix=fix)
    # A verdict that rests on fewer runs takes the place of none.
    if not lost:
        store.write_study(record_name(study, profile), record)
    return _result(study, record, store, tables, sweep)


def missing_runs(store: Store, run_ids: Sequence[str]) -> tuple[str, ...]:
    """The runs that the store does not have, sound, such as those that somebody removed while a sweep went on."""
    missing = tuple(run_id for run_id in run_ids if store.status(run_id) is None)
    if missing and len(missing) == len(set(run_ids)):
        fix = "recombine resume trains them again"
        raise StoreError(f"None of the {len(missing)} runs is in the store {store.path}.", fix=fix)
    return missing


def read_study(store: Store, record: Record, study: Study) -> StudyResult:
    """The result of a study that ran into a store, from its record. Nothing is trained.

    Raises `StoreError` if none of its runs is there; `missing` and `damaged` name those that are not.
    """
    missing_runs(store, record["runs"])
    return _result(study, record, store, study.design.tables(store), None)


def _result(study: Study, record: Record, store: Store, tables: Tables, sweep: Sweep | None) -> StudyResult:
    records = newest_records(store, record["profile"]) | {study.kind: record}
    own = [verdict for verdict in _settled(store, records) if verdict["study"] == study.kind]
    return StudyResult(study, record, store, own, tables, sweep)


def record_name(study: Study, profile: str) -> str:
    """The name of a study's record. Overrides must not replace the profile's own result."""
    changed = study != type(study).profile(profile)
    return f"{study.kind}-{profile}" + (f"-{_digest(study.model_dump(mode='json'))}" if changed else "")


def request_of(study: Study, profile: str, overrides: Sequence[str] = ()) -> Request:
    """What the store keeps of a study before it trains: enough for `recombine resume` to finish it."""
    return {
        "request": "study",
        "name": record_name(study, profile),
        "study": study.kind,
        "profile": profile,
        "overrides": list(overrides),
        "config": study.model_dump(mode="json"),
        "runs": study.design.run_ids,
        **parents_of(config for config, _ in study.design.runs),
        "measurements": [measurement.name for measurement in study.design.measurements],
        "time": now(),
    }


def _digest(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]


def newest_records(store: Store, profile: str | None = None) -> dict[str, Record]:
    """What each study of a store found, in a given profile, or in the largest profile that ran unchanged.

    A quick try with other settings does not replace a result: it counts only where there is nothing else.
    """
    newest: dict[str, Record] = {}
    for record in store.studies():
        if profile is not None and record["profile"] != profile:
            continue
        held = newest.get(record["study"])
        if held is None or _rank(record) >= _rank(held):
            newest[record["study"]] = record
    return newest


def size_of_profile(name: str) -> int:
    """Larger for larger profiles; least for changed and unknown ones."""
    return SIZES.index(name) if name in SIZES else -1


def _rank(record: Record) -> tuple[int, str]:
    return size_of_profile(record["profile"]), record["provenance"]["time"]


def verdicts_of(store: Store, profile: str | None = None) -> list[dict[str, Any]]:
    """The verdicts of all studies of a store, corrected together.

    Args:
        store: The store.
        profile: Only results of this profile; by default the largest that ran, study by study.

    Returns:
        One record per claim, as plain values.
    """
    return _settled(store, newest_records(store, profile))


def replicates_needed(record: Record) -> list[dict[str, Any]]:
    """How many replicates would decide each claim of a study, if its effects go on as they were recorded.

    Args:
        record: What a store keeps of a study that ran.

    Returns:
        One row per claim: its name, the recorded replicates, and the replicates needed (None: too many to say).
    """
    rows = []
    for effect in map(Effect.from_record, record["effects"]):
        scales = effect.claim.scales or (("", effect.claim.margin),)
        values = np.atleast_2d(effect.values)
        needed = [
            needed_replicates(effect.claim.direction, margin, own)
            for (_, margin), own in zip(scales, values, strict=True)
        ]
        count = int(np.isfinite(values).all(axis=0).sum())
        most = None if None in needed else max(number for number in needed if number is not None)
        rows.append({"claim": effect.claim.name, "replicates": count, "needed": most})
    return rows


def _settled(store: Store, records: dict[str, Record]) -> list[dict[str, Any]]:
    profiles = {name: record["profile"] for name, record in records.items()}
    effects = []
    for name, record in records.items():
        try:
            effects += [Effect.from_record(item) for item in record["effects"]]
        except (BadInput, KeyError, TypeError, ValueError) as error:
            store.report(f"The effects of the study {name!r} ({profiles[name]}) cannot be read: {error}")
    settled = settle([effect.judge() for effect in effects])
    return [verdict.record() | {"profile": profiles[verdict.claim.study]} for verdict in settled]
