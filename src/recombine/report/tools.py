"""The page of an audit of function calling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from recombine.audit.tools.findings import ToolsFindings
from recombine.audit.tools.grading import RIGHT
from recombine.audit.wording import estimate
from recombine.endpoints.tools_audit import ToolsAudit
from recombine.figures.base import Figure
from recombine.figures.matrix import draw_matrix, matrix_info
from recombine.figures.wording import NOTHING
from recombine.plain import plain
from recombine.report.html import Report, Table, write_report

QUESTION = "Which functions can the model call, and which pairs of them can it nest?"
WHY = {
    "combination": "the combination",
    "outer function": "the outer function",
    "inner function": "the inner function",
    "both functions": "both functions",
}
UNTRAINED = "no-training-information"
"""The audit's advice to name its own option, which this command does not have."""
SHOWN = 20
"""How many wrong answers the page shows."""
LONGEST = 300
"""Most characters of an answer without calls."""
WIDEST = 40
"""A map with more functions would be unreadable; the table of pairs has them all."""


def write_tools(made: ToolsAudit, found: ToolsFindings, path: str | Path) -> Path:
    """Write the page of an audit of function calling as one self-contained HTML file.

    Args:
        made: The questions and answers.
        found: The findings.
        path: The file to write.

    Returns:
        The path of the file.
    """
    advice = " ".join(found.advice)
    report = Report(
        title=f"recombine audit-llm tools: {plain(str(made.settings.get('model', '')))}",
        question=QUESTION,
        answer=plain(f"{found.verdict} {advice}".strip()),
        figures=[*_map(found)],
        tables=[*_pairs(found), _functions(found), _depths(found), _answers(found), *_audit(found), *_wrong(made)],
        facts=_facts(made, found),
    )
    return write_report(report, path)


def share(value: float) -> str:
    """A share as text; a dash if it is not known."""
    return NOTHING if math.isnan(value) else f"{value:.2f}"


def _map(found: ToolsFindings) -> Iterator[Figure]:
    names = [plain(each.name) for each in found.functions]
    if not found.pairs or len(names) > WIDEST:
        return
    frame = pd.DataFrame(
        [(plain(pair.outer), plain(pair.inner), pair.nested / pair.asked) for pair in found.pairs],
        columns=pd.Index(["outer", "inner", "nested"]),
    )
    info = matrix_info(
        frame,
        "outer",
        "inner",
        "nested",
        row_labels={name: name for name in names if name in set(frame["outer"])},
        column_labels={name: name for name in names if name in set(frame["inner"])},
        domain=(0.0, 1.0),
        row_title="outer function",
        column_title="inner function, whose result is an argument of the outer one",
        value_title="nested rightly",
        caption_lead="The share of questions in which the inner function's result went into the outer function, with the right "
        "other arguments of both.",
    )
    yield Figure("pairs", "Which pairs of functions nest?", info.caption, draw_matrix(info))


def _pairs(found: ToolsFindings) -> Iterator[Table]:
    if not found.pairs:
        return
    shown = found.failing or found.pairs[:SHOWN]
    known = found.pairs[0].trained is not None
    rows = [
        [plain(pair.outer), plain(pair.inner), f"{pair.nested} of {pair.asked}", WHY.get(pair.reason, NOTHING), pair.q]
        + ([pair.trained] if known else [])
        for pair in shown
    ]
    columns = ["outer function", "inner function", "nested", "why it fails", "q", *(["in training"] if known else [])]
    note = (
        "A pair fails if less than half of its nestings are right. It fails because of the combination if both functions are "
        "right alone, and nest with most other functions. q: false discovery rate of a score below the sum of both functions' "
        "effects, where the audit of all nestings names the pair."
    )
    title = "Pairs that do not nest" if found.failing else "All pairs nest: the lowest shares"
    yield Table(title, columns, rows, note, names=(0, 1))


def _functions(found: ToolsFindings) -> Table:
    rows = [
        [plain(each.name), share(each.alone), share(each.as_outer), share(each.as_inner), each.asked]
        for each in found.functions
    ]
    columns = ["function", "right alone", "right as outer", "right as inner", "nestings"]
    return Table("Functions", columns, rows, "Shares of right calls and of right nestings.", names=(0,))


def _depths(found: ToolsFindings) -> Table:
    rows = [[each.depth, each.questions, estimate(each.right)] for each in found.depths]
    note = "Shares of wholly right answers with Wilson's 95 % interval; the units are chains of functions."
    return Table("Depth", ["functions in the chain", "questions", "right"], rows, note)


def _answers(found: ToolsFindings) -> Table:
    scores = found.scores
    rows: list[list[object]] = [[outcome, number] for outcome, number in found.outcomes.items()]
    note = (
        f"Means over all questions: names F1 {scores.names:.2f}, arguments F1 {scores.arguments:.2f}, order of calls "
        f"{scores.order:.2f}, calls of functions that do not exist {scores.hallucinated:.2f}. Of several errors in one answer "
        "the first in docs/audit-llm.md names it."
    )
    return Table("Answers by kind", ["kind", "answers"], rows, note)


def _audit(found: ToolsFindings) -> Iterator[Table]:
    if found.audit is None:
        return
    rows: list[list[object]] = [["parts or combinations", plain(found.audit.scores[0].parts.verdict)]]
    for advice in found.audit.scores[0].advice:
        if advice.rule != UNTRAINED:
            rows.append([advice.rule, plain(advice.sentence)])
    rows.extend(["note", plain(note)] for note in found.audit.notes)
    note = (
        "The audit of docs/audit-a-model.md, by outer and inner function. Its test in log odds asks for more than one failing "
        "pair: where all other nestings are right, two effects of parts explain one failure. The q-value above is on the scale of "
        "shares."
    )
    yield Table("The audit of the nestings", ["question", "finding"], rows, note)


def _wrong(made: ToolsAudit) -> Iterator[Table]:
    wrong = made.answers[made.answers["outcome"] != RIGHT].head(SHOWN)
    if wrong.empty:
        return
    columns = ["functions", "expected", "called", "kind"]
    rows = [
        [*(plain(text) for text in (functions, expected, called or said[:LONGEST])), kind]
        for functions, expected, called, said, kind in (
            map(str, row)
            for row in wrong[["functions", "expected", "called", "said", "outcome"]].itertuples(index=False)
        )
    ]
    yield Table("Some wrong answers", columns, rows, "answers.csv has all answers.", names=(0, 1, 2))


def _facts(made: ToolsAudit, found: ToolsFindings) -> dict[str, str]:
    facts = {name: str(value) for name, value in made.settings.items()}
    asked = len(made.plan.questions)
    facts |= {
        "questions": f"{asked}, {len(made.answers)} of them answered; {made.plan.possible:,} chains are possible",
        "pairs": f"{made.plan.pairs} asked of {made.plan.nestable} that can nest",
        "examples to train on": f"{len(made.examples)} (examples.jsonl)",
    }
    facts |= {f"note {number}": note for number, note in enumerate(made.notes, start=1)}
    return {plain(name): plain(value) for name, value in facts.items()}
