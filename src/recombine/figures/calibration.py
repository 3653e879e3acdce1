"""Reliability diagrams: does what was predicted come true as often as it was predicted?"""

from __future__ import annotations

from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.extent import extent
from recombine.figures.palette import RULE, Labels, Style, colour_by, named_as, series_styles
from recombine.figures.summary import require
from recombine.figures.theme import message_chart, themed, values
from recombine.figures.wording import count_of
from recombine.figures.wording import number as in_words

COLUMNS = ("predictor", "predicted", "observed", "low", "high", "n")
GAP = 26
WHOLE = 940
"""Pixels that panels side by side may take."""
MOST_ACROSS = 4


class CalibrationInfo(NamedTuple):
    """What the figure shows."""

    styles: tuple[Style, ...]
    """The predictors, in their order."""
    bins: pd.DataFrame
    """series, predicted, observed, low, high, n, away; a row a bin.

    `away`: the bar does not reach the diagonal."""
    errors: tuple[float, ...]
    """The mean distance of predicted from observed, weighted by `n`, for each predictor."""
    domain: tuple[float, float]
    x_title: str
    y_title: str
    lead: str
    """The first words of the caption: what is shown."""

    @property
    def caption(self) -> str:
        """How to read the figure."""
        words = [self.lead] if self.lead else []
        words.append(
            "A predictor that can be trusted has its points on the diagonal; above it things go better than "
            "predicted, below it worse. Larger points hold more cases; a bar is the interval of what was "
            "observed, and a hollow point is one whose bar does not reach the diagonal. The error is the "
            "mean distance from the diagonal, weighted by the number of cases."
        )
        return " ".join(words)


def calibration_info(
    table: pd.DataFrame,
    *,
    labels: Labels = None,
    x_title: str = "predicted",
    y_title: str = "observed",
    caption_lead: str = "",
) -> CalibrationInfo:
    """The bins of a calibration table, with each predictor's mean distance from the diagonal."""
    require(table, COLUMNS, "calibration")
    styles = series_styles(table["predictor"], labels)
    bins = pd.DataFrame({name: table[name].to_numpy(float) for name in COLUMNS[1:]})
    bins.insert(0, "series", named_as(table["predictor"], {style.key: style.name for style in styles}))
    seen = np.isfinite(bins["predicted"]) & np.isfinite(bins["observed"]) & (bins["n"] > 0)
    bins = bins[seen & bins["series"].notna()].reset_index(drop=True)
    away = (bins["low"] > bins["predicted"]) | (bins["high"] < bins["predicted"])
    bins = bins.assign(away=away)
    styles = tuple(style for style in styles if style.name in set(bins["series"]))
    errors = []
    for style in styles:
        part = bins[bins["series"] == style.name]
        errors.append(float(np.average((part["predicted"] - part["observed"]).abs(), weights=part["n"])))
    ends = [*bins["predicted"], *bins["observed"]]
    probable = all(0 <= end <= 1 for end in ends)
    domain = (0.0, 1.0) if probable else extent(ends, [*bins["low"], *bins["high"]])
    return CalibrationInfo(styles, bins, tuple(errors), domain, x_title, y_title, caption_lead)


def draw_calibration(info: CalibrationInfo) -> ChartType:
    """The figure: a square a predictor."""
    if not len(info.bins):
        return message_chart("No predictions yet: there is no calibration to show.")
    across = min(len(info.styles), MOST_ACROSS)
    side = min((WHOLE - GAP * (across - 1)) // across, 380)
    panels = [
        _panel(info, style, error, side, first=place % across == 0)
        for place, (style, error) in enumerate(zip(info.styles, info.errors, strict=True))
    ]
    chart = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=across, spacing=GAP)
    return themed(chart, "Predicted against observed, for each predictor")


def _panel(info: CalibrationInfo, style: Style, error: float, side: int, first: bool) -> ChartType:
    low, high = info.domain
    room = 0.03 * (high - low)
    scale = alt.Scale(domain=[low - room, high + room], nice=False)
    ticks: dict[str, Any] = (
        {"values": [0, 0.25, 0.5, 0.75, 1]} if info.domain == (0.0, 1.0) else {"tickCount": 5}
    )
    x = alt.X(
        "predicted:Q", scale=scale, title=info.x_title, axis=alt.Axis(format=".6~g", grid=True, **ticks)
    )
    y_axis = alt.Axis(format=".6~g", labels=first, ticks=first, domain=first, **ticks)
    title = info.y_title if first else None
    y = alt.Y("observed:Q", scale=scale, title=title, axis=y_axis)
    here = info.bins[info.bins["series"] == style.name].sort_values("predicted")
    here = here.assign(
        bottom=here["low"].clip(low - room, high + room), top=here["high"].clip(low - room, high + room)
    )
    most = float(info.bins["n"].max())
    size = alt.Size("n:Q", scale=alt.Scale(domain=[0, most], range=[35, 260]), legend=None)
    colour = colour_by(info.styles)
    tooltip = [
        alt.Tooltip("series:N", title="predictor"),
        alt.Tooltip("predicted:Q", title="predicted", format=".3f"),
        alt.Tooltip("observed:Q", title="observed", format=".3f"),
        alt.Tooltip("low:Q", title="interval from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("n:Q", title="cases"),
    ]
    diagonal = pd.DataFrame({"predicted": [low, high], "observed": [low, high]})
    base = alt.Chart(values(here)).encode(x=x, color=colour)

    def marks(kept: pd.Series, filled: bool) -> alt.Chart:
        points = alt.Chart(values(here[kept])).encode(x=x, y=y, color=colour, size=size, tooltip=tooltip)
        look: dict[str, Any] = (
            {"filled": True} if filled else {"filled": False, "fill": "white", "strokeWidth": 2.5}
        )
        return points.mark_point(opacity=1, **look)

    cases = count_of(int(here["n"].sum()), "case")
    return alt.layer(
        alt.Chart(values(diagonal))
        .mark_line(color=RULE, strokeDash=[4, 3], strokeWidth=1.5)
        .encode(x=x, y=y),
        base.mark_line(strokeWidth=1.5, opacity=0.5).encode(y=y),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("bottom:Q", scale=scale, title=title), y2="top:Q"),
        marks(~here["away"], filled=True),
        marks(here["away"], filled=False),
    ).properties(
        width=side,
        height=side,
        title=alt.TitleParams(style.name, subtitle=f"error {in_words(error, 3)}, {cases}", limit=side),
    )
