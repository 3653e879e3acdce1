"""The commands that write results down: export, and verdicts as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recombine.cli.commands import ALL, finished, study_verdicts
from recombine.cli.output import console, print_json
from recombine.errors import BadInput
from recombine.store.store import Store
from recombine.studies.base import Study
from recombine.studies.run import newest_records, verdicts_of


def export_command(
    name: str | None, profile: str | None, out: Path, store_path: Path, *, as_json: bool
) -> None:
    """Write a study's results as small files: verdicts, the main table, the figures. With `all`, a folder a study."""
    store = Store(store_path, create=False)
    if name != ALL:
        study, profile = finished(store, name, profile)
        files = _export(store, study, profile, out)
    else:
        files = []
        for one in sorted(newest_records(store, profile)):
            study, found = finished(store, one, profile)
            files += _export(store, study, found, out / one)
        if not files:
            raise BadInput(f"The store {store_path} holds no results.", fix="recombine run STUDY first")
        page = out / "verdicts.md"
        page.write_text(markdown(verdicts_of(store, profile)), encoding="utf-8")
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


def markdown(records: Sequence[Mapping[str, Any]]) -> str:
    """All verdicts as Markdown: the primary claims first, then every claim of each study."""
    primaries = [record for record in records if record["primary"]]
    studies = list(dict.fromkeys(record["study"] for record in records))
    parts = ["# Verdicts", "## Primary claims", _table(primaries, with_study=True)]
    for study in studies:
        own = [record for record in records if record["study"] == study]
        parts += [f"## {study} ({own[0]['profile']} profile)", _table(own)]
    return "\n\n".join(parts) + "\n"


def _table(records: Iterable[Mapping[str, Any]], with_study: bool = False) -> str:
    head = ["study"] * with_study + ["claim", "verdict", "effect [95 % interval]", "margin", "n"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for record in records:
        role = "" if record["role"] == "claim" else f"{record['role'].capitalize()}: "
        statement = f"{role}{record['statement']}"
        if record["primary"] and not with_study:
            statement = f"**{statement}** (primary)"
        if record["note"]:
            statement += f" *{record['note']}*"
        low, high = record["interval"]
        cells = [record["study"]] * with_study + [
            statement,
            record["verdict"],
            f"{_number(record['effect'])} [{_number(low)}, {_number(high)}]",
            f"{record['direction']} {record['margin']:g}",
            str(record["replicates"]),
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.3f}"
