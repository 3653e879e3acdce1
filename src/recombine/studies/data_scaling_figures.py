"""The figures of the study `data-scaling`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine.figures.base import Figure
from recombine.figures.combination_map import combination_map_info
from recombine.figures.combination_map_drawing import draw_combination_map
from recombine.figures.curves import curves_info, draw_curves
from recombine.figures.decodability_by_layer import decodability_by_layer_info, draw_decodability_by_layer
from recombine.figures.score_by_size import draw_score_by_size, score_by_size_info
from recombine.studies.base import Tables

if TYPE_CHECKING:
    from recombine.studies.data_scaling import DataScaling


def figures(study: DataScaling, tables: Tables) -> list[Figure]:
    """Scores against data, decodability by layer, the map of the space, the curves."""
    space = (study.spaces or (study.base.space,))[0]
    family = study.base.family.kind
    # Sizes are comparable within a space only: with several, the figures show the first.
    here = Tables(
        *(
            frame[frame["space"] == space.title] if len(frame) else frame
            for frame in (tables.runs, tables.combinations, tables.probes, tables.curves)
        )
    )
    scores = score_by_size_info(here.runs, family, study.control.kind)
    probes = decodability_by_layer_info(here.probes[here.probes["family"] == family])
    labels = [space.label(part) for part in range(space.width)]
    cells = combination_map_info(here.combinations[here.combinations["family"] == family], labels)
    curves = curves_info(here.curves, family)
    where = f" ({space.title})" if study.spaces else ""
    return [
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
