"""Reliability diagrams: observed against predicted values."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.axes import extent
from recombine.figures.palette import RULE, Labels, Style, colour_by, named_as, series_styles
from recombine.figures.summary import require
from recombine.figures.theme import WIDTH, message_chart, panelled, tooltips, values
from recombine.figures.wording import count_of, number as in_words, sentences

COLUMNS = ("predictor", "predicted", "observed", "low", "high", "n")
CAPTION = (
    "The points of a calibrated predictor lie on the diagonal. Above the diagonal, results are better than predicted; "
    "below it, worse. Larger points contain more cases. A bar is the interval of the observed value; a point is hollow "
    "if its bar misses the diagonal. The error is the mean distance from the diagonal, weighted by the number of cases."
)
GAP = 26
MOST_ACROSS = 4


class CalibrationInfo(NamedTuple):
    """The content of the figure."""

    styles: tuple[Style, ...]
    """The predictors, in their order."""
    bins: pd.DataFrame
    """Columns: series, predicted, observed, low, high, n, away. One row per bin; `away`: its bar misses the diagonal."""
    errors: tuple[float, ...]
    """The mean distance between predicted and observed, weighted by `n`, for each predictor."""
    domain: tuple[float, float]
    x_title: str
    y_title: str
    caption: str


def calibration_info(
    table: pd.DataFrame,
    *,
    labels: Labels = None,
    x_title: str = "predicted",
    y_title: str = "observed",
    caption_lead: str = "",
) -> CalibrationInfo:
    """The bins of a calibration table, with the error of each predictor.

    Args:
        table: One row per predictor and bin, with the columns predictor, predicted, observed, low, high, n.
        labels: The names of the predictors, in order.
        x_title: The title of the x axis.
        y_title: The title of the y axis.
        caption_lead: The first sentences of the caption.

    Returns:
        The input of `draw_calibration`.
    """
    require(table, COLUMNS, "calibration")
    styles = series_styles(table["predictor"], labels)
    bins = pd.DataFrame({name: table[name].to_numpy(float) for name in COLUMNS[1:]})
    bins.insert(0, "series", named_as(table["predictor"], {style.key: style.name for style in styles}))
    seen = np.isfinite(bins["predicted"]) & np.isfinite(bins["observed"]) & (bins["n"] > 0)
    bins = bins[seen & bins["series"].notna()].reset_index(drop=True)
    bins["away"] = (bins["low"] > bins["predicted"]) | (bins["high"] < bins["predicted"])
    styles = tuple(style for style in styles if style.name in set(bins["series"]))
    errors = []
    for style in styles:
        part = bins[bins["series"] == style.name]
        errors.append(float(np.average((part["predicted"] - part["observed"]).abs(), weights=part["n"])))
    ends = [*bins["predicted"], *bins["observed"]]
    probable = all(0 <= end <= 1 for end in ends)
    domain = (0.0, 1.0) if probable else extent(ends, [*bins["low"], *bins["high"]])
    return CalibrationInfo(styles, bins, tuple(errors), domain, x_title, y_title, sentences(caption_lead, CAPTION))


def draw_calibration(info: CalibrationInfo) -> ChartType:
    """Draw one square panel per predictor."""
    if not len(info.bins):
        return message_chart("No predictions yet: there is no calibration to show.")
    across = min(len(info.styles), MOST_ACROSS)
    predictors = zip(info.styles, info.errors, strict=True)
    description = "Predicted against observed, for each predictor"
    return panelled(functools.partial(_panel, info, across), predictors, across, GAP, description)


def _panel(info: CalibrationInfo, across: int, predictor: tuple[Style, float], first: bool) -> ChartType:
    (style, error), (low, high) = predictor, info.domain
    side = min((WIDTH - GAP * (across - 1)) // across, 380)
    room = 0.03 * (high - low)
    scale = alt.Scale(domain=[low - room, high + room], nice=False)
    ticks: dict[str, Any] = {"values": [0, 0.25, 0.5, 0.75, 1]} if info.domain == (0.0, 1.0) else {"tickCount": 5}
    x = alt.X("predicted:Q", scale=scale, title=info.x_title, axis=alt.Axis(format=".6~g", grid=True, **ticks))
    y_axis = alt.Axis(format=".6~g", labels=first, ticks=first, domain=first, **ticks)
    title = info.y_title if first else None
    y = alt.Y("observed:Q", scale=scale, title=title, axis=y_axis)
    here = info.bins[info.bins["series"] == style.name].sort_values("predicted")
    here = here.assign(bottom=here["low"].clip(low - room, high + room), top=here["high"].clip(low - room, high + room))
    cases = alt.Scale(domain=[0, float(info.bins["n"].max())], range=[35, 260])
    size = alt.Size("n:Q", scale=cases, legend=None)
    colour = colour_by(info.styles)
    numbers = {"predicted:Q": "predicted", "observed:Q": "observed", "low:Q": "interval from", "high:Q": "to"}
    tooltip = [*tooltips({"series:N": "predictor"} | numbers, ".3f"), alt.Tooltip("n:Q", title="cases")]
    diagonal = pd.DataFrame({"predicted": [low, high], "observed": [low, high]})
    base = alt.Chart(values(here)).encode(x=x, color=colour)

    def marks(kept: pd.Series, filled: bool) -> alt.Chart:
        points = alt.Chart(values(here[kept])).encode(x=x, y=y, color=colour, size=size, tooltip=tooltip)
        look: dict[str, Any] = {"filled": True} if filled else {"filled": False, "fill": "white", "strokeWidth": 2.5}
        return points.mark_point(opacity=1, **look)

    subtitle = f"error {in_words(error, 3)}, {count_of(int(here['n'].sum()), 'case')}"
    return alt.layer(
        alt.Chart(values(diagonal)).mark_line(color=RULE, strokeDash=[4, 3], strokeWidth=1.5).encode(x=x, y=y),
        base.mark_line(strokeWidth=1.5, opacity=0.5).encode(y=y),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("bottom:Q", scale=scale, title=title), y2="top:Q"),
        marks(~here["away"], filled=True),
        marks(here["away"], filled=False),
    ).properties(width=side, height=side, title=alt.TitleParams(style.name, subtitle=subtitle, limit=side))
