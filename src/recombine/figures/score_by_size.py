"""Scores against the number of training combinations: does more data make the network recombine?"""

from __future__ import annotations

from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.along import Along
from recombine.figures.below import axis_floor, below_axis, below_in_words
from recombine.figures.summary import replicates_in_words, require, summarise
from recombine.figures.theme import (
    CONTROL,
    HEIGHT,
    HELD_OUT,
    TRAINED,
    WIDTH,
    message_chart,
    themed,
    values,
)

FLOOR = -0.25
COLUMNS = ("family", "replicate", "number", "r2_in", "r2_held_out")

SERIES = ("trained combinations", "held-out combinations", "control, trained", "control, held out")
COLOURS = (TRAINED, HELD_OUT, CONTROL, CONTROL)
DASHES = ([1, 0], [1, 0], [5, 4], [1, 0])
STRIP = 0.1
"""Height of a row of means that lie below the axis, in units of the axis."""

SHIFT = 3.5
"""Pixels by which the trained and the held-out scores stand aside of their size."""


class ScoreBySizeInfo(NamedTuple):
    """What the figure shows. `clipped` holds the means that lie below the axis, with their true value."""

    sizes: tuple[int, ...]
    summary: pd.DataFrame
    """series, number, mean, low, high, replicates; a row for each series and size."""
    points: pd.DataFrame
    """series, number, replicate, r2; a row for each run that lies within the axis."""
    clipped: pd.DataFrame
    """series, number, mean, shown, label; a row for each mean below the axis."""
    floor: float
    """The axis ends here; what lies below has a strip of its own under it."""
    domain: tuple[float, float]

    @property
    def caption(self) -> str:
        """How to read the figure."""
        text = (
            "R² is 1 for a perfect network and 0 for one that always says the mean. Blue: on the "
            "combinations it was trained on. Orange: on combinations it never saw; where the two meet, it "
            "recombines. Purple: the control, where every combination is a function of its own and nothing "
            "can be recombined, so that its held-out score cannot rise. Faint points are single runs. "
            + replicates_in_words(self.summary)
        )
        return text + (below_in_words(self.floor) if len(self.clipped) else "")


def score_by_size_info(
    runs: pd.DataFrame, family: str = "hyperteacher", control: str = "lookup", floor: float = FLOOR
) -> ScoreBySizeInfo:
    """Mean scores of a family and of its control at each training-set size, over replicates."""
    require(runs, COLUMNS, "runs")
    sources = ((family, "r2_in"), (family, "r2_held_out"), (control, "r2_in"), (control, "r2_held_out"))
    parts = []
    for series, (wanted, column) in zip(SERIES, sources, strict=True):
        # A size below 1 has no place on a logarithmic axis.
        chosen = runs[(runs["family"] == wanted) & (runs["number"] >= 1)]
        part = chosen[["number", "replicate"]].assign(series=series, r2=chosen[column].astype(float))
        parts.append(part[np.isfinite(part["r2"])])
    points = pd.concat(parts, ignore_index=True)[["series", "number", "replicate", "r2"]]
    summary = summarise(points, ["series", "number"], "r2")
    floor = axis_floor(summary, floor)
    clipped, strip = below_axis(summary, ["series", "number"], floor, STRIP)
    return ScoreBySizeInfo(
        sizes=tuple(sorted({int(size) for size in points["number"]})),
        summary=summary,
        points=points[points["r2"] >= floor].reset_index(drop=True),
        clipped=clipped,
        floor=floor,
        domain=(floor - strip, 1.0),
    )


def draw_score_by_size(info: ScoreBySizeInfo) -> ChartType:
    """The figure: lines of means, interval bars, faint points of runs."""
    if not info.sizes:
        return message_chart("No runs yet: there is no score to show.")
    floor, high = info.floor, info.domain[1]
    title = "R²"
    scale = alt.Scale(domain=list(info.domain), nice=False)
    x = _along(info.sizes).encoding("number of training combinations")
    ticks = [tick for tick in (-0.25, 0, 0.25, 0.5, 0.75, 1) if tick >= floor]
    axis = alt.Axis(titleAngle=0, format=".2~f", values=ticks)
    y = alt.Y("shown:Q", scale=scale, title=title, axis=axis)
    summary = info.summary.merge(
        info.clipped[["series", "number", "shown"]], how="left", on=["series", "number"]
    )
    summary["shown"] = summary["shown"].fillna(summary["mean"])
    summary = summary.assign(bottom=summary["low"].clip(floor, high), top=summary["high"].clip(floor, high))
    present = [name for name in SERIES if name in set(summary["series"])]
    index = [SERIES.index(name) for name in present]
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=present, range=[COLOURS[i] for i in index]),
        sort=None,
        legend=alt.Legend(
            title=None, orient="top", columns=4, symbolType="stroke", symbolSize=420, offset=14
        ),
    )
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=present, range=[DASHES[i] for i in index]))
    tooltip = [
        alt.Tooltip("series:N", title="score on"),
        alt.Tooltip("number:Q", title="training combinations"),
        alt.Tooltip("mean:Q", title="mean R²", format=".3f"),
        alt.Tooltip("low:Q", title="interval from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("replicates:Q", title="replicates"),
    ]

    def over(frame: pd.DataFrame) -> alt.Chart:
        return alt.Chart(values(_aside(frame, info.sizes))).encode(x=x, color=colour)

    zero = alt.Chart(alt.InlineData(values=[{"shown": 0}])).mark_rule(color="#98a0a9", strokeDash=[2, 3])
    layers = [
        *([zero.encode(y=y)] if floor < 0 else []),
        over(summary).mark_line(strokeWidth=2.5).encode(y=y, strokeDash=dash),
        over(info.points.assign(shown=info.points["r2"]))
        .mark_point(filled=True, size=30, opacity=0.35)
        .encode(y=y),
    ]
    inside = summary[summary["mean"] >= floor]
    layers.append(
        over(inside)
        .mark_rule(strokeWidth=2)
        .encode(y=alt.Y("bottom:Q", scale=scale, title=title), y2="top:Q")
    )
    layers.append(over(inside).mark_point(filled=True, size=80, opacity=1).encode(y=y, tooltip=tooltip))
    if len(info.clipped):
        below = over(info.clipped).encode(y=y)
        triangle = below.mark_point(filled=True, size=110, opacity=1, shape="triangle-down")
        layers.append(triangle.encode(tooltip=tooltip[:3]))
        layers.append(below.mark_text(dy=14, fontSize=12).encode(text="label:N"))
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    return themed(chart, "Scores in and out of distribution against the number of training combinations")


def _along(sizes: tuple[int, ...]) -> Along:
    """A logarithmic axis of training-set sizes."""
    return Along(sizes, log=True, width=WIDTH, ratio=1.2)


def _aside(frame: pd.DataFrame, sizes: tuple[int, ...]) -> pd.DataFrame:
    """The frame with a `place` on the axis, a few pixels beside the size, so that no bar hides another."""
    pixels = [{SERIES[0]: -SHIFT, SERIES[1]: SHIFT}.get(name, 0.0) for name in frame["series"]]
    return frame.assign(place=_along(sizes).aside(frame["number"], pixels))
