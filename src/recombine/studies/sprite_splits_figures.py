"""The figures of the study `sprite-splits`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from recombine.families.sprites import FACTORS
from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.matrix import draw_matrix, matrix_info
from recombine.studies.base import Tables
from recombine.studies.sprite_splits import NETWORKS, SAID

if TYPE_CHECKING:
    from recombine.studies.sprite_splits import SpriteSplits

READOUTS = {
    "success_held_out": "the network",
    "refit_success": "new readout",
    "refit_success_untrained": "new readout, untrained",
}
"""What reads the deepest layer, by the columns of runs."""


def figures(study: SpriteSplits, tables: Tables) -> list[Figure]:
    """R2 by split, by split and factor, and what a new readout says beyond the range."""
    columns = [f"r2_{factor}_held_out" for factor in FACTORS]
    wanted = ["replicate", "network", "split", "r2_held_out", *columns, *READOUTS]
    runs = study.main_runs(tables).reindex(columns=wanted)
    return [_by_split(runs), _by_factor(runs), _readouts(runs)]


def _by_split(runs: pd.DataFrame) -> Figure:
    wide = runs.pivot_table(index=["split", "replicate"], columns="network", values="r2_held_out")
    info = dots_info(
        wide.reindex(columns=list(NETWORKS)).reset_index(),
        category="split",
        measures=NETWORKS,
        labels=SAID,
        ceiling=1.0,
        x_title="held-out R²",
        caption_lead=(
            "R² (mean over shape, size, column and row) on images of combinations that were never trained, by what was held out: "
            "combinations at random, one shape in one corner, one shape in half of the columns, half of the columns for all. "
            "1 is perfect; who always says the mean of all combinations has 0 on average."
        ),
    )
    return Figure("score_by_split", "Which splits can be recombined?", info.caption, draw_dots(info))


def _by_factor(runs: pd.DataFrame) -> Figure:
    names = {f"r2_{factor}_held_out": factor for factor in FACTORS}
    long = runs.melt(["replicate", "network", "split"], list(names), "factor", "r2")
    info = matrix_info(
        long,
        row="split",
        column="factor",
        value="r2",
        facet="network",
        row_labels=SAID,
        column_labels=names,
        facet_labels=NETWORKS,
        domain=(0.0, 1.0),
        value_title="R²",
        caption_lead=(
            "R² of each factor on held-out combinations; the variance by which the error is measured is that of the whole space, so "
            "that splits are comparable. Recombination to range leaves one shape out of half of the columns, extrapolation "
            "leaves half of the columns out."
        ),
    )
    return Figure("score_by_factor", "Which factor is lost?", info.caption, draw_matrix(info))


def _readouts(runs: pd.DataFrame) -> Figure:
    info = dots_info(
        runs[runs["split"] == "extrapolation"],
        category="network",
        measures=READOUTS,
        labels=NETWORKS,
        floor=0.0,
        ceiling=1.0,
        x_title="share of images with every factor right",
        caption_lead=(
            "Extrapolation: how many images are wholly right whose columns were never trained. The network itself; a new "
            "linear readout of its deepest layer, fitted on other combinations with these columns; the same for the network "
            "before training."
        ),
    )
    return Figure("beyond_the_range", "Does it know what it cannot say?", info.caption, draw_dots(info))
