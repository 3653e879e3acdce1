"""The figures of the study `coverage-planning`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.lines import draw_lines, lines_info
from recombine.studies.base import Tables

if TYPE_CHECKING:
    from recombine.studies.coverage_planning import CoveragePlanning

NAMES = {
    "planned": "planned for pairs",
    "planned-triples": "planned for triples",
    "d-optimal": "D-optimal",
    "e-optimal": "E-optimal",
    "usage": "equal usage",
    "random": "random",
    "pair-poor": "balanced, pair-poor",
}

BY_CHANGES = {
    "walk": "covering walk",
    "stair": "stair",
    "L": "L: one factor at a time",
    "diagonal": "diagonal",
    "random": "random",
}

WHERE = {
    "score_all_pairs_met": "held out: all pairs met",
    "score_some_pairs_unmet": "held out: a pair never met",
    "score_part_unseen": "held out: a part never seen",
}


def figures(study: CoveragePlanning, tables: Tables) -> list[Figure]:
    """Scores against the number of combinations, by stratum, and against the changes of factors."""
    return [_by_number(tables), _by_stratum(study, tables), _by_changes(tables)]


def _arm(tables: Tables, arm: str, *columns: str) -> object:
    runs = tables.runs.reindex(columns=tables.runs.columns.union([*columns, "score_held_out"]))
    return runs[runs["arm"] == arm]


def _by_number(tables: Tables) -> Figure:
    info = lines_info(
        _arm(tables, "modules"),  # type: ignore[arg-type]
        x="budget",
        y="score_held_out",
        series="support",
        labels=NAMES,
        floor=-0.25,
        ceiling=1.0,
        x_title="training combinations",
        y_title="held-out R²",
        caption_lead=(
            "R² on combinations that no support may train on, the same for all of them. Every support has combinations of the "
            "largest size only, so the curves differ in which combinations were chosen and in nothing else."
        ),
    )
    title = "How many combinations does planning save?"
    return Figure("score_by_number", title, info.caption, draw_lines(info))


def _by_stratum(study: CoveragePlanning, tables: Tables) -> Figure:
    runs = _arm(tables, "modules", *WHERE)
    few = study.numbers[0]
    info = dots_info(
        runs[runs["budget"] == few],  # type: ignore[index]
        "support",
        WHERE,
        labels=NAMES,
        notes={},
        floor=-0.5,
        ceiling=1.0,
        x_title="R²",
        caption_lead=(
            f"{few} training combinations. Held-out combinations by what training showed of their parts: a plan leaves fewer pairs "
            "that never met, and shows each pair less often."
        ),
    )
    return Figure("score_by_stratum", "Where is the gain?", info.caption, draw_dots(info))


def _by_changes(tables: Tables) -> Figure:
    info = lines_info(
        _arm(tables, "changes"),  # type: ignore[arg-type]
        x="budget",
        y="score_held_out",
        series="support",
        labels=BY_CHANGES,
        floor=-0.25,
        ceiling=1.0,
        x_title="changes of factors",
        y_title="held-out R²",
        caption_lead=(
            "Where it is work to change a factor (to rebuild a scene), strategies are compared by the number of changes and not of "
            "combinations: the first combination costs all factors, each further one those that differ."
        ),
    )
    title = "Which strategy is worth its changes?"
    return Figure("score_by_changes", title, info.caption, draw_lines(info))
