"""The figures of the study `data-scaling`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.combination_map import combination_map_info
from recombine.figures.combination_map_drawing import draw_combination_map
from recombine.figures.curves import curves_info, draw_curves
from recombine.figures.decodability_by_layer import decodability_by_layer_info, draw_decodability_by_layer
from recombine.figures.lines import draw_lines, lines_info
from recombine.figures.score_by_size import draw_score_by_size, score_by_size_info
from recombine.studies.base import Tables
from recombine.studies.data_scaling_arms import World, needed, worlds
from recombine.studies.pictures import episodes

if TYPE_CHECKING:
    from recombine.studies.data_scaling import DataScaling


def figures(study: DataScaling, tables: Tables) -> list[Figure]:
    """Scores against data, decodability by layer, the map of the space, the curves."""
    space = (study.spaces or (study.base.space,))[0]
    family = study.base.family.kind

    # Sizes are comparable within a space only: with several, the figures show the first.
    def shown(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[(frame["space"] == space.title) & (frame["arm"] == "main")] if len(frame) else frame

    here = Tables(shown(tables.runs), shown(tables.combinations), shown(tables.probes), shown(tables.curves))
    scores = score_by_size_info(here.runs, family, study.control.kind)
    probes = decodability_by_layer_info(here.probes[here.probes["family"] == family])
    labels = [space.label(part) for part in range(space.width)]
    cells = combination_map_info(here.combinations[here.combinations["family"] == family], labels)
    curves = curves_info(here.curves, family)
    where = f" ({space.title})" if study.spaces else ""
    made = [
        Figure(
            "score_by_size",
            f"The more combinations in training, the better on unseen ones?{where}",
            scores.caption,
            draw_score_by_size(scores),
        ),
        Figure(
            "decodability_by_layer",
            f"How readable are the parts inside the network?{where}",
            probes.caption,
            draw_decodability_by_layer(probes),
        ),
        Figure(
            "combination_map",
            f"Which pairs of parts were trained, which held out, and how well did each do?{where}",
            cells.caption,
            draw_combination_map(cells),
        ),
        Figure("curves", f"Scores while the networks train{where}", curves.caption, draw_curves(curves)),
    ]
    for world in worlds(study):
        made.append(_world(world, tables))
        made += episodes(world.base)
    if study.growth:
        made.append(_growth(study, tables))
    return made


WORLDS = {"preferences": "a grid world", "goals": "a maze, with the goal told in English"}


def _world(world: World, tables: Tables) -> Figure:
    runs = tables.runs[tables.runs["arm"] == world.name]
    parts = []
    for family in runs["family"].unique():
        own = runs[runs["family"] == family]
        control = "control: " if family == world.control.kind else ""
        for column, words in (("accuracy_in", "trained"), ("accuracy_held_out", "held out")):
            values = own.reindex(columns=[column])[column].astype(float)
            parts.append(own[["replicate", "number"]].assign(accuracy=values, series=f"{control}{words}"))
    order = ("trained", "held out", "control: trained", "control: held out")
    info = lines_info(
        pd.concat(parts, ignore_index=True),
        x="number",
        y="accuracy",
        series="series",
        labels={name: name for name in order},
        controls=order[2:],
        ceiling=1.0,
        x_title="number of training combinations",
        y_title="accuracy of whole trajectories",
        caption_lead=(
            "The share of episodes in which the network takes the teacher's action at every step. In the control every "
            f"combination has {world.name} of its own, so that nothing can be recombined."
        ),
    )
    return Figure(world.name, f"And in {WORLDS[world.name]}?", info.caption, draw_lines(info))


def _growth(study: DataScaling, tables: Tables) -> Figure:
    found = needed(tables, study.threshold)
    info = lines_info(
        found,
        x="size",
        y="needed",
        log_y=True,
        x_title="combinations that there are",
        y_title=f"training combinations needed for R² {study.threshold:g}",
        caption_lead=(
            "How many training combinations a held-out R² needs, against the size of the space; both axes are logarithmic. "
            f"{int((found['censored'] != 'no').sum())} of {len(found)} lie beyond the numbers tried and are drawn at the "
            "largest (or smallest); the slope takes them for what they are."
        ),
    )
    return Figure(
        "needed_by_space", "How does the data needed grow with the space?", info.caption, draw_lines(info)
    )
