"""A small table as a heat map, with the numbers printed in the cells."""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.axes import colour_ends
from recombine.figures.palette import Labels, levels, named_as
from recombine.figures.summary import require
from recombine.figures.theme import INK, WIDTH, message_chart, panel_title, panelled, quality_colour, tooltips, values
from recombine.figures.wording import number as in_words, sentences

EMPTY = "#e3e6ea"
HATCH = "#aab0b8"
GAP = 26
MOST_ACROSS = 4


class MatrixInfo(NamedTuple):
    """The content of the figure."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    facets: tuple[str, ...]
    """Titles of the panels. Without facets: one empty title."""
    cells: pd.DataFrame
    """Columns: facet, row, column, value, text, light. Every cell of every panel; NaN where there is no value."""
    domain: tuple[float, float]
    row_title: str
    column_title: str
    value_title: str
    caption: str


def matrix_info(
    frame: pd.DataFrame,
    row: str,
    column: str,
    value: str,
    facet: str | None = None,
    *,
    row_labels: Labels = None,
    column_labels: Labels = None,
    facet_labels: Labels = None,
    domain: tuple[float, float] | None = None,
    row_title: str | None = None,
    column_title: str | None = None,
    value_title: str | None = None,
    caption_lead: str = "",
) -> MatrixInfo:
    """The mean of a column in each cell of a table. A cell without a finite value is hatched.

    Args:
        frame: Rows that share a cell are averaged, within replicates first if there is a column `replicate`.
        row: The column whose levels are rows.
        column: The column whose levels are columns.
        value: The column to average.
        facet: The column whose levels are panels. None: one panel.
        row_labels: The names of the rows, in order.
        column_labels: The names of the columns, in order.
        facet_labels: The titles of the panels, in order.
        domain: The ends of the colour scale. Default: the range of the values.
        row_title: The title of the rows. Default: `row`.
        column_title: The title of the columns. Default: `column`.
        value_title: The title of the colour scale. Default: `value`.
        caption_lead: The first sentences of the caption.

    Returns:
        The input of `draw_matrix`.
    """
    require(frame, [name for name in (row, column, value, facet) if name], "values")
    down, across = levels(frame[row], row_labels), levels(frame[column], column_labels)
    panels = levels(frame[facet], facet_labels) if facet else {"": ""}
    table = pd.DataFrame({"row": named_as(frame[row], down), "column": named_as(frame[column], across)})
    table["facet"] = named_as(frame[facet], panels) if facet else ""
    table["value"] = frame[value].to_numpy(float)
    by = ["facet", "row", "column"]
    table["replicate"] = frame["replicate"].to_numpy() if "replicate" in frame.columns else range(len(frame))
    table = table[np.isfinite(table["value"])].dropna(subset=by)
    units = table.groupby([*by, "replicate"], observed=True)["value"].mean()
    means = units.groupby(level=by, observed=True).mean().to_dict()
    low, high = colour_ends(means.values(), domain)
    rows = []
    for cell in itertools.product(panels.values(), down.values(), across.values()):
        mean = float(means.get(cell, np.nan))
        # Dark text on the bright half of viridis.
        bright = (mean - low) / (high - low) > 0.55
        rows.append((*cell, mean, in_words(mean) if np.isfinite(mean) else "", not bright))
    cells = pd.DataFrame(rows, columns=[*by, "value", "text", "light"])
    beyond = (cells["value"] < low).any() or (cells["value"] > high).any()
    caption = sentences(
        caption_lead,
        "Dark is low, bright is high.",
        "Hatched cells have no value." if cells["value"].isna().any() else "",
        "Values beyond the colour scale have the colour of its end." if beyond else "",
    )
    return MatrixInfo(
        rows=tuple(down.values()),
        columns=tuple(across.values()),
        facets=tuple(panels.values()),
        cells=cells,
        domain=(low, high),
        row_title=row if row_title is None else row_title,
        column_title=column if column_title is None else column_title,
        value_title=value if value_title is None else value_title,
        caption=caption,
    )


def draw_matrix(info: MatrixInfo) -> ChartType:
    """Draw one heat map per facet, side by side."""
    if not info.rows or not info.columns or not info.facets:
        return message_chart("No values yet: there is no table to show.")
    names = min(max(len(name) for name in info.rows) * 7, 240)
    fitting = WIDTH - names - GAP
    # Wide enough for the names of columns, if they are not too long.
    wide = min(max(max(len(name) for name in info.columns) * 7 + 10, 64), 132)
    wanted = len(info.columns) * wide
    across = max(1, min(len(info.facets), MOST_ACROSS, int((fitting + GAP) / (wanted + GAP))))
    room = (fitting - GAP * (across - 1)) / across
    step = max(14.0, min(max(84.0, wide), room / len(info.columns)))
    description = f"{info.value_title} for each {info.row_title} and {info.column_title}"
    return panelled(functools.partial(_panel, info, step), info.facets, across, GAP, description)


def _panel(info: MatrixInfo, step: float, name: str, first: bool) -> ChartType:
    tall = max(16.0, min(46.0, step * 0.72))
    cells = info.cells[info.cells["facet"] == name].drop(columns="facet")
    flat = max(len(label) for label in info.columns) * 7 <= step
    padding: dict[str, Any] = {"paddingInner": 0.05, "paddingOuter": 0.02}
    plain: dict[str, Any] = {"ticks": False, "domain": False, "grid": False}
    turned: dict[str, Any] = {"labelAngle": 0 if flat else -40, "labelAlign": "center" if flat else "left"}
    across = alt.Axis(orient="top", labelLimit=200, **turned, **plain)
    x = alt.X("column:N", sort=None, title=info.column_title or None, axis=across)
    x = x.scale(domain=list(info.columns), **padding)
    down = alt.Axis(labels=first, labelLimit=240, **plain)
    y = alt.Y("row:N", sort=None, title=(info.row_title or None) if first else None, axis=down)
    y = y.scale(domain=list(info.rows), **padding)
    colour = quality_colour("value:Q", info.value_title, info.domain, gradientLength=260, tickCount=5, offset=18)
    titles = {"row:N": info.row_title or "row", "column:N": info.column_title or "column"}
    tooltip = tooltips(titles | {"value:Q": info.value_title}, ".4~g")

    def over(kept: pd.Series) -> alt.Chart:
        return alt.Chart(values(cells[kept])).encode(x=x, y=y, tooltip=tooltip)

    full = cells["value"].notna()
    layers: list[alt.Chart] = [over(full).mark_rect(cornerRadius=3).encode(color=colour)]
    if not full.all():
        layers.append(over(~full).mark_rect(cornerRadius=3, color=EMPTY))
        layers += [_stripe(values(cells[~full]), x, y, position) for position in (0.5, 1.0, 1.5)]
    size = max(9, min(14, int(step / max(cells["text"].str.len().max(), 1) * 1.5)))
    if step >= 24:
        for light, ink in ((True, "#ffffff"), (False, INK)):
            words = over(full & (cells["light"] == light)).mark_text(color=ink, fontSize=size)
            layers.append(words.encode(text="text:N"))
    width, height = step * len(info.columns), tall * len(info.rows)
    return alt.layer(*layers).properties(width=width, height=height, **panel_title(name))


def _stripe(data: alt.InlineData, x: alt.X, y: alt.Y, position: float) -> alt.Chart:
    """A diagonal line across each cell. `position` runs from 0 (upper left corner) to 2 (lower right corner)."""
    left, right = max(0.0, position - 1), min(1.0, position)
    line = alt.Chart(data).mark_rule(color=HATCH, strokeWidth=1.2)
    return line.encode(
        x=x.copy().bandPosition(left),
        x2=alt.X2("column", bandPosition=right),
        y=y.copy().bandPosition(right),
        y2=alt.Y2("row", bandPosition=left),
    )
