"""Scores during training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.lines import LinesInfo, draw_lines, lines_info
from recombine.figures.summary import require
from recombine.figures.theme import size_name

if TYPE_CHECKING:
    from recombine.training.outcome import Outcome

FLOOR = -0.25
"""The lowest end of the score axis."""
MOST_STEPS = 120
PANELS = {"score_in": "trained combinations", "score_held_out": "held-out combinations"}
LEAD = (
    "R² on validation data during training: on combinations from the training set (left) and on held-out combinations "
    "(right)."
)


def curves_info(curves: pd.DataFrame) -> LinesInfo:
    """Scores against steps for each training-set size, at most `MOST_STEPS` steps per run.

    Args:
        curves: The store's table of curves: one row per run and evaluation.

    Returns:
        The input of `draw_lines`. Means are only at steps that all replicates of a size have.
    """
    require(curves, ("replicate", "number", "step", *PANELS), "curves")
    shown = curves[curves["step"].isin(_thinned(curves["step"].to_numpy()))]
    long = shown.melt(["replicate", "number", "step"], list(PANELS), "score", "value")
    sizes = {size: size_name(size) for size in sorted(set(long["number"]))}
    style = {"labels": sizes, "facet_labels": PANELS, "ordered": True, "log": False, "bands": True}
    info = lines_info(
        long, "step", "value", "number", "score", x_title="step", y_title="R²", caption_lead=LEAD, **style
    )
    # A run that stops early would shift the mean of the others where it ends.
    most = info.summary.groupby(["facet", "series"])["replicates"].transform("max")
    low = float(info.points["y"].min()) if len(info.points) else 0.0
    least = max(FLOOR, math.floor(low * 10) / 10) if low < 0 else 0.0
    summary = info.summary[info.summary["replicates"] == most].reset_index(drop=True)
    return info._replace(summary=summary, domain=(least, 1.0))


def _thinned(steps: np.ndarray) -> np.ndarray:
    """The steps to show: all of them, or `MOST_STEPS` at even distances, with the first and the last."""
    distinct = np.unique(steps)
    if len(distinct) <= MOST_STEPS:
        return distinct
    return distinct[np.linspace(0, len(distinct) - 1, MOST_STEPS).round().astype(int)]


def plot_curves(outcome: Outcome) -> ChartType:
    """Plot the scores of one run against its steps, on trained and on held-out combinations.

    Args:
        outcome: The result of `recombine.train`.

    Returns:
        An Altair chart. A notebook shows it, and `chart.save("curves.html")` writes it to a file.
    """
    frame = pd.DataFrame(outcome.curves).assign(replicate=0, number=outcome.setting.support.size)
    return draw_lines(curves_info(frame))
