"""Means with intervals against a number, one line a series: the figure of most sweeps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.along import Along, even_ticks, log_ticks, sides
from recombine.figures.below import axis_floor, below_axis, below_in_words
from recombine.figures.extent import Reference, extent, finite, reference_layers
from recombine.figures.palette import (
    RULE,
    Labels,
    Style,
    colour_by,
    dash_by,
    legend_above,
    levels,
    named_as,
    series_styles,
)
from recombine.figures.summary import replicates_in_words, require, summarise
from recombine.figures.theme import HEIGHT, WIDTH, message_chart, themed, values
from recombine.figures.wording import count_of

STRIP = 32
"""Height of a row of means below the axis, in pixels; the figure grows by it."""
ABOVE = 0.03
"""Room above the ceiling, as a part of the axis, so that no point at it is cut."""
GAP = 30
"""Pixels between panels."""
MOST_ACROSS = 4


class LinesInfo(NamedTuple):
    """What the figure shows. `clipped` holds the means that lie below the axis, with their true value."""

    styles: tuple[Style, ...]
    """The series that occur, in the order of the legend."""
    facets: tuple[str, ...]
    """Titles of the panels; one empty title when there are no facets."""
    summary: pd.DataFrame
    """facet, series, x, mean, low, high, replicates; a row for each mean."""
    points: pd.DataFrame
    """replicate, x, y, series, facet; a row for each value that lies within the axis."""
    clipped: pd.DataFrame
    """facet, series, x, mean, shown, label; a row for each mean below the axis."""
    references: tuple[Reference, ...]
    """Horizontal lines; their facets are titles of panels."""
    floor: float | None
    """What lies below has a strip of its own under the axis; None where nothing is cut."""
    domain: tuple[float, float]
    log: bool
    log_y: bool
    x_title: str
    y_title: str
    lead: str
    """The first words of the caption: what is shown."""
    dropped: int
    """Rows that have no place on a logarithmic axis."""

    @property
    def across(self) -> int:
        """How many panels stand beside each other."""
        return min(len(self.facets), MOST_ACROSS)

    @property
    def along(self) -> Along:
        """The axis of x of every panel."""
        outside = any(one.label and one.facet is None for one in self.references)
        room = 90 if outside else 0
        width = (WIDTH - room - GAP * (self.across - 1)) / self.across
        return Along(tuple(sorted(set(self.summary["x"]))), self.log, round(width))

    @property
    def height(self) -> int:
        """Of a panel in pixels, without the rows below the axis."""
        return _height(self.across)

    @property
    def labelled(self) -> bool:
        """There is room for numbers below the triangles."""
        return bool(len(self.clipped)) and self.along.spacing() >= 44

    @property
    def caption(self) -> str:
        """How to read the figure."""
        words = [self.lead] if self.lead else []
        if (self.summary["replicates"] > 1).any():
            words.append("Points on the lines are means, faint ones single replicates.")
        words.append(replicates_in_words(self.summary))
        if self.log_y:
            words.append("Means and intervals are those of the logarithm.")
        if len(self.summary) and _beyond(self.summary, self.floor, self.domain):
            words.append("Bars that reach beyond the axis are cut off there.")
        if self.dropped:
            rows = count_of(self.dropped, "row")
            words.append(f"{rows} at or below zero cannot be shown on a logarithmic axis.")
        text = " ".join(words)
        if self.floor is not None and len(self.clipped):
            text += below_in_words(self.floor, self.labelled)
        return text


def _beyond(summary: pd.DataFrame, floor: float | None, domain: tuple[float, float]) -> bool:
    low = domain[0] if floor is None else floor
    seen = summary[summary["mean"] >= low]
    return bool((seen["low"] < low).any() or (seen["high"] > domain[1] + 1e-9).any())


def lines_info(
    frame: pd.DataFrame,
    x: str,
    y: str,
    series: str | None = None,
    facet: str | None = None,
    *,
    log: bool = True,
    log_y: bool = False,
    labels: Labels = None,
    facet_labels: Labels = None,
    controls: Collection[Any] = (),
    ordered: bool = False,
    floor: float | None = None,
    ceiling: float | None = None,
    references: Sequence[Reference] = (),
    x_title: str | None = None,
    y_title: str | None = None,
    caption_lead: str = "",
) -> LinesInfo:
    """Means of `y` over replicates at each `x`, for each series and facet.

    `frame` has a column `replicate` and those named; rows of one replicate are averaged first. `labels` names
    the series in the order of their legend; `controls` are dashed; `ordered` series (sizes, depths) shaded.
    Means below `floor` are marked under the axis; the axis ends at `ceiling`, for instance 1 for a score.
    """
    table = _plain(frame, x, y, series, facet)
    fits = ((table["x"] > 0) | (not log)) & ((table["y"] > 0) | (not log_y))
    dropped, table = int((~fits).sum()), table[fits]
    styles = series_styles(table["series"], labels, controls, ordered)
    panels = levels(table["facet"], facet_labels)
    table = table.assign(
        series=named_as(table["series"], {style.key: style.name for style in styles}),
        facet=named_as(table["facet"], panels),
    ).dropna(subset=["series", "facet"])
    summary = _means(table, log_y)
    lines = tuple(
        one._replace(facet=None if one.facet is None else panels[one.facet])
        for one in references
        if one.facet is None or one.facet in panels
    )
    seen = [*summary["mean"], *table["y"], *(one.value for one in lines)]
    bars = [*summary["low"], *summary["high"]]
    low, high = extent(seen, bars, log_y)
    top = None if ceiling is None else max([ceiling, *finite(seen)])
    high = high if top is None else top + ABOVE * (top - low)
    clipped, depth = summary.iloc[:0][["facet", "series", "x", "mean"]].assign(shown=0.0, label=""), 0.0
    if floor is not None and not log_y:
        low = floor = axis_floor(summary, floor)
        high = extent([floor, *seen], bars)[1] if top is None else top + ABOVE * max(top - floor, 1e-3)
        share = STRIP / _height(min(len(panels), MOST_ACROSS))
        clipped, depth = below_axis(summary, ["facet", "series", "x"], floor, share * (high - floor))
    else:
        floor = None
    return LinesInfo(
        styles=styles,
        facets=tuple(panels.values()),
        summary=summary,
        points=table[table["y"] >= low].reset_index(drop=True),
        clipped=clipped,
        references=lines,
        floor=floor,
        domain=(low - depth, high),
        log=log,
        log_y=log_y,
        x_title=x if x_title is None else x_title,
        y_title=y if y_title is None else y_title,
        lead=caption_lead,
        dropped=dropped,
    )


def _plain(frame: pd.DataFrame, x: str, y: str, series: str | None, facet: str | None) -> pd.DataFrame:
    """The columns of a figure under their names here; rows without a finite x and y are left out."""
    require(frame, [name for name in ("replicate", x, y, series, facet) if name], "runs")
    table = pd.DataFrame({"replicate": frame["replicate"].to_numpy()})
    table["x"], table["y"] = frame[x].to_numpy(float), frame[y].to_numpy(float)
    for name, column, other in (("series", series, y), ("facet", facet, "")):
        keys = list(frame[column]) if column else [other] * len(frame)
        table[name] = pd.Series(keys, dtype=object)
    return table[np.isfinite(table["x"]) & np.isfinite(table["y"])]


def _height(across: int) -> int:
    return HEIGHT - 40 * (across - 1)


def _means(table: pd.DataFrame, log: bool) -> pd.DataFrame:
    """Means with intervals; of the logarithm where the axis has one, or bars would reach below zero."""
    by = ["facet", "series", "x"]
    if not log:
        return summarise(table, by, "y")
    made = summarise(table.assign(y=np.log(table["y"])), by, "y")
    return made.assign(**{name: np.exp(made[name].astype(float)) for name in ("mean", "low", "high")})


def draw_lines(info: LinesInfo) -> ChartType:
    """The figure: lines of means, bars of intervals, faint points of replicates; panels side by side."""
    if not len(info.summary):
        return message_chart("No runs yet: there is nothing to draw a line through.")
    panels = [
        _panel(info, name, info.along, first=place % info.across == 0, last=_last(info, place))
        for place, name in enumerate(info.facets)
    ]
    chart = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=info.across, spacing=GAP)
    return themed(chart, f"{info.y_title} against {info.x_title}")


def _last(info: LinesInfo, place: int) -> bool:
    return place % info.across == info.across - 1 or place == len(info.facets) - 1


def _panel(info: LinesInfo, name: str, along: Along, first: bool, last: bool) -> ChartType:
    low, high = info.domain
    bottom = low if info.floor is None else info.floor
    height = info.height if info.floor is None else round(info.height * (high - low) / (high - bottom))
    shift = dict(
        zip((s.name for s in info.styles), sides(len(info.styles), 6, along.spacing() * 0.5), strict=True)
    )
    scale = alt.Scale(domain=[low, high], nice=False, type="log" if info.log_y else "linear")
    title = info.y_title if first else None
    axis = alt.Axis(labels=first, ticks=first, domain=first, **_y_ticks(info, bottom))
    y = alt.Y("shown:Q", scale=scale, title=title, axis=axis)
    x = along.encoding(info.x_title)
    legend = legend_above(info.styles) if len(info.styles) > 1 else None
    colour, dash = colour_by(info.styles, legend), dash_by(info.styles, legend)

    def over(frame: pd.DataFrame) -> alt.Chart:
        here = frame[frame["facet"] == name]
        moved = along.aside(here["x"], [shift[one] for one in here["series"]])
        return alt.Chart(values(here.assign(place=moved).drop(columns="facet"))).encode(x=x, color=colour)

    marks = info.clipped[["facet", "series", "x", "shown"]]
    summary = info.summary.merge(marks, how="left", on=["facet", "series", "x"])
    summary["shown"] = summary["shown"].astype(float).fillna(summary["mean"])
    summary = summary.assign(bottom=summary["low"].clip(bottom, high), top=summary["high"].clip(bottom, high))
    inside = summary[summary["mean"] >= bottom]
    tooltip = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip("x:Q", title=info.x_title or "x"),
        alt.Tooltip("mean:Q", title="mean", format=".3~g"),
        alt.Tooltip("low:Q", title="interval from", format=".3~g"),
        alt.Tooltip("high:Q", title="to", format=".3~g"),
        alt.Tooltip("replicates:Q", title="replicates"),
    ]
    several = summary["replicates"].max() > 1
    here = [one for one in info.references if one.facet is None]
    own = [one for one in info.references if one.facet == name and one.facet is not None]
    if not last:
        here = [one._replace(label="") for one in here]
    zero = alt.Chart(values(pd.DataFrame({"shown": [0]}))).mark_rule(color=RULE, strokeDash=[2, 3])
    layers = [
        *([zero.encode(y=y)] if not info.log_y and bottom < 0 < high else []),
        *reference_layers(here, y, info.domain, height, info.log_y, outside=True),
        *reference_layers(own, y, info.domain, height, info.log_y, outside=False),
        over(summary).mark_line(strokeWidth=2.5).encode(y=y, strokeDash=dash),
    ]
    if several:
        faint = over(info.points.assign(shown=info.points["y"]))
        layers.append(faint.mark_point(filled=True, size=26, opacity=0.3).encode(y=y))
    edge = alt.Y("bottom:Q", scale=scale, title=title)
    layers.append(over(inside).mark_rule(strokeWidth=2).encode(y=edge, y2="top:Q"))
    layers.append(over(inside).mark_point(filled=True, size=70, opacity=1).encode(y=y, tooltip=tooltip))
    if len(info.clipped):
        below = over(info.clipped).encode(y=y)
        mark = below.mark_point(filled=True, size=110, opacity=1, shape="triangle-down")
        layers.append(mark.encode(tooltip=tooltip[:3]))
        if info.labelled:
            layers.append(below.mark_text(dy=14, fontSize=12).encode(text="label:N"))
    titled = {"title": alt.TitleParams(name, anchor="middle", frame="group")} if name else {}
    return alt.layer(*layers).properties(width=along.width, height=height, **titled)


def _y_ticks(info: LinesInfo, bottom: float) -> dict[str, Any]:
    """The ticks of y, none of them in the strip below the axis, and how its title stands."""
    made: dict[str, Any] = {"titleAngle": 0} if len(info.y_title) <= 3 else {}
    if info.log_y:
        return made | {"format": ".6~g", "values": log_ticks(*info.domain)}
    ticks = even_ticks(bottom, info.domain[1]) if info.floor is not None else None
    return made | {"format": ".6~g", "tickCount": 6} | ({"values": ticks} if ticks else {})
