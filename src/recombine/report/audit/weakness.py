"""The sections of an audit's page about weak slices, single values and factors."""

from __future__ import annotations

from recombine.audit.findings import FactorEffect, ScoreFinding, Slice
from recombine.figures.audit.intervals import IntervalRow, draw_intervals, intervals_info
from recombine.figures.base import Figure
from recombine.figures.wording import p_in_words
from recombine.report.audit.answer import with_ends
from recombine.report.audit.sections import Section
from recombine.report.html import Table

MOST_VALUES = 200
"""How many values the page lists; the tables and --json have all."""


def slices_section(finding: ScoreFinding) -> Section | None:
    """The weakest slices, and the mean of every value."""
    if not finding.values:
        return None
    tables = [_values(finding.values)]
    figures = ()
    if finding.slices:
        rows = [
            IntervalRow(each.name, each.worse.estimate, each.worse.low, each.worse.high, f"n = {each.combinations:,}")
            for each in finding.slices
            if each.worse is not None
        ]
        info = intervals_info(
            rows,
            title=f"how much worse than all others, in points of {finding.score}",
            zero=True,
            lead="Combinations that share one value or two, the most certain loss first; n is their number.",
        )
        figures = (Figure("audit_slices", "Where it is weakest", info.caption, draw_intervals(info)),)
    uncertain = bool(finding.slices) and not any(each.certain for each in finding.slices)
    note = "None of these is certain: so many slices were compared that some are low by chance."
    return Section(
        "Where it is weakest",
        figures=figures,
        tables=tuple(tables),
        notes=(note,) if uncertain else (),
        method="t over combinations, with at least the spread of all combinations",
        source="Weakest slices",
    )


def _values(values: tuple[Slice, ...]) -> Table:
    rows = [
        (each.name, each.combinations, each.rows, with_ends(each.score), with_ends(each.worse, sign=True), _count(each))
        for each in values[:MOST_VALUES]
    ]
    columns = ["value", "combinations", "rows", "mean score", "worse than the others by", "trained combinations"]
    note = f"The first {MOST_VALUES} of {len(values):,}; --tables has all." if len(values) > MOST_VALUES else ""
    return Table("Every value", columns, rows, note, names=(0,))


def _count(value: Slice) -> str:
    return "unknown" if value.trained is None else f"{value.trained:,}"


def effects_section(finding: ScoreFinding) -> Section | None:
    """Which factors matter and which interact."""
    found = finding.effects
    if not found.effects and not found.note:
        return None
    named = [pair for each in found.effects for pair in (*each.worse, *each.better)]
    named.sort(key=lambda pair: pair.effect.estimate)
    tables = [_effects(found.effects)] if found.effects else []
    if named:
        rows = [(pair.name, with_ends(pair.effect, sign=True), pair.q) for pair in named]
        tables.append(Table("Pairs of values beyond their values", ["pair", "points", "q"], rows, names=(0,)))
    return Section(
        "Which factors matter, and which interact?",
        tables=tuple(tables),
        notes=(found.note,) if found.note else (),
        method="; ".join(dict.fromkeys(each.size.method for each in found.effects)),
        source="Factors",
    )


def _effects(effects: tuple[FactorEffect, ...]) -> Table:
    rows = [
        (
            each.name,
            each.kind,
            each.freedom,
            each.contrast or "standard deviation of effects",
            with_ends(each.size, sign=bool(each.contrast)),
            p_in_words(each.p),
        )
        for each in effects
    ]
    note = "Points of the score; above 0 is better. The p values are not corrected for their number."
    return Table(
        "Factors, trends and pairs of factors", ["name", "kind", "df", "what", "size", "p"], rows, note, names=(0,)
    )
