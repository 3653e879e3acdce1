"""The figures of the study `coverage-planning`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.lines import draw_lines, lines_info
from recombine.studies.base import Tables

if TYPE_CHECKING:
    import pandas as pd

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
    runs = tables.runs.reindex(columns=tables.runs.columns.union([*WHERE, "score_held_out"]))
    arms = {arm: runs[runs["arm"] == arm] for arm in ("modules", "changes")}
    return [
        _by_budget(
            arms["modules"],
            NAMES,
            "score_by_number",
            "How many combinations does planning save?",
            "training combinations",
            "R² on combinations that no support may train on, the same for all of them. Every support has combinations of the "
            "largest size only, so the curves differ in which combinations were chosen and in nothing else.",
        ),
        _by_stratum(arms["modules"], study.numbers[0]),
        _by_budget(
            arms["changes"],
            BY_CHANGES,
            "score_by_changes",
            "Which strategy is worth its changes?",
            "changes of factors",
            "Where it is work to change a factor (to rebuild a scene), strategies are compared by the number of changes and not of "
            "combinations: the first combination costs all factors, each further one those that differ.",
        ),
    ]


def _by_budget(
    runs: pd.DataFrame, names: dict[str, str], name: str, title: str, x_title: str, lead: str
) -> Figure:
    info = lines_info(
        runs,
        x="budget",
        y="score_held_out",
        series="support",
        labels=names,
        floor=-0.25,
        ceiling=1.0,
        x_title=x_title,
        y_title="held-out R²",
        caption_lead=lead,
    )
    return Figure(name, title, info.caption, draw_lines(info))


def _by_stratum(runs: pd.DataFrame, few: int) -> Figure:
    info = dots_info(
        runs[runs["budget"] == few],
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
