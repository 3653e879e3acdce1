"""One point per run: two measures against each other, with groups."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.axes import extent
from recombine.figures.palette import Labels, Style, colour_by, legend_above, named_as, series_styles, shape_by
from recombine.figures.summary import require
from recombine.figures.theme import HEIGHT, WIDTH, message_chart, themed, tooltips, values
from recombine.figures.wording import count_of, sentences


class ScatterInfo(NamedTuple):
    """The content of the figure."""

    styles: tuple[Style, ...]
    """The groups, in the order of the legend."""
    points: pd.DataFrame
    """Columns: series, x, y, name."""
    lines: pd.DataFrame
    """Columns: series, x, y. The two ends of each group's line."""
    note: str
    """A result about these points, for example their correlation with its interval."""
    x_domain: tuple[float, float]
    y_domain: tuple[float, float]
    x_title: str
    y_title: str
    caption: str


def scatter_info(
    frame: pd.DataFrame,
    x: str,
    y: str,
    group: str | None = None,
    *,
    labels: Labels = None,
    ordered: bool = False,
    fit: Literal["none", "common"] = "none",
    note: str = "",
    name: str | None = None,
    x_title: str | None = None,
    y_title: str | None = None,
    caption_lead: str = "",
) -> ScatterInfo:
    """One point per row of a frame, coloured by group.

    Args:
        frame: One row per point.
        x: The column of the x axis.
        y: The column of the y axis.
        group: The column whose levels are colours. None: one group.
        labels: The names of the groups, in the order of the legend.
        ordered: The groups have an order (sizes, depths), shown by their colours.
        fit: Lines to draw. `common` uses the slope within groups: differences between groups do not affect it.
        note: Text above the plot.
        name: The column with the name of each point, shown in its tooltip.
        x_title: The title of the x axis. Default: `x`.
        y_title: The title of the y axis. Default: `y`.
        caption_lead: The first sentences of the caption.

    Returns:
        The input of `draw_scatter`.
    """
    require(frame, [column for column in (x, y, group, name) if column], "runs")
    keys = list(frame[group]) if group else [y_title or y] * len(frame)
    styles = series_styles(keys, labels, ordered=ordered)
    points = pd.DataFrame({"series": named_as(keys, {style.key: style.name for style in styles})})
    points["x"], points["y"] = frame[x].to_numpy(float), frame[y].to_numpy(float)
    points["name"] = [str(text) for text in frame[name]] if name else ""
    kept = np.isfinite(points["x"]) & np.isfinite(points["y"]) & points["series"].notna()
    points = points[kept].reset_index(drop=True)
    lines = _fitted(points) if fit == "common" else pd.DataFrame(columns=["series", "x", "y"])
    caption = sentences(
        caption_lead,
        f"{count_of(len(points), 'point')}.",
        "Lines have one common slope: the slope within groups." if len(lines) else "",
        f"{note[:1].upper()}{note[1:].rstrip('.')}." if note else "",
    )
    return ScatterInfo(
        styles=tuple(style for style in styles if style.name in set(points["series"])),
        points=points,
        lines=lines,
        note=note,
        x_domain=extent(points["x"]),
        y_domain=extent(points["y"]),
        x_title=x if x_title is None else x_title,
        y_title=y if y_title is None else y_title,
        caption=caption,
    )


def _fitted(points: pd.DataFrame) -> pd.DataFrame:
    """The ends of each group's line, with one common slope. A group whose x does not vary has no line."""
    groups = points.groupby("series", observed=True, sort=False)
    dx, dy = (points[axis] - groups[axis].transform("mean") for axis in ("x", "y"))
    square = (dx * dx).sum()
    slope = (dx * dy).sum() / square if square else 0.0
    rows = [
        (series, float(end), float(part["y"].mean() + slope * (end - part["x"].mean())))
        for series, part in groups
        for end in (part["x"].min(), part["x"].max())
        if part["x"].nunique() > 1
    ]
    return pd.DataFrame(rows, columns=["series", "x", "y"])


def draw_scatter(info: ScatterInfo) -> ChartType:
    """Draw the points and the fitted lines."""
    if not len(info.points):
        return message_chart("No runs yet: there are no points to show.")
    x = alt.X("x:Q", title=info.x_title, scale=alt.Scale(domain=list(info.x_domain), nice=False))
    x = x.axis(tickCount=8, format=".6~g", grid=True)
    y = alt.Y("y:Q", title=info.y_title, scale=alt.Scale(domain=list(info.y_domain), nice=False))
    turned: dict[str, Any] = {"titleAngle": 0} if len(info.y_title) <= 3 else {}
    y = y.axis(tickCount=6, format=".6~g", **turned)
    legend = legend_above(info.styles, symbol=None) if len(info.styles) > 1 else None
    colour, shape = colour_by(info.styles, legend), shape_by(info.styles, legend)
    fields = {"name:N": "run"} if info.points["name"].any() else {}
    fields |= {"series:N": "group", "x:Q": info.x_title or "x", "y:Q": info.y_title or "y"}
    many = len(info.points) > 400
    dots = alt.Chart(values(info.points)).mark_point(
        filled=True, size=22 if many else 80, opacity=0.4 if many else 0.75
    )
    layers = [dots.encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltips(fields, ".3~f"))]
    if len(info.lines):
        line = alt.Chart(values(info.lines)).mark_line(strokeWidth=2.5, clip=True)
        layers.append(line.encode(x=x, y=y, color=colour))
    title = {"title": alt.TitleParams(info.note, fontWeight="normal", fontSize=14)} if info.note else {}
    chart = alt.layer(*layers).properties(width=WIDTH - 160, height=HEIGHT + 40, **title)
    return themed(chart, f"{info.y_title} against {info.x_title}, one point per run")
