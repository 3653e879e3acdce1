"""The page of one study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.verdict_forest import draw_verdict_forest, verdict_forest_info
from recombine.figures.wording import answer_in_words
from recombine.report.html import Report, Table, write_report

if TYPE_CHECKING:
    from recombine.design.run import StudyResult


def study_page(result: StudyResult, path: Path) -> Path:
    """Write the page of a study.

    Args:
        result: What `run_study` returned.
        path: The HTML file.

    Returns:
        The path.
    """
    forest = verdict_forest_info(result.records)
    figures = [
        *result.figures,
        Figure("verdicts", "Effects, intervals and margins", forest.caption, draw_verdict_forest(forest)),
    ]
    report = Report(
        title=f"recombine: {result.study.kind}",
        question=result.study.question,
        answer=_answer(result.records),
        warning=_warning(result),
        verdicts=result.records,
        figures=figures,
        tables=[_table("Means over replicates", result.overview), *_strata(result)],
        facts=_facts(result),
    )
    return write_report(report, path)


def _answer(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """The answers to the primary claims in words."""
    claims = [record for record in verdicts if record["role"] == "claim"]
    # A study without a primary claim answers with its first one.
    primary = [record for record in claims if record["primary"]] or claims[:1]
    return "\n".join(map(answer_in_words, primary)) or "This study has no claim."


def _warning(result: StudyResult) -> str:
    """What the page lacks: runs that are not in the store, and damaged ones."""
    expected, words = len(set(result.record["runs"])), []
    if result.missing:
        words.append(f"{len(result.missing)} of {expected} runs are not in the store")
    if result.damaged:
        words.append(f"measurements of {len(result.damaged)} of {expected} runs cannot be read")
    if not words:
        return ""
    lacking = "Tables and figures lack them; the verdicts are those that were recorded when the study ran."
    lacking = "They rest on the others and were not recorded." if result.sweep is not None else lacking
    return f"Incomplete: {' and '.join(words)}. {lacking}"


def _table(title: str, frame: pd.DataFrame, note: str = "") -> Table:
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return Table(title, [str(name) for name in frame.columns], rows, note)


def _strata(result: StudyResult) -> list[Table]:
    """Held-out R2 by coverage stratum, pooled over the runs of each cell of each arm."""
    frame = result.tables.combinations
    if frame.empty or not {"error", "spread", "stratum"} <= set(frame.columns):
        return []
    labels = [name for name in result.overview.columns[: list(result.overview.columns).index("n")] if name in frame]
    held_out = frame[(frame["region"] == "held_out") & frame["spread"].notna()]
    grouped = held_out.groupby([*labels, "stratum"], sort=False, dropna=False)
    sums = grouped[["error", "spread"]].sum()
    shown = (1 - sums["error"] / sums["spread"]).rename("r2").reset_index()
    shown["combinations"] = grouped["combination"].count().to_numpy()
    note = (
        "Held-out combinations by what training showed of them: all their pairs met, some pairs never met, or a "
        "constituent was never seen. Pooled over replicates; `combinations` counts combinations times replicates."
    )
    return [_table("Held-out R\N{SUPERSCRIPT TWO} by coverage", shown, note)]


def _facts(result: StudyResult) -> dict[str, str]:
    """What the page rests on: where and when the study ran."""
    record, runs = result.record, result.tables.runs.drop_duplicates("run")
    provenance, expected = record["provenance"], len(set(record["runs"]))
    command = [f"recombine run {result.study.kind} --profile {record['profile'].partition(',')[0]}"]
    status = runs["status"].value_counts().to_dict() if "status" in runs else {}
    facts = {
        "study": result.study.kind,
        "profile": record["profile"],
        "runs": ", ".join(f"{count} {word}" for word, count in status.items()),
        "runs expected and found": f"{expected} and {expected - len(result.missing)}",
        "replicates": str(result.study.replicates),
        "training": f"{runs['seconds'].sum():.0f} s in total" if "seconds" in runs else "",
        "date": provenance["time"],
        "command": " ".join([*command, *record.get("overrides", ())]),
    }
    facts |= {name: str(value) for name, value in (provenance["machine"] | provenance["versions"]).items()}
    if result.store.problems:
        facts["left out"] = f"{len(result.store.problems)} problems in the store: see recombine doctor --store"
    return facts
