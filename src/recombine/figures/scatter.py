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
from recombine.figures.wording import count_of

Fit = Literal["none", "each", "common"]
"""No lines, one fitted line per group, or lines with one common slope."""
LINES = {
    "each": "Lines are least-squares fits, one per group.",
    "common": "Lines have one common slope: the slope within groups.",
}


class ScatterInfo(NamedTuple):
    """The content of the figure."""

    styles: tuple[Style, ...]
    """The groups, in the order of the legend."""
    points: pd.DataFrame
    """Columns: series, x, y, name."""
    lines: pd.DataFrame
    """Columns: series, x, y. The two ends of each group's line."""
    fit: Fit
    note: str
    """A result about these points, for example their correlation with its interval."""
    x_domain: tuple[float, float]
    y_domain: tuple[float, float]
    x_title: str
    y_title: str
    lead: str
    """The first sentences of the caption."""

    @property
    def caption(self) -> str:
        """How to read the figure."""
        words = [self.lead] if self.lead else []
        words.append(f"{count_of(len(self.points), 'point')}.")
        if len(self.lines):
            words.append(LINES[self.fit])
        if self.note:
            words.append(f"{self.note[:1].upper()}{self.note[1:].rstrip('.')}.")
        return " ".join(words)


def scatter_info(
    frame: pd.DataFrame,
    x: str,
    y: str,
    group: str | None = None,
    *,
    labels: Labels = None,
    ordered: bool = False,
    fit: Fit = "none",
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
    present = set(points["series"])
    return ScatterInfo(
        styles=tuple(style for style in styles if style.name in present),
        points=points,
        lines=_fitted(points, fit),
        fit=fit,
        note=note,
        x_domain=extent(points["x"]),
        y_domain=extent(points["y"]),
        x_title=x if x_title is None else x_title,
        y_title=y if y_title is None else y_title,
        lead=caption_lead,
    )


def _fitted(points: pd.DataFrame, fit: Fit) -> pd.DataFrame:
    """The ends of each group's line. A group whose x does not vary has no line."""
    rows = []
    groups = {} if fit == "none" else dict(list(points.groupby("series", observed=True, sort=False)))
    sums = {}
    for series, part in groups.items():
        dx, dy = part["x"] - part["x"].mean(), part["y"] - part["y"].mean()
        sums[series] = (float((dx * dy).sum()), float((dx * dx).sum()))
    all_xy, all_xx = (sum(pair[k] for pair in sums.values()) for k in range(2))
    for series, part in groups.items():
        xy, xx = sums[series]
        if xx <= 0:
            continue
        slope = xy / xx if fit == "each" else all_xy / all_xx
        for end in (part["x"].min(), part["x"].max()):
            rows.append((series, float(end), float(part["y"].mean() + slope * (end - part["x"].mean()))))
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
