"""Running a study: its sweep through an engine, then its verdicts."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from recombine.engines.base import Engine, Sweep, SweepProgress
from recombine.errors import BadInput
from recombine.stats.verdicts import Verdict, settle
from recombine.store.provenance import now, provenance
from recombine.store.requests import Request, remember
from recombine.store.store import Store
from recombine.studies.base import PROFILES, Effect, Study, Tables


@dataclasses.dataclass(frozen=True)
class StudyResult:
    """What a study found."""

    study: Study
    profile: str
    sweep: Sweep
    tables: Tables
    verdicts: list[Verdict]


def run_study(
    study: Study,
    profile: str,
    store: Store,
    engine: Engine,
    progress: SweepProgress | None = None,
    overrides: Sequence[str] = (),
) -> StudyResult:
    """Bring the store to hold the study's runs, decide its claims and keep them."""
    configs = [config for config, _ in study.runs()]
    remember(store, request_of(study, profile, overrides))
    sweep = engine.run(store, configs, study.measurements(), progress)
    tables = study.tables(store)
    effects = study.effects(tables)
    changed = study != type(study).profile(profile)
    record: dict[str, Any] = {
        "study": study.kind,
        "profile": f"{profile}, changed" if changed else profile,
        "overrides": list(overrides),
        "config": study.model_dump(mode="json"),
        "runs": list(dict.fromkeys(config.run_id for config in configs)),
        "effects": [effect.record() for effect in effects],
        "provenance": provenance(),
    }
    store.write_study(record_name(study, profile), record)
    return StudyResult(
        study, record["profile"], sweep, tables, settle([effect.judge() for effect in effects])
    )


def record_name(study: Study, profile: str) -> str:
    """The name of a study's record. Overrides must not take the place of the profile's own result."""
    changed = study != type(study).profile(profile)
    return f"{study.kind}-{profile}" + (f"-{_digest(study.model_dump(mode='json'))}" if changed else "")


def request_of(study: Study, profile: str, overrides: Sequence[str] = ()) -> Request:
    """What the store keeps of a study before it trains: enough to finish it without being told again."""
    return {
        "request": "study",
        "name": record_name(study, profile),
        "study": study.kind,
        "profile": profile,
        "overrides": list(overrides),
        "config": study.model_dump(mode="json"),
        "runs": list(dict.fromkeys(config.run_id for config, _ in study.runs())),
        "measurements": [measurement.name for measurement in study.measurements()],
        "time": now(),
    }


def _digest(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]


def newest_records(store: Store, profile: str | None = None) -> dict[str, dict[str, Any]]:
    """What each study of a store found: in a given profile, or in the largest one that ran as it stands.

    A quick look with other settings must not take the place of a result: it counts where there is nothing else.
    """
    newest: dict[str, dict[str, Any]] = {}
    for record in store.studies():
        if profile is not None and record["profile"] != profile:
            continue
        held = newest.get(record["study"])
        if held is None or _rank(record) >= _rank(held):
            newest[record["study"]] = record
    return newest


def size_of_profile(name: str) -> int:
    """Larger for larger profiles; least for what was changed, or is not known."""
    return PROFILES.index(name) if name in PROFILES else -1


def _rank(record: dict[str, Any]) -> tuple[int, str]:
    return size_of_profile(record["profile"]), record["provenance"]["time"]


def verdicts_of(store: Store, profile: str | None = None) -> list[dict[str, Any]]:
    """The verdicts of all studies of a store, settled together; of each study the newest profile, or a given one."""
    newest = newest_records(store, profile)
    profiles = {name: record["profile"] for name, record in newest.items()}
    effects = []
    for name, record in newest.items():
        try:
            effects += [Effect.from_record(item) for item in record["effects"]]
        except (BadInput, KeyError, TypeError, ValueError) as error:
            store.report(f"The effects of the study {name!r} ({profiles[name]}) are not understood: {error}")
    settled = settle([effect.judge() for effect in effects])
    return [verdict.record() | {"profile": profiles[verdict.claim.study]} for verdict in settled]
