"""The page of an audit: the answer, what to do, the map of the combination space, findings and methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recombine.audit.cells import Cells
from recombine.audit.comparison.findings import Comparison
from recombine.audit.comparison.gate import Check
from recombine.audit.findings import Advice, Audit
from recombine.audit.tables import values_by_slot
from recombine.audit.wording import counted, large
from recombine.figures.base import Figure
from recombine.figures.files import write_whole
from recombine.figures.wording import cut
from recombine.report.audit.answer import answer
from recombine.report.audit.gate import gate_section
from recombine.report.audit.sections import draw_sections, inside_section, map_section, parts_section, strata_section
from recombine.report.audit.weakness import effects_section, slices_section
from recombine.report.html import Table, render_page
from recombine.report.visible import visible

QUESTION = "Does it recombine, or does it memorise?"


def write_audit(
    audit: Audit, cells: Cells, path: str | Path, *, checks: Sequence[Check] = (), comparison: Comparison | None = None
) -> Path:
    """Write the page of an audit as one self-contained HTML file.

    Args:
        audit: The findings.
        cells: The combinations they are about.
        path: The file to write.
        checks: The conditions of a gate, judged.
        comparison: What changed since the gate's baseline.

    Returns:
        The path of the file.
    """
    return write_whole(path, render_audit(audit, cells, checks=checks, comparison=comparison))


def render_audit(
    audit: Audit, cells: Cells, *, checks: Sequence[Check] = (), comparison: Comparison | None = None
) -> str:
    """The page of an audit as HTML text. Arguments as for `write_audit`."""
    # Write out invisible characters in names from data. The template escapes markup.
    audit, cells = visible(audit), visible(cells)
    scores = [_score(audit, cells, index) for index in range(len(audit.scores))]
    return render_page(
        "audit.html.j2",
        figures=draw_sections(scores),
        styles=("audit.css",),
        scripts=("copy.js",),
        title=f"recombine audit: {cut(Path(audit.source).name or 'a table', 80)}",
        question=QUESTION,
        read=_read(audit),
        scores=scores,
        gate=gate_section(visible(tuple(checks)), visible(comparison)) if checks else None,
        support=audit.support,
        facts=_facts(audit),
        notes=audit.notes,
        direction=_direction(audit),
        methods=_methods(audit, scores),
    )


def audit_figures(audit: Audit, cells: Cells) -> list[Figure]:
    """The figures of the page, in its order. Arguments as for `write_audit`."""
    audit, cells = visible(audit), visible(cells)
    parts = [_score(audit, cells, index) for index in range(len(audit.scores))]
    return [figure for part in parts for section in part["sections"] for figure in section.figures]


def _direction(audit: Audit) -> str:
    """Which scores are good."""
    low = [score.score for score in audit.scores if score.scale.lower_is_better]
    if not low:
        return "Higher scores count as better."
    return "Lower scores count as better." if len(low) == len(audit.scores) else f"Lower is better of {', '.join(low)}."


def _score(audit: Audit, cells: Cells, index: int) -> dict[str, Any]:
    """What the template shows of one score, without the drawn figures."""
    finding = audit.scores[index]
    sections = [map_section(finding, cells, index), strata_section(finding, cells, index)]
    sections += [slices_section(finding), effects_section(finding), parts_section(finding), inside_section(finding)]
    # The name is the HTML id of the table of combinations.
    items = [
        {"advice": advice, "collect": _collect(advice, cells), "name": f"collect-{index + 1}-{number}"}
        for number, advice in enumerate(finding.advice, start=1)
    ]
    part = {"number": index + 1, "name": cut(finding.score, 80), "answer": answer(finding), "advice": items}
    return part | {"sections": [section for section in sections if section is not None]}


def _collect(advice: Advice, cells: Cells) -> Table | None:
    """The combinations to collect, one column per slot. The values of a set share one column."""
    if not advice.collect:
        return None
    places = list(dict.fromkeys(cells.slots))
    rows = [values_by_slot(combination, places) for combination in advice.collect]
    columns = [name for name in places if any(name in row for row in rows)]
    body = [[row.get(name, "") for name in columns] for row in rows]
    return Table("", [cut(name, 60) for name in columns], body, names=range(len(columns)))


def _read(audit: Audit) -> str:
    levels = " \N{MULTIPLICATION SIGN} ".join(f"{number:,} {cut(name, 40)}" for name, number in audit.factors.items())
    scored = f"{audit.combinations:,} of {large(audit.space_size)} possible combinations scored"
    return f"{counted(audit.rows, 'row')}; {scored} ({levels})."


def _facts(audit: Audit) -> dict[str, str]:
    facts = {
        "table": cut(Path(audit.source).name or "a table", 200),
        "scored rows": f"{audit.rows:,}",
        "scored combinations": f"{audit.combinations:,}",
        "possible combinations": large(audit.space_size),
        "trained combinations": "unknown" if audit.support is None else f"{audit.support.size:,}",
    }
    return facts | {f"values of {cut(name, 60)}": f"{number:,}" for name, number in audit.factors.items()}


def _methods(audit: Audit, scores: list[dict[str, Any]]) -> Table:
    """The methods behind the page, with the sections of docs/methods-audit.md that describe them."""
    rows: dict[str, tuple[str, str]] = {}
    if audit.support is not None:
        rows["what training covers"] = ("counts over trained and evaluated combinations", "Coverage")
    for score in scores:
        for section in score["sections"]:
            if section.method:
                rows.setdefault(section.title.lower(), (section.method, section.source))
    rows["what to do"] = ("explicit rules, in a fixed order", "Advice rules")
    body = [(what, method, source) for what, (method, source) in rows.items()]
    return Table("Methods", ["what", "how", "section of docs/methods-audit.md"], body)
