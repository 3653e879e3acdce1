"""The figures of the study `recipes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.scatter import draw_scatter, scatter_info
from recombine.studies.base import Tables
from recombine.studies.supports_figures import NAMES

if TYPE_CHECKING:
    from recombine.studies.recipes import Recipes


def figures(study: Recipes, tables: Tables) -> list[Figure]:
    """Held-out score on the way down the loss, and in the end with each support."""
    return [_on_the_way(tables), _in_the_end(study, tables)]


def _on_the_way(tables: Tables) -> Figure:
    wanted = ["support", "recipe", "loss", "score_held_out", "run"]
    curves = tables.curves.reindex(columns=wanted)
    curves = curves[curves["support"] == "random"]
    curves = curves.assign(loss=np.log10(curves["loss"].astype(float)))
    info = scatter_info(
        curves,
        "loss",
        "score_held_out",
        "recipe",
        labels={"fast": "fast", "paper": "paper"},
        name="run",
        x_title="training loss (power of ten)",
        y_title="held-out R²",
        caption_lead=(
            "One point a look at a run on the way: training loss since the last look, and R² on held-out combinations. "
            "Training goes from right to left. Where the two clouds lie on one another, equal loss means equal recombination."
        ),
    )
    return Figure("on_the_way", "Is it the loss or the recipe?", info.caption, draw_scatter(info))


def _in_the_end(study: Recipes, tables: Tables) -> Figure:
    kinds = list(study.kinds(study.first_seed))
    runs = tables.runs.reindex(columns=tables.runs.columns.union(["score_held_out"]))
    wide = runs.pivot_table(
        index=["replicate", "support"], columns="recipe", values="score_held_out", sort=False
    )
    frame = wide.reindex(columns=["fast", "paper"]).reset_index()
    info = dots_info(
        pd.DataFrame(frame),
        "support",
        {"fast": "fast", "paper": "paper"},
        labels={kind: NAMES.get(kind, "random, few") for kind in kinds},
        notes={},
        floor=-0.5,
        ceiling=1.0,
        x_title="held-out R²",
        caption_lead=(
            "Each kind of training support with either recipe. `paper` is stopped before it is as far as `fast`, so it lies lower; "
            "what counts is whether the same supports lie below the others."
        ),
    )
    return Figure("by_support", "Do the same supports hurt?", info.caption, draw_dots(info))
