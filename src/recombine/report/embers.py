"""The page of an audit of a language model for embers of autoregression."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recombine.audit.embers.findings import LEVELS, Embers, Share
from recombine.audit.wording import estimate
from recombine.endpoints.embers_audit import EmbersAudit
from recombine.figures.base import Figure
from recombine.figures.verdict_forest import draw_verdict_forest, verdict_forest_info
from recombine.figures.wording import answer_in_words
from recombine.plain import plain
from recombine.report.html import Report, Table, write_report

QUESTION = "Does the model do better if the task is common, or the answer probable?"
SHOWN = 20
"""How many wrong answers the page shows."""


def write_embers(made: EmbersAudit, found: Embers, path: str | Path) -> Path:
    """Write the page of an embers audit as one self-contained HTML file.

    Args:
        made: The questions and answers.
        found: The findings.
        path: The file to write.

    Returns:
        The path of the file.
    """
    verdicts = [verdict.record() for verdict in found.verdicts]
    forest = verdict_forest_info(verdicts)
    caption = f"{forest.caption} Here the replicates are texts."
    report = Report(
        title=f"recombine audit-llm embers: {plain(str(made.settings.get('model', '')))}",
        question=QUESTION,
        answer=answer_in_words(verdicts[0], "texts"),
        verdicts=verdicts,
        figures=[Figure("verdicts", "Effects, intervals and margins", caption, draw_verdict_forest(forest))],
        tables=[_shares(found), _weights(found), _wrong(made)],
        facts=_facts(made, found),
    )
    return write_report(report, path)


def share_rows(found: Embers) -> Iterator[tuple[str, str, int, dict[str, Share]]]:
    """For each task and variant: the number of items, and the shares of right answers by probability level."""
    cells: dict[tuple[str, str], dict[str, Share]] = {}
    for share in found.shares:
        cells.setdefault((share.task, share.variant), {})[share.level] = share
    for (task, variant), by_level in cells.items():
        yield task, variant, by_level["all"].items, by_level


def _shares(found: Embers) -> Table:
    rows = []
    for task, variant, items, by_level in share_rows(found):
        shown = [estimate(by_level[level].right) if level in by_level else None for level in ("all", *LEVELS)]
        rows.append([plain(task), variant, items, *shown])
    columns = ["task", "variant", "items", "all", *(f"{level} probability" for level in LEVELS)]
    note = (
        "Shares of right answers with Wilson's 95 % interval; the units are texts. Levels are thirds of the answer's "
        "log-probability within a task, or of the given text's log-probability if the task is to encode."
    )
    return Table("Right answers", columns, rows, note)


def _weights(found: Embers) -> Table:
    rows = [[each.name, each.weight.estimate, each.weight.low, each.weight.high] for each in found.weights]
    note = (
        "Log-odds of a right answer per 10 nats of log-probability and per 10 characters of length. Logistic "
        f"regression with a fixed effect for each task and a normal random effect for each text (standard deviation {found.spread:.2f})."
    )
    return Table("Regression", ["column", "weight", "95 % from", "to"], rows, note)


def _wrong(made: EmbersAudit) -> Table:
    wrong = made.answers[made.answers["correct"] == 0].head(SHOWN)
    columns = wrong[["task", "variant", "answer", "said"]]
    rows = [[plain(str(value)) for value in row] for row in columns.itertuples(index=False)]
    return Table("Some wrong answers", ["task", "variant", "right", "said"], rows, names=(2, 3))


def _facts(made: EmbersAudit, found: Embers) -> dict[str, str]:
    facts = {name: str(value) for name, value in made.settings.items()}
    facts |= {"items": f"{made.items}, {len(made.answers)} of them answered", "texts": str(found.texts)}
    notes = (*made.notes, *found.notes)
    facts |= {f"note {number}": note for number, note in enumerate(notes, start=1)}
    return {plain(name): plain(value) for name, value in facts.items()}
