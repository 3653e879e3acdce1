"""Means with intervals against a number, one line per series: the figure of most sweeps."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.axes import NumericAxis, Reference, dodge, extent, finite, means_below, reference_layers, y_axis
from recombine.figures.palette import RULE, Labels, Style, legend_above, levels, named_as, series_styles, stroke_by
from recombine.figures.summary import replicates_in_words, require, summarise
from recombine.figures.theme import HEIGHT, WIDTH, mean_tooltips, message_chart, panel_title, panelled, values
from recombine.figures.wording import count_of, number as in_words, sentences

STRIP = 32
"""Height of a row of means below the axis, in pixels. The figure grows by it."""
ABOVE = 0.03
"""Space above the ceiling, as a fraction of the axis, so that no point is cut."""
GAP = 30
"""Pixels between panels."""
MOST_ACROSS = 4


class LinesInfo(NamedTuple):
    """The content of the figure."""

    styles: tuple[Style, ...]
    """The series that occur, in the order of the legend."""
    facets: tuple[str, ...]
    """Titles of the panels. Without facets: one empty title."""
    summary: pd.DataFrame
    """Columns: facet, series, x, mean, low, high, replicates. One row per mean."""
    points: pd.DataFrame
    """Columns: replicate, x, y, series, facet. One row per value within the axis."""
    clipped: pd.DataFrame
    """Columns: facet, series, x, mean (the true value), shown, label. One row per mean below the axis."""
    references: tuple[Reference, ...]
    """Horizontal lines. Their facets are titles of panels."""
    floor: float | None
    """Means below this value are marked in a strip under the axis. None: nothing is cut."""
    domain: tuple[float, float]
    log: bool
    log_y: bool
    x_title: str
    y_title: str
    lead: str
    """The first sentences of the caption."""
    dropped: int
    """Number of rows that a logarithmic axis cannot show."""
    x_names: tuple[str, ...] = ()
    """Names of the values 0, 1, 2, ... of the x axis. Empty: the values are numbers."""
    bands: bool = False
    """Intervals are bands and replicates are thin lines, for curves of many points."""

    @property
    def across(self) -> int:
        """Number of panels side by side."""
        return min(len(self.facets), MOST_ACROSS)

    @property
    def x_axis(self) -> NumericAxis:
        """The x axis of every panel."""
        room = 90 if any(line.label and line.facet is None for line in self.references) else 0
        width = (WIDTH - room - GAP * (self.across - 1)) / self.across
        return NumericAxis(tuple(sorted(set(self.summary["x"]))), self.log, round(width), names=self.x_names)

    @property
    def labelled(self) -> bool:
        """The numbers below the triangles fit."""
        return bool(len(self.clipped)) and self.x_axis.spacing() >= 44

    @property
    def caption(self) -> str:
        """How to read the figure."""
        words = [self.lead]
        if (self.summary["replicates"] > 1).any():
            means = "Thick lines are means, thin" if self.bands else "Points on the lines are means, faint"
            words.append(f"{means} {'lines' if self.bands else 'points'} are single replicates.")
        intervals = replicates_in_words(self.summary)
        words.append(intervals.replace("Bars", "Bands") if self.bands else intervals)
        if self.log_y:
            words.append("Means and intervals are computed on the logarithm.")
        low = self.domain[0] if self.floor is None else self.floor
        seen = self.summary if self.bands else self.summary[self.summary["mean"] >= low]
        if (seen["low"].fillna(seen["mean"]) < low).any() or (seen["high"] > self.domain[1] + 1e-9).any():
            words.append(f"{'Curves and bands' if self.bands else 'Bars'} that extend beyond the axis are cut off.")
        if self.dropped:
            words.append(f"{count_of(self.dropped, 'row')} at or below zero cannot be shown on a logarithmic axis.")
        if self.floor is not None and len(self.clipped):
            where = "the number below each is its value" if self.labelled else "hover over one for its value"
            words.append(f"Triangles under the axis mark means below {in_words(self.floor)}; {where}.")
        return sentences(*words)


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
    x_names: Sequence[str] = (),
    bands: bool = False,
    x_title: str | None = None,
    y_title: str | None = None,
    caption_lead: str = "",
) -> LinesInfo:
    """Means of `y` over replicates at each `x`, for each series and facet.

    Args:
        frame: One row per run, with a column `replicate`. Rows of one replicate are averaged first.
        x: The column of the x axis.
        y: The column to average.
        series: The column whose levels are lines. None: one line.
        facet: The column whose levels are panels. None: one panel.
        log: The x axis is logarithmic.
        log_y: The y axis is logarithmic.
        labels: The names of the series, in the order of the legend.
        facet_labels: The titles of the panels, in order.
        controls: Levels of `series` that are controls. Their lines are dashed.
        ordered: The series have an order (sizes, depths), shown by their colours.
        floor: Means below this value are marked under the axis.
        ceiling: The end of the y axis, for example 1 for a score.
        references: Horizontal lines with labels.
        x_names: Names of the values 0, 1, 2, ... of the x axis, for layers and other steps.
        bands: Draw intervals as bands and replicates as thin lines, for curves of many points.
        x_title: The title of the x axis. Default: `x`.
        y_title: The title of the y axis. Default: `y`.
        caption_lead: The first sentences of the caption.

    Returns:
        The input of `draw_lines`.

    Example:
        ```python
        info = lines_info(runs, "number", "r2_held_out", "depth", ordered=True, ceiling=1)
        chart = draw_lines(info)
        ```
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
        line._replace(facet=None if line.facet is None else panels[line.facet])
        for line in references
        if line.facet is None or line.facet in panels
    )
    seen = [*summary["mean"], *table["y"], *(line.value for line in lines)]
    bars = [*summary["low"], *summary["high"]]
    low, high = extent(seen, bars, log_y)
    top = None if ceiling is None else max([ceiling, *finite(seen)])
    high = high if top is None else top + ABOVE * (top - low)
    clipped, depth = summary.iloc[:0][["facet", "series", "x", "mean"]].assign(shown=0.0, label=""), 0.0
    if floor is not None and not log_y:
        # The axis goes below zero only if a mean or an interval does.
        low = floor = floor if floor >= 0 or (summary[["mean", "low"]] < 0).any(axis=None) else 0.0
        high = extent([floor, *seen], bars)[1] if top is None else top + ABOVE * max(top - floor, 1e-3)
        share = STRIP / _height(min(len(panels), MOST_ACROSS))
        clipped, depth = means_below(summary, ["facet", "series", "x"], floor, share * (high - floor))
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
        x_names=tuple(x_names),
        bands=bands,
    )


