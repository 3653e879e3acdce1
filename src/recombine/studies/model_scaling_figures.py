"""The figures of the study `model-scaling`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.lines import draw_lines, lines_info
from recombine.studies.base import Tables

if TYPE_CHECKING:
    from recombine.studies.model_scaling import ModelScaling

MEASURES = {
    "r2_held_out": "held-out R²",
    "intrinsic": "parts decodable in the deepest layer (R²)",
    "efficacy_best": "efficacy of swapping a decoded part",
}


def figures(study: ModelScaling, tables: Tables) -> list[Figure]:
    """Each measure against width and against depth, a line an encoding."""
    runs = tables.runs[tables.runs["family"] == study.base.family.kind]
    runs = runs.reindex(columns=runs.columns.union(list(MEASURES)))
    kinds = [*(encoding.kind for encoding in study.encodings), "few-shot"]
    deep = runs[(runs["depth"] == study.depths[-1]) | (runs["encoding"] == "few-shot")]
    wide = runs[(runs["width"] == study.widths[-1]) & (runs["encoding"] != "few-shot")]
    made = []
    for x, frame, words in (("width", deep, "width"), ("depth", wide, "number of hidden layers")):
        parts = [
            frame[["replicate", "encoding", x]].assign(value=frame[name].astype(float), measure=title)
            for name, title in MEASURES.items()
        ]
        info = lines_info(
            pd.concat(parts, ignore_index=True),
            x=x,
            y="value",
            series="encoding",
            facet="measure",
            labels={name: name for name in kinds},
            facet_labels={title: title for title in MEASURES.values()},
            log=x == "width",
            floor=-0.25,
            ceiling=1.0,
            x_title=words,
            y_title="",
            caption_lead=(
                f"Networks trained on the same combinations, by their {words}. Left: R² on combinations that were never "
                "trained. Middle: how well a linear map reads the parts off the deepest layer. Right: how far swapping one "
                "part by its decoded direction moves the output to that of the other task (1: all the way), at the layer "
                "chosen on validation pairs. Few-shot has a reduced teacher and its own widths."
            ),
        )
        made.append(
            Figure(
                f"by_{x}",
                f"Do {'wider' if x == 'width' else 'deeper'} networks recombine better?",
                info.caption,
                draw_lines(info),
            )
        )
    return made
