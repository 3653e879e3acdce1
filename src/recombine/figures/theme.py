"""The style of every figure: colours, fonts, inline data, panels side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

# Every colour has a contrast of at least 3 on white and on the dark page of the report. Neighbouring colours differ
# under deuteranopia and protanopia. Where greys are similar, a dash or a shape differs too.
TRAINED = "#2a78b8"
HELD_OUT = "#d55e00"
CONTROL = "#94588d"
UNTRAINED = "#8a9199"

ANSWERS = {
    "holds": "#0a7d91",
    "does not hold": "#cc4a12",
    "too small to matter": "#7a5fc0",
    "depends on the scale": "#a8700b",
    "not decided": "#7c828a",
}
"""The colour of each answer to a claim."""
QUALITY = "viridis"
"""The colour scheme of scores in a matrix: dark is bad, bright is good."""

INK = "#22262b"
SOFT = "#5b636d"
GRID = "#e4e7eb"

SANS = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
WIDTH = 940
HEIGHT = 400

Item = TypeVar("Item")
_FEW_TO_MANY = ((184, 134, 11), (63, 154, 95), (31, 127, 150), (85, 88, 196))


def size_colours(number: int) -> list[str]:
    """A colour for each of `number` training-set sizes, from few (gold) to many (indigo)."""
    ends = np.linspace(0, 1, len(_FEW_TO_MANY))
    positions = np.linspace(0, 1, number) if number > 1 else np.ones(number)
    channels = [np.interp(positions, ends, [colour[k] for colour in _FEW_TO_MANY]) for k in range(3)]
    return ["#" + "".join(f"{round(value):02x}" for value in colour) for colour in zip(*channels, strict=True)]


def size_name(size: int) -> str:
    """The name of the series of one training-set size."""
    return f"trained on {size}"


def themed(chart: ChartType, description: str) -> ChartType:
    """The chart in the common style. A screen reader says the description.

    The style is set on the chart and not with `alt.theme`, which would change a notebook's other charts.
    """
    axis = {
        "labelFontSize": 13,
        "titleFontSize": 14,
        "titleFontWeight": "normal",
        "labelPadding": 6,
        "titlePadding": 12,
    }
    axis |= {"labelColor": SOFT, "titleColor": INK, "gridColor": GRID, "domainColor": "#b4bac2", "tickColor": "#b4bac2"}
    legend = {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "labelColor": INK}
    legend |= {"titleColor": SOFT, "labelLimit": 360, "rowPadding": 5}
    symbols = {"symbolStrokeWidth": 2.5, "symbolOpacity": 1, "symbolSize": 90}
    title = {"fontSize": 15, "fontWeight": 600, "color": INK, "subtitleFontSize": 13, "subtitleColor": SOFT}
    title |= {"anchor": "start", "frame": "group", "offset": 10}
    return chart.properties(description=description, background="white", padding=8).configure(
        font=SANS,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(tickSize=4, **axis),
        legend=alt.LegendConfig(**legend, **symbols),
        title=alt.TitleConfig(**title),
        header=alt.HeaderConfig(labelFontSize=14),
        text=alt.MarkConfig(fontSize=13),
    )


def values(frame: pd.DataFrame) -> alt.InlineData:
    """The rows of a frame as inline data of a chart.

    Given the frame itself, Altair would guess the types, refuse more than 5000 rows, and use the notebook's data
    transformer. Numbers that are not finite become null, because JSON has no NaN.
    """
    records = [
        {name: _plain(value) for name, value in zip(frame.columns, row, strict=True)}
        for row in frame.itertuples(index=False, name=None)
    ]
    return alt.InlineData(values=records)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float):
        # Six digits are more than any figure shows. They make the page a third smaller.
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def message_chart(message: str) -> ChartType:
    """A placeholder for a figure that has nothing to show: one line of text."""
    chart = alt.Chart(alt.InlineData(values=[{}]), width=WIDTH, height=80)
    return themed(chart.mark_text(fontSize=15, color=ANSWERS["not decided"], text=message), message)


def unique_labels(labels: Sequence[str]) -> list[str]:
    """The labels, with numbers added to equal ones: a chart's axis would draw equal labels as one."""
    seen: dict[str, int] = {}
    unique: list[str] = []
    taken = set(labels)
    for label in labels:
        seen[label] = count = seen.get(label, 0) + 1
        name = label
        while count > 1 and name in taken:
            name = f"{label} ({count})"
            count += 1
        taken.add(name)
        unique.append(name)
    return unique


def panelled(
    draw: Callable[[Item, bool], ChartType], items: Iterable[Item], across: int, spacing: int, description: str
) -> ChartType:
    """One panel per item in rows of `across`, in the common style. `draw` also takes whether a panel begins a row."""
    panels = [draw(item, index % across == 0) for index, item in enumerate(items)]
    chart = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=across, spacing=spacing)
    return themed(chart, description)


def panel_title(name: str, **settings: Any) -> dict[str, Any]:
    """The property `title` of a panel, centred above it; no property if the name is empty."""
    return {"title": alt.TitleParams(name, anchor="middle", **settings)} if name else {}


def quality_colour(field: str, title: str, domain: Sequence[float], **legend: Any) -> alt.Color:
    """The colours of scores in a matrix, with a gradient below the plot as legend."""
    gradient = {"orient": "bottom", "direction": "horizontal", "gradientThickness": 12, "titleAnchor": "start"}
    scale = alt.Scale(domain=list(domain), scheme=QUALITY, clamp=True)
    return alt.Color(field, scale=scale, legend=alt.Legend(title=title, **gradient, **legend))


def row_axis(**settings: Any) -> alt.Axis:
    """The y axis of a figure with one named row per item."""
    return alt.Axis(labelFontSize=14, labelColor=INK, labelPadding=12, domain=False, ticks=False, **settings)


def tooltips(fields: Mapping[str, str], number_format: str = "") -> list[alt.Tooltip]:
    """Tooltips of a mark: the title of each field. Numeric fields (`:Q`) use `number_format`, if there is one."""
    formats: dict[str, Any] = {"format": number_format} if number_format else {}
    return [
        alt.Tooltip(field, title=title, **(formats if field.endswith(":Q") else {})) for field, title in fields.items()
    ]


def mean_tooltips(fields: Mapping[str, str], number_format: str) -> list[alt.Tooltip]:
    """Tooltips of these fields, and of a mean with its interval and its number of replicates."""
    numbers = tooltips({"mean:Q": "mean", "low:Q": "interval from", "high:Q": "to"}, number_format)
    return [*tooltips(fields), *numbers, alt.Tooltip("replicates:Q", title="replicates")]
