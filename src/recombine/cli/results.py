"""The commands that write results down: export, and verdicts as a Markdown table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recombine.cli.commands import ALL, finished, study_verdicts
from recombine.cli.output import console, errors, print_json
from recombine.errors import BadInput
from recombine.stats.verdicts import Verdict, settle
from recombine.store.store import Store
from recombine.studies.base import Study
from recombine.studies.run import newest_records, size_of_profile


def export_command(
    name: str | None, profile: str | None, out: Path, store_path: Path, *, as_json: bool
) -> None:
    """Write a study's results as small files: verdicts, the main table, the figures. With `all`, a folder a study.

    Studies whose results are there already, from other stores, stay, and all verdicts are settled together.
    """
    store = Store(store_path, create=False)
    if name != ALL:
        study, profile = finished(store, name, profile)
        files = _export(store, study, profile, out)
    else:
        files, held = [], sorted(newest_records(store, profile))
        if not held:
            raise BadInput(f"The store {store_path} holds no results.", fix="recombine run STUDY first")
        for one in held:
            study, found = finished(store, one, profile)
            recorded = _recorded_profile(out / one)
            if profile is None and size_of_profile(recorded) > size_of_profile(found):
                said = f"{one}: {out / one} has the {recorded} profile and keeps it; this store has {found}."
                errors().print(said, markup=False)
                continue
            files += _export(store, study, found, out / one)
        page = out / "verdicts.md"
        page.write_text(markdown(_settle_recorded(out)), encoding="utf-8")
        files.append(page)
    if as_json:
        print_json({"files": [str(path) for path in files]})
    else:
        console().print("\n".join(str(path) for path in files), highlight=False, markup=False)


def _export(store: Store, study: Study, profile: str, out: Path) -> list[Path]:
    from recombine.figures.save import save_figure
    from recombine.store.files import explained, finite, write_json

    tables = study.tables(store)
    with explained(out):
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "verdicts.json", finite(study_verdicts(store, study, profile)))
        study.overview(tables).to_csv(out / "overview.csv", index=False, float_format="%.4f")
        written = [save_figure(figure.chart, out / f"{figure.name}.png") for figure in study.figures(tables)]
    return [out / "verdicts.json", out / "overview.csv", *written]


def _recorded_profile(folder: Path) -> str:
    """The profile of the results that a folder has; empty if it has none."""
    from recombine.store.files import read_json

    path = folder / "verdicts.json"
    found = read_json(path) if path.exists() else []
    return str(found[0].get("profile", "")) if found and isinstance(found[0], dict) else ""


def _settle_recorded(out: Path) -> list[dict[str, Any]]:
    """The verdicts of all studies with results in a folder, corrected for their number; written back to each."""
    from recombine.store.files import read_json, write_json

    folders = {path: read_json(path) for path in sorted(out.glob("*/verdicts.json"))}
    records = [record for own in folders.values() for record in own]
    try:
        settled = settle([Verdict.from_record(record) for record in records])
        made = [
            verdict.record() | {"profile": record["profile"]}
            for verdict, record in zip(settled, records, strict=True)
        ]
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"A verdicts.json below {out} is not understood: {error!r}.",
            fix="remove what is no result of a study, or choose another folder",
        ) from error
    left = iter(made)
    for path, own in folders.items():
        write_json(path, list(itertools.islice(left, len(own))))
    return made


def markdown(records: Sequence[Mapping[str, Any]]) -> str:
    """All verdicts as Markdown: the primary claims with what limits them, then every claim of each study."""
    studies = list(dict.fromkeys(record["study"] for record in records))
    parts = ["# Verdicts", "## Primary claims", _summary(records, studies)]
    for study in studies:
        own = [record for record in records if record["study"] == study]
        parts += [f"## {study} ({own[0]['profile']} profile)", _claims(own)]
    return "\n\n".join(parts) + "\n"


def _summary(records: Sequence[Mapping[str, Any]], studies: Sequence[str]) -> str:
    """A row a study: its primary claim, whether its controls hold, and which of its other claims do not."""
    head = ["study", "primary claim", "verdict", "effect [95 % interval]", "margin", "n"]
    rows = []
    for study in studies:
        own = [record for record in records if record["study"] == study]
        controls = [record for record in own if record["role"] != "claim"]
        failed = [record for record in controls if not _holds(record)]
        held = f"all {len(controls)} hold" if not failed else f"not held: {_named(failed)}"
        others = [record for record in own if record["role"] == "claim" and not record["primary"]]
        open_ = [record for record in others if not _holds(record)]
        for record in own:
            if record["primary"]:
                rows.append([study, record["statement"], *_result(record), held, _named(open_) or "-"])
    return _lines([*head, "preconditions, controls", "further claims that do not hold"], rows)


def _holds(record: Mapping[str, Any]) -> bool:
    """Whether it came out as it was stated; a claim of no difference is stated as an equivalence."""
    return record["verdict"] == ("equivalent" if record["direction"] == "equivalent" else "supported")


def _named(records: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"`{record['claim']}` ({record['verdict']})" for record in records)


def _claims(records: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for record in records:
        role = "" if record["role"] == "claim" else f"{record['role'].capitalize()}: "
        statement = f"{role}{record['statement']}"
        if record["primary"]:
            statement = f"**{statement}** (primary)"
        if record["note"]:
            statement += f" *{record['note']}*"
        rows.append([f"`{record['claim']}`", statement, *_result(record)])
    return _lines(["claim", "in words", "verdict", "effect [95 % interval]", "margin", "n"], rows)


def _result(record: Mapping[str, Any]) -> list[str]:
    low, high = record["interval"]
    return [
        record["verdict"],
        f"{_number(record['effect'])} [{_number(low)}, {_number(high)}]",
        f"{record['direction']} {record['margin']:g}",
        str(record["replicates"]),
    ]


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.3f}"
