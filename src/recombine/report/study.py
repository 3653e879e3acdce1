"""The page of one study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.verdict_forest import draw_verdict_forest, verdict_forest_info
from recombine.figures.wording import interval_in_words, signed
from recombine.report.html import Report, Table, write_report
from recombine.store.store import Store
from recombine.studies.base import Study, Tables

WORDS = {
    "supported": "Yes: the data support it.",
    "contradicted": "No: the data contradict it.",
    "equivalent": "No difference that matters was found.",
    "inconclusive": "The data do not decide it.",
}


def study_report(
    study: Study, record: Mapping[str, Any], store: Store, verdicts: Sequence[Mapping[str, Any]], path: Path
) -> Path:
    """Write the page of a study from its record and from what the store holds."""
    tables = study.tables(store)
    forest = verdict_forest_info(verdicts)
    figures = [
        *study.figures(tables),
        Figure("verdicts", "Effects, intervals and margins", forest.caption, draw_verdict_forest(forest)),
    ]
    overview = _table("Means over replicates", study.overview(tables))
    report = Report(
        title=f"recombine: {study.kind}",
        question=study.question,
        answer=_answer(verdicts),
        verdicts=verdicts,
        figures=figures,
        tables=[overview, *_strata(study, tables)],
        facts=_facts(study, record, tables, store),
    )
    return write_report(report, path)


def _answer(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """The primary verdict in words."""
    for record in verdicts:
        if record["primary"]:
            basis = f"{signed(record['effect'])} (95 % interval {interval_in_words(record['interval'])})"
            text = f"{WORDS[record['verdict']]} {record['statement']} Effect {basis}"
            text += f" over {record['replicates']} replicates."
            return text + (f" ({record['note']}.)" if record["note"] else "")
    return "This study has no primary claim."


def _table(title: str, frame: pd.DataFrame, note: str = "") -> Table:
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return Table(title, [str(name) for name in frame.columns], rows, note)


def _strata(study: Study, tables: Tables) -> list[Table]:
    """Held-out R2 by coverage stratum, pooled over the runs of each cell of the study's grid."""
    frame = tables.combinations
    cells = [*(study.cells or ("family", "number")), "stratum"]
    if frame.empty or not {"error", "spread", *cells} <= set(frame.columns):
        return []
    held_out = frame[(frame["region"] == "held_out") & frame["spread"].notna()]
    grouped = held_out.groupby(cells, sort=False)
    sums = grouped[["error", "spread"]].sum()
    shown = (1 - sums["error"] / sums["spread"]).rename("r2").reset_index()
    shown["combinations"] = grouped["combination"].count().to_numpy()
    note = (
        "Held-out combinations by what training showed of them: all their pairs met, some never met, or a part never "
        "seen. Pooled over replicates; `combinations` counts combinations times replicates."
    )
    return [_table("Held-out R\N{SUPERSCRIPT TWO} by coverage", shown, note)]


def _facts(study: Study, record: Mapping[str, Any], tables: Tables, store: Store) -> dict[str, str]:
    """What the page rests on: where and when the study ran, which need not be here and now."""
    ran = record["provenance"]
    command = [f"recombine run {study.kind} --profile {record['profile'].partition(',')[0]}"]
    status = tables.runs["status"].value_counts().to_dict() if "status" in tables.runs else {}
    facts = {
        "study": study.kind,
        "profile": record["profile"],
        "runs": ", ".join(f"{count} {word}" for word, count in status.items()),
        "replicates": str(study.replicates),
        "training": f"{tables.runs['seconds'].sum():.0f} s in all" if "seconds" in tables.runs else "",
        "ran": ran["time"],
        "command": " ".join([*command, *record.get("overrides", ())]),
    }
    facts |= {name: str(value) for name, value in (ran["machine"] | ran["versions"]).items()}
    if store.problems:
        facts["left out"] = f"{len(store.problems)} problems in the store: see recombine doctor --store"
    return facts