def _plain(frame: pd.DataFrame, x: str, y: str, series: str | None, facet: str | None) -> pd.DataFrame:
    """The columns under fixed names. Rows without a finite x and y are left out."""
    require(frame, [name for name in ("replicate", x, y, series, facet) if name], "runs")
    table = pd.DataFrame({"replicate": frame["replicate"].to_numpy()})
    table["x"], table["y"] = frame[x].to_numpy(float), frame[y].to_numpy(float)
    for name, column, other in (("series", series, y), ("facet", facet, "")):
        keys = list(frame[column]) if column else [other] * len(frame)
        table[name] = pd.Series(keys, dtype=object)
    return table[np.isfinite(table["x"]) & np.isfinite(table["y"])]


def _height(across: int) -> int:
    """Height of a panel in pixels, without the rows below the axis."""
    return HEIGHT - 40 * (across - 1)


def _means(table: pd.DataFrame, log: bool) -> pd.DataFrame:
    """Means with intervals. On a logarithmic axis those of the logarithm: bars must not extend below zero."""
    by = ["facet", "series", "x"]
    if not log:
        return summarise(table, by, "y")
    means = summarise(table.assign(y=np.log(table["y"])), by, "y")
    return means.assign(**{name: np.exp(means[name].astype(float)) for name in ("mean", "low", "high")})


def draw_lines(info: LinesInfo) -> ChartType:
    """Draw lines of means, bars of intervals and faint points of replicates, one panel per facet."""
    if not len(info.summary):
        return message_chart("No runs yet: there is nothing to show.")
    draw = functools.partial(_panel, info)
    return panelled(draw, info.facets, info.across, GAP, f"{info.y_title} against {info.x_title}")


