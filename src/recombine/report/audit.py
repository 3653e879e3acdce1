"""The page of an audit: the answer, what to do, the map of the combination space, and what it all rests on."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any, NamedTuple

from recombine.audit.cells import Cells
from recombine.audit.findings import Advice, Audit
from recombine.audit.wording import counted, large
from recombine.errors import BadInput
from recombine.figures.audit_names import cut
from recombine.figures.files import write_whole
from recombine.plain import plain
from recombine.report.audit_answer import Answer, answer
from recombine.report.audit_sections import (
    Section,
    inside_section,
    map_section,
    parts_section,
    strata_section,
)
from recombine.report.html import Drawn, Table, drawn_figures, render_page

QUESTION = "Does it recombine, or does it memorise?"

COPY = """\
"use strict";
document.querySelectorAll("button[data-copy]").forEach(function (button) {
  const word = button.textContent;
  button.hidden = false;
  button.addEventListener("click", function () {
    const range = document.createRange();
    range.selectNode(document.getElementById(button.dataset.copy));
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    const done = document.execCommand("copy");
    button.textContent = done ? "Copied" : "Selected: copy it with your keyboard";
    window.setTimeout(function () { button.textContent = word; }, 2500);
  });
});
"""
"""Marks a table and copies it; what is marked can be copied by hand where the browser refuses."""


class Said(NamedTuple):
    """An advice on the page."""

    advice: Advice
    collect: Table | None
    name: str
    """What its table is called in the page."""


@dataclasses.dataclass(frozen=True)
class ScorePart:
    """All that the page says of one score."""

    number: int
    name: str
    answer: Answer
    advice: tuple[Said, ...]
    sections: tuple[Section, ...]
    drawn: tuple[tuple[Drawn, ...], ...] = ()
    """The figures of each section."""


def write_audit(audit: Audit, cells: Cells, path: str | Path) -> Path:
    """Write the page as one file that opens from disk without a network, and return its path."""
    path = Path(path)
    if path.is_dir():
        raise BadInput(
            f"{path} is a folder.", fix=f"give the file a name, for instance {path / 'audit.html'}"
        )
    return write_whole(path, render_audit(audit, cells))


def render_audit(audit: Audit, cells: Cells) -> str:
    """The page as text."""
    # Once and for all: whatever the names hold, nothing of it is hidden. The template escapes the rest.
    audit, cells = told(audit), told(cells)
    scores = [_score(audit, cells, index) for index in range(len(audit.scores))]
    drawn = drawn_figures([figure for score in scores for one in score.sections for figure in one.figures])
    left = iter(drawn)
    scores = [
        dataclasses.replace(
            score, drawn=tuple(tuple(itertools.islice(left, len(one.figures))) for one in score.sections)
        )
        for score in scores
    ]
    return render_page(
        "audit.html.j2",
        figures=drawn,
        styles=("audit.css",),
        scripts=(COPY,),
        title=f"recombine audit: {cut(Path(audit.source).name or 'a table', 80)}",
        question=QUESTION,
        read=_read(audit),
        scores=scores,
        support=audit.support,
        facts=_facts(audit),
        notes=audit.notes,
        methods=_methods(audit, scores),
    )


def told(value: Any) -> Any:
    """A record with all that cannot be seen in its texts told."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, tuple):
        return tuple(told(one) for one in value)
    if isinstance(value, dict):
        return {told(key): told(one) for key, one in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {field.name: told(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **named)
    return value


def _score(audit: Audit, cells: Cells, index: int) -> ScorePart:
    finding = audit.scores[index]
    sections = [
        map_section(finding, cells, index),
        strata_section(finding, cells, index),
        parts_section(finding),
        inside_section(finding),
    ]
    said = [
        Said(one, _collect(one, cells), f"collect-{index + 1}-{place}")
        for place, one in enumerate(finding.advice, start=1)
    ]
    return ScorePart(
        number=index + 1,
        name=cut(finding.score, 80),
        answer=answer(finding),
        advice=tuple(said),
        sections=tuple(section for section in sections if section is not None),
    )


def _collect(advice: Advice, cells: Cells) -> Table | None:
    """The combinations to collect, a column a place; the values of a set stand in one column."""
    if not advice.collect:
        return None
    # The longest name first: one place may begin with the name of another and an equals sign.
    places = sorted(dict.fromkeys(cells.place), key=len, reverse=True)
    rows: list[dict[str, str]] = []
    for combination in advice.collect:
        row: dict[str, list[str]] = {}
        for label in combination:
            place = next((name for name in places if label.startswith(f"{name}=")), "")
            row.setdefault(place, []).append(label[len(place) + 1 :] if place else label)
        rows.append({place: "; ".join(values) for place, values in row.items()})
    columns = [name for name in (*dict.fromkeys(cells.place), "") if any(name in row for row in rows)]
    body = [[row.get(name, "") for name in columns] for row in rows]
    return Table("", [cut(name, 60) or "combination" for name in columns], body, names=range(len(columns)))


def _read(audit: Audit) -> str:
    levels = " \N{MULTIPLICATION SIGN} ".join(
        f"{number:,} {cut(name, 40)}" for name, number in audit.factors.items()
    )
    return (
        f"{counted(audit.rows, 'row')}; {audit.combinations:,} of {large(audit.space_size)} possible combinations "
        f"scored ({levels})."
    )


def _facts(audit: Audit) -> dict[str, str]:
    facts = {
        "table": cut(Path(audit.source).name or "a table", 200),
        "scored rows": f"{audit.rows:,}",
        "scored combinations": f"{audit.combinations:,}",
        "possible combinations": large(audit.space_size),
        "trained combinations": "nobody said" if audit.support is None else f"{audit.support.size:,}",
    }
    return facts | {f"values of {cut(name, 60)}": f"{number:,}" for name, number in audit.factors.items()}


def _methods(audit: Audit, scores: list[ScorePart]) -> Table:
    """What the page rests on, with the section of docs/methods-audit.md that says how it is computed."""
    rows: dict[str, tuple[str, str]] = {}
    if audit.support is not None:
        rows["what training covers"] = ("counted on the combinations of both tables", "Coverage")
    for score in scores:
        for section in score.sections:
            if section.method:
                rows.setdefault(section.title.lower(), (section.method, section.source))
    rows["what to do"] = ("rules in their order, each with its numbers", "Advice rules")
    body = [(what, method, source) for what, (method, source) in rows.items()]
    return Table("Methods", ["what", "how", "section of docs/methods-audit.md"], body)
