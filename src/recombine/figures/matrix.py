"""A small table as a map of colours, with its numbers printed in the cells."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.extent import finite
from recombine.figures.palette import Labels, levels, named_as
from recombine.figures.summary import require
from recombine.figures.theme import INK, QUALITY, WIDTH, message_chart, themed, values
from recombine.figures.wording import number as in_words
from recombine.figures.wording import signed

Scheme = Literal["sequential", "diverging"]
DIVERGING = ("#1f5f96", "#6aa3cf", "#eef0f2", "#e89a5b", "#b04a00")
"""From below the centre (blue) over it (pale) to above it (orange)."""
EMPTY = "#e3e6ea"
HATCH = "#aab0b8"
GAP = 26
MOST_ACROSS = 4


class MatrixInfo(NamedTuple):
    """What the figure shows."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    facets: tuple[str, ...]
    """Titles of the panels; one empty title when there are no facets."""
    cells: pd.DataFrame
    """facet, row, column, value, text, light; every cell of every panel. A value of NaN does not apply."""
    scheme: Scheme
    domain: tuple[float, float]
    row_title: str
    column_title: str
    value_title: str
    lead: str
    """The first words of the caption: what is shown."""

    @property
    def caption(self) -> str:
        """How to read the figure."""
        words = [self.lead] if self.lead else []
        if self.scheme == "sequential":
            words.append("Dark is low, bright is high.")
        else:
            centre = in_words(sum(self.domain) / 2)
            words.append(f"Orange is above {centre}, blue below; the paler, the nearer to it.")
        if self.cells["value"].isna().any():
            words.append("Hatched cells have no value.")
        low, high = self.domain
        if (self.cells["value"] < low).any() or (self.cells["value"] > high).any():
            words.append("Values beyond the scale have the colour of its end.")
        return " ".join(words)


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
    scheme: Scheme = "sequential",
    centre: float = 0.0,
    domain: tuple[float, float] | None = None,
    digits: int = 2,
    row_title: str | None = None,
    column_title: str | None = None,
    value_title: str | None = None,
    caption_lead: str = "",
) -> MatrixInfo:
    """The mean of `value` in each cell. Rows of `frame` that share a cell are averaged, replicates first.

    A cell without a finite value is hatched. A diverging scheme shows distances from `centre`, with signs
    where that is zero. `domain` gives the ends of the colours; without it they follow the values.
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
    found = finite(means.values())
    ends = domain or (min(found, default=0.0), max(found, default=1.0))
    if scheme == "diverging":
        reach = max(abs(ends[0] - centre), abs(ends[1] - centre)) or 1.0
        ends = (centre - reach, centre + reach)
    elif ends[0] == ends[1]:
        ends = (ends[0] - 0.5, ends[1] + 0.5)
    say = signed if scheme == "diverging" and centre == 0 else in_words
    cells = []
    for panel in panels.values():
        for one in down.values():
            for other in across.values():
                mean = float(means.get((panel, one, other), np.nan))
                part = (mean - ends[0]) / (ends[1] - ends[0])
                # Dark words on the bright half of viridis and on the pale middle of a diverging scheme.
                bright = part > 0.55 if scheme == "sequential" else abs(part - 0.5) < 0.33
                text = say(mean, digits) if np.isfinite(mean) else ""
                cells.append((panel, one, other, mean, text, not bright))
    return MatrixInfo(
        rows=tuple(down.values()),
        columns=tuple(across.values()),
        facets=tuple(panels.values()),
        cells=pd.DataFrame(cells, columns=[*by, "value", "text", "light"]),
        scheme=scheme,
        domain=ends,
        row_title=row if row_title is None else row_title,
        column_title=column if column_title is None else column_title,
        value_title=value if value_title is None else value_title,
        lead=caption_lead,
    )


def draw_matrix(info: MatrixInfo) -> ChartType:
    """The figure: a map a facet, side by side."""
    if not info.rows or not info.columns or not info.facets:
        return message_chart("No values yet: there is no table to show.")
    names = min(max(len(name) for name in info.rows) * 7, 240)
    fitting = WIDTH - names - GAP
    # Wide enough for level names of columns, if these are not too long.
    wide = min(max(max(len(name) for name in info.columns) * 7 + 10, 64), 132)
    wanted = len(info.columns) * wide
    across = max(1, min(len(info.facets), MOST_ACROSS, int((fitting + GAP) / (wanted + GAP))))
    room = (fitting - GAP * (across - 1)) / across
    step = max(14.0, min(max(84.0, wide), room / len(info.columns)))
    panels = [_panel(info, name, step, place % across == 0) for place, name in enumerate(info.facets)]
    chart = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=across, spacing=GAP)
    return themed(chart, f"{info.value_title} for each {info.row_title} and {info.column_title}")


def _panel(info: MatrixInfo, name: str, step: float, first: bool) -> ChartType:
    tall = max(16.0, min(46.0, step * 0.72))
    cells = info.cells[info.cells["facet"] == name].drop(columns="facet")
    longest = max(len(label) for label in info.columns)
    flat = longest * 7 <= step
    place: dict[str, Any] = {"paddingInner": 0.05, "paddingOuter": 0.02}
    plain: dict[str, Any] = {"ticks": False, "domain": False, "grid": False}
    across = alt.Axis(
        orient="top",
        labelAngle=0 if flat else -40,
        labelLimit=200,
        labelAlign="center" if flat else "left",
        **plain,
    )
    x = alt.X("column:N", sort=None, title=info.column_title or None, axis=across)
    x = x.scale(domain=list(info.columns), **place)
    down = alt.Axis(labels=first, labelLimit=240, **plain)
    y = alt.Y("row:N", sort=None, title=(info.row_title or None) if first else None, axis=down)
    y = y.scale(domain=list(info.rows), **place)
    ends = list(info.domain)
    if info.scheme == "sequential":
        scale = alt.Scale(domain=ends, scheme=QUALITY, clamp=True)
    else:
        scale = alt.Scale(
            domain=np.linspace(*info.domain, len(DIVERGING)).tolist(),
            range=list(DIVERGING),
            interpolate="rgb",
            clamp=True,
        )
    legend = alt.Legend(
        title=info.value_title,
        orient="bottom",
        direction="horizontal",
        gradientLength=260,
        gradientThickness=12,
        tickCount=5,
        titleAnchor="start",
        offset=18,
    )
    colour = alt.Color("value:Q", scale=scale, legend=legend)
    tooltip = [
        alt.Tooltip("row:N", title=info.row_title or "row"),
        alt.Tooltip("column:N", title=info.column_title or "column"),
        alt.Tooltip("value:Q", title=info.value_title, format=".4~g"),
    ]

    def over(kept: pd.Series) -> alt.Chart:
        return alt.Chart(values(cells[kept])).encode(x=x, y=y, tooltip=tooltip)

    full = cells["value"].notna()
    layers: list[alt.Chart] = [over(full).mark_rect(cornerRadius=3).encode(color=colour)]
    if not full.all():
        layers.append(over(~full).mark_rect(cornerRadius=3, color=EMPTY))
        layers += [_stripe(values(cells[~full]), x, y, at) for at in (0.5, 1.0, 1.5)]
    size = max(9, min(14, int(step / max(cells["text"].str.len().max(), 1) * 1.5)))
    if step >= 24:
        for light, ink in ((True, "#ffffff"), (False, INK)):
            words = over(full & (cells["light"] == light)).mark_text(color=ink, fontSize=size)
            layers.append(words.encode(text="text:N"))
    titled = {"title": alt.TitleParams(name, anchor="middle")} if name else {}
    width, height = step * len(info.columns), tall * len(info.rows)
    return alt.layer(*layers).properties(width=width, height=height, **titled)


def _stripe(data: alt.InlineData, x: alt.X, y: alt.Y, at: float) -> alt.Chart:
    """A slanting line across each cell; `at` runs from 0, the upper left corner, to 2, the lower right."""
    left, right = max(0.0, at - 1), min(1.0, at)
    line = alt.Chart(data).mark_rule(color=HATCH, strokeWidth=1.2)
    return line.encode(
        x=x.copy().bandPosition(left),
        x2=alt.X2("column", bandPosition=right),
        y=y.copy().bandPosition(right),
        y2=alt.Y2("row", bandPosition=left),
    )