def _panel(info: LinesInfo, name: str, first: bool) -> ChartType:
    x_axis, (low, high) = info.x_axis, info.domain
    bottom = low if info.floor is None else info.floor
    height = round(_height(info.across) * (high - low) / (high - bottom))
    offsets = dodge(len(info.styles), 0 if info.bands else 6, x_axis.spacing() * 0.5)
    shift = {style.name: offset for style, offset in zip(info.styles, offsets, strict=True)}
    scale = alt.Scale(domain=[low, high], nice=False, type="log" if info.log_y else "linear")
    title = info.y_title if first else None
    axis = y_axis(info.y_title, info.domain, info.log_y, first, info.floor)
    y = alt.Y("shown:Q", scale=scale, title=title, axis=axis)
    x = x_axis.encoding(info.x_title)
    legend = legend_above(info.styles) if len(info.styles) > 1 else None
    colour, dash = stroke_by(info.styles, legend)

    def over(frame: pd.DataFrame) -> alt.Chart:
        here = frame[frame["facet"] == name]
        moved = x_axis.shifted(here["x"], [shift[series] for series in here["series"]])
        return alt.Chart(values(here.assign(place=moved).drop(columns="facet"))).encode(x=x, color=colour)

    marks = info.clipped[["facet", "series", "x", "shown"]]
    summary = info.summary.merge(marks, how="left", on=["facet", "series", "x"])
    summary["shown"] = summary["shown"].astype(float).fillna(summary["mean"])
    summary = summary.assign(bottom=summary["low"].clip(bottom, high), top=summary["high"].clip(bottom, high))
    inside = summary[summary["mean"] >= bottom]
    tooltip = mean_tooltips({"series:N": "series", "x:Q": info.x_title or "x"}, ".3~g")
    several = summary["replicates"].max() > 1
    common = [line for line in info.references if line.facet is None]
    own = [line for line in info.references if line.facet == name and line.facet is not None]
    ends_of_rows = {*info.facets[info.across - 1 :: info.across], info.facets[-1]}
    if name not in ends_of_rows:
        common = [line._replace(label="") for line in common]
    zero = alt.Chart(values(pd.DataFrame({"shown": [0]}))).mark_rule(color=RULE, strokeDash=[2, 3])
    layers = [
        *([zero.encode(y=y)] if not info.log_y and bottom < 0 < high else []),
        *reference_layers(common, y, info.domain, height, info.log_y, outside=True),
        *reference_layers(own, y, info.domain, height, info.log_y, outside=False),
    ]
    faint = over(info.points.assign(shown=info.points["y"])).encode(y=y)
    edge = alt.Y("bottom:Q", scale=scale, title=title)
    line = over(summary).mark_line(strokeWidth=2.5, clip=info.bands).encode(y=y, strokeDash=dash)
    if info.bands:
        if several:
            layers.append(faint.mark_line(strokeWidth=1, opacity=0.3, clip=True).encode(detail="replicate:N"))
        layers.append(over(summary).mark_area(opacity=0.13, clip=True).encode(y=edge, y2="top:Q"))
        layers.append(line.encode(tooltip=tooltip))
    else:
        layers.append(line)
        if several:
            layers.append(faint.mark_point(filled=True, size=26, opacity=0.3))
        layers.append(over(inside).mark_rule(strokeWidth=2).encode(y=edge, y2="top:Q"))
        layers.append(over(inside).mark_point(filled=True, size=70, opacity=1).encode(y=y, tooltip=tooltip))
    if len(info.clipped):
        below = over(info.clipped).encode(y=y)
        mark = below.mark_point(filled=True, size=110, opacity=1, shape="triangle-down")
        layers.append(mark.encode(tooltip=tooltip[:3]))
        if info.labelled:
            layers.append(below.mark_text(dy=14, fontSize=12).encode(text="label:N"))
    return alt.layer(*layers).properties(width=x_axis.width, height=height, **panel_title(name, frame="group"))
