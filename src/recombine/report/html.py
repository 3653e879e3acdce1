"""A self-contained page: the question, the verdicts, the figures and the numbers."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from recombine.errors import BadInput
from recombine.figures.base import Figure
from recombine.figures.embed import DRAW, chart_json, policy, vega_bundle
from recombine.figures.files import write_whole
from recombine.figures.verdict_forest import in_order
from recombine.figures.wording import NOTHING, count_of, interval_in_words, margin_in_words, number, p_in_words, signed


@dataclasses.dataclass(frozen=True)
class Table:
    """A table on a page. A cell is a number, a text, a bool or None."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""
    names: Collection[int] = ()
    """Columns of names from data: their cells are cut on the screen, but whole when copied or hovered over."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise BadInput(
                    f"A row of table {self.title!r} has {len(row)} cells, but there are {len(self.columns)} columns.",
                    fix="give each row one cell per column; None leaves a cell empty",
                )


@dataclasses.dataclass(frozen=True)
class Report:
    """The content of a page."""

    title: str
    question: str
    answer: str
    """One sentence, made from the verdicts."""
    verdicts: Sequence[Mapping[str, Any]] = ()
    """Verdict records, as `Verdict.record()` makes them."""
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Settings and provenance."""
    warning: str = ""
    """What the page lacks."""


def write_report(report: Report, path: str | Path) -> Path:
    """Write a page as one self-contained HTML file.

    Args:
        report: The content of the page.
        path: The file to write.

    Returns:
        The path of the file.
    """
    return write_whole(path, render_report(report))


def render_report(report: Report) -> str:
    """The page as HTML text."""
    return render_page(
        "report.html.j2",
        report=report,
        counts=verdict_counts(report.verdicts),
        verdicts=[_verdict(record) for record in in_order(report.verdicts)],
        figures=drawn_figures(report.figures),
        tables=report.tables,
    )


class Drawn(NamedTuple):
    """A figure on a page."""

    number: int
    figure: Figure
    json: Markup


def drawn_figures(figures: Sequence[Figure]) -> list[Drawn]:
    """Number the figures of a page, in its order. Their charts become JSON that is safe inside HTML."""
    drawn = []
    for index, figure in enumerate(figures, start=1):
        spec = figure.chart.to_dict() | {"usermeta": {"embedOptions": {"mode": "vega-lite"}}}
        spec.pop("$schema", None)  # A page names no network address.
        drawn.append(Drawn(index, figure, Markup(chart_json(spec))))
    return drawn


def render_page(
    template: str, *, figures: Sequence[Drawn], styles: Sequence[str] = (), scripts: Sequence[str] = (), **words: Any
) -> str:
    """Render a template as HTML text.

    Args:
        template: A file of the folder `templates`.
        figures: The figures of the page. Without figures, the page has no drawing scripts.
        styles: Style sheets beside `report.css`.
        scripts: Files of that folder with scripts beside those that draw the figures.
        words: The variables of the template.
    """
    folder = resources.files("recombine.report") / "templates"

    def read(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    blocks: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
    loader = jinja2.FunctionLoader(read)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, **blocks)
    environment.filters |= {"cell": cell, "numeric": _numeric_columns}
    all_scripts = [*((vega_bundle(), DRAW) if figures else ()), *map(read, scripts)]
    # Only this package's own texts are marked as safe: scripts, style sheets, and JSON that is escaped for its place.
    return environment.get_template(template).render(
        figures=figures,
        policy=policy(*all_scripts),
        style=Markup("\n".join(read(name) for name in ("report.css", *styles))),
        scripts=[Markup(text) for text in all_scripts],
        **words,
    )


def cell(value: object) -> str:
    """A cell as text: numbers are short, missing values are a dash."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return number(int(value), 0)
    if isinstance(value, numbers.Real):
        size = abs(float(value))
        if size and math.isfinite(size) and not 0.001 <= size < 1e6:
            return f"{float(value):.2e}"
        return number(float(value), 3 if size < 10 else 1)
    return str(value)


def _numeric_columns(table: Table) -> list[bool]:
    """Which columns hold only numbers and are aligned to the right."""
    columns = [[row[index] for row in table.rows if row[index] is not None] for index in range(len(table.columns))]
    return [
        bool(column) and all(isinstance(value, numbers.Real) and not isinstance(value, bool) for value in column)
        for column in columns
    ]


TONES = {
    "holds": "supported",
    "does not hold": "contradicted",
    "too small to matter": "equivalent",
    "depends on the scale": "depends",
    "not decided": "inconclusive",
}
"""The class of each answer in the style sheet."""


def _verdict(record: Mapping[str, Any]) -> dict[str, Any]:
    """A verdict record as the template shows it."""
    word = str(record.get("answer", "not decided"))
    role = str(record.get("role", "claim"))
    adjusted, scales = record.get("p_adjusted"), record.get("scales") or ()
    name = f", {scales[0]['scale']}" if scales else ""
    details = [
        (f"effect{name}", signed(record.get("effect"))),
        ("95 % interval", interval_in_words(record.get("interval"))),
        *(
            (scale["scale"], f"{signed(scale['effect'])}, {interval_in_words(scale['interval'])}")
            for scale in scales[1:]
        ),
        ("margin", margin_in_words(record.get("direction"), record.get("margin"))),
        ("p", p_in_words(record.get("p"))) if adjusted is None else ("p, corrected", p_in_words(adjusted)),
        ("replicates", cell(record.get("replicates"))),
    ]
    return {
        "word": word,
        # Only known words become part of a class name.
        "kind_of_word": TONES.get(word, "inconclusive"),
        "kind": "primary claim" if record.get("primary") else "secondary claim" if role == "claim" else role,
        "primary": bool(record.get("primary")),
        "claim": str(record.get("claim", "")),
        "study": str(record.get("study", "")),
        "statement": str(record.get("statement") or record.get("claim", "")),
        "note": str(record.get("note") or ""),
        "details": details,
    }


def verdict_counts(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """The number of claims with each answer, in words."""
    words = [str(record.get("answer")) for record in verdicts]
    counts = [f"{word}: {words.count(word)}" for word in TONES if word in words]
    return f"{count_of(len(words), 'claim')} ({', '.join(counts)})" if counts else "no claims"
