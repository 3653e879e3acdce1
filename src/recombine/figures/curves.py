"""Scores over the steps of training."""

from __future__ import annotations

import math
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.summary import replicates_in_words, require, summarise
from recombine.figures.theme import message_chart, size_colours, size_name, themed, values
from recombine.figures.wording import number as in_words

FLOOR = -0.25
MOST_STEPS = 120
COLUMNS = ("run", "replicate", "number", "family", "step", "score_in", "score_held_out")
PANELS = {"score_in": "trained combinations", "score_held_out": "held-out combinations"}


class CurvesInfo(NamedTuple):
    """What the figure shows."""

    sizes: tuple[int, ...]
    summary: pd.DataFrame
    """score, number, step, mean, low, high, replicates; only steps that all replicates of a size have."""
    runs: pd.DataFrame
    """score, number, replicate, run, step, value; thinned to at most `MOST_STEPS` steps a run."""
    domain: tuple[float, float]
    cut: bool
    """Something lies below the axis."""

    @property
    def caption(self) -> str:
        """How to read the figure."""
        return (
            "R² on validation data while the network trains, on combinations it was trained "
            "on (left) and on combinations it never saw (right). Thick lines are means, thin ones single "
            "runs. "
            + replicates_in_words(self.summary).replace("Bars", "Bands")
            + (f" What lies below {in_words(self.domain[0])} is cut off." if self.cut else "")
        )


def curves_info(
    curves: pd.DataFrame, family: str | None = "hyperteacher", floor: float = FLOOR
) -> CurvesInfo:
    """Scores against steps for each size. `family=None` takes the curves of every family."""
    require(curves, COLUMNS, "curves")
    chosen = curves if family is None else curves[curves["family"] == family]
    parts = []
    for score in PANELS:
        part = chosen[["number", "replicate", "run", "step"]].assign(
            score=score, value=chosen[score].astype(float)
        )
        parts.append(part[np.isfinite(part["value"])])
    every = pd.concat(parts, ignore_index=True)
    every = every[["score", "number", "replicate", "run", "step", "value"]]
    every = every[every["step"].isin(_kept(every["step"].to_numpy()))].reset_index(drop=True)
    summary = summarise(every, ["score", "number", "step"], "value")
    if len(summary):
        # Runs that stop early would pull the mean of the rest up or down where they end.
        most = summary.groupby(["score", "number"])["replicates"].transform("max")
        summary = summary[summary["replicates"] == most].reset_index(drop=True)
    low = float(every["value"].min()) if len(every) else 0.0
    least = max(floor, math.floor(low * 10) / 10) if low < 0 else 0.0
    return CurvesInfo(
        sizes=tuple(sorted({int(size) for size in every["number"]})),
        summary=summary,
        runs=every,
        domain=(least, 1.0),
        cut=low < least,
    )


def _kept(steps: np.ndarray) -> np.ndarray:
    """The steps to show: all of them, or `MOST_STEPS` spread evenly with the first and the last."""
    found = np.unique(steps)
    if len(found) <= MOST_STEPS:
        return found
    return found[np.linspace(0, len(found) - 1, MOST_STEPS).round().astype(int)]


def draw_curves(info: CurvesInfo) -> ChartType:
    """The figure: trained combinations on the left, held-out ones on the right."""
    if not info.sizes:
        return message_chart("No curves yet: nothing was trained.")
    # The largest size first, as the lines lie.
    names = [size_name(size) for size in reversed(info.sizes)]
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=names, range=size_colours(len(names))[::-1]),
        sort=None,
        legend=alt.Legend(title=None, symbolType="stroke", symbolSize=420),
    )
    low, high = info.domain
    panels = []
    for place, (score, title) in enumerate(PANELS.items()):
        summary = _named(info.summary[info.summary["score"] == score])
        frame = summary.assign(bottom=summary["low"].clip(low, high), top=summary["high"].clip(low, high))
        x = alt.X(
            "step:Q",
            title="step",
            scale=alt.Scale(nice=False),
            axis=alt.Axis(grid=False, tickCount=6, format="d"),
        )
        # The name of the axis stands beside the first panel only; both share the scale.
        axis = alt.Axis(titleAngle=0, format=".2~f", tickCount=6)
        name = "R²" if place == 0 else None
        y = alt.Y("shown:Q", title=name, scale=alt.Scale(domain=[low, high], nice=False), axis=axis)
        means = alt.Chart(values(frame.assign(shown=frame["mean"]))).encode(x=x, color=colour)
        single = _named(info.runs[info.runs["score"] == score])
        runs = alt.Chart(
            values(single.assign(shown=single["value"])[["series", "run", "step", "shown"]])
        ).encode(x=x, y=y, color=colour)
        panel = alt.layer(
            runs.mark_line(strokeWidth=1, opacity=0.3, clip=True).encode(detail="run:N"),
            means.mark_area(opacity=0.13, clip=True).encode(
                y=alt.Y("bottom:Q", title=name, scale=alt.Scale(domain=[low, high], nice=False)), y2="top:Q"
            ),
            means.mark_line(strokeWidth=2.5, clip=True).encode(
                y=y,
                tooltip=[
                    alt.Tooltip("series:N", title="network"),
                    alt.Tooltip("step:Q", title="step"),
                    alt.Tooltip("mean:Q", title="mean R²", format=".3f"),
                    alt.Tooltip("replicates:Q", title="replicates"),
                ],
            ),
        ).properties(width=390, height=330, title=title)
        panels.append(panel)
    return themed(alt.hconcat(*panels, spacing=28), "Scores against training steps")


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(series=[size_name(int(size)) for size in frame["number"]])
