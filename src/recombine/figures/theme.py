"""How every figure looks: one palette, one set of fonts, one way to hand data to a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

# Every colour has a contrast of at least 3 on white and on the dark page of the report, and neighbours stay
# apart under deuteranopia and protanopia. Where greys come near, a dash or a shape tells them apart too.
TRAINED = "#2a78b8"
HELD_OUT = "#d55e00"
CONTROL = "#94588d"
UNTRAINED = "#8a9199"

VERDICTS = {
    "supported": "#0a7d91",
    "contradicted": "#cc4a12",
    "equivalent": "#7a5fc0",
    "inconclusive": "#7c828a",
}
QUALITY = "viridis"
"""The colour scheme of a score in a matrix: dark is bad, bright is good."""

INK = "#22262b"
SOFT = "#5b636d"
GRID = "#e4e7eb"

SANS = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
WIDTH = 940
HEIGHT = 400

_FEW_TO_MANY = ((184, 134, 11), (63, 154, 95), (31, 127, 150), (85, 88, 196))


def size_colours(number: int) -> list[str]:
    """A colour for each of `number` training-set sizes, from few (gold) to many (indigo)."""
    ends = np.linspace(0, 1, len(_FEW_TO_MANY))
    at = np.linspace(0, 1, number) if number > 1 else np.ones(number)
    channels = [np.interp(at, ends, [colour[k] for colour in _FEW_TO_MANY]) for k in range(3)]
    return [
        "#" + "".join(f"{round(value):02x}" for value in colour) for colour in zip(*channels, strict=True)
    ]


def size_name(size: int) -> str:
    """What the line of one training-set size is called."""
    return f"trained on {size}"


def themed(chart: ChartType, description: str) -> ChartType:
    """The chart in the house style. `description` is what a screen reader says.

    The style is set on the chart and not with `alt.theme`, which would change a notebook's other charts.
    """
    axis = {
        "labelFont": SANS,
        "titleFont": SANS,
        "labelFontSize": 13,
        "titleFontSize": 14,
        "titleFontWeight": "normal",
        "labelColor": SOFT,
        "titleColor": INK,
        "titlePadding": 12,
        "labelPadding": 6,
        "gridColor": GRID,
        "domainColor": "#b4bac2",
        "tickColor": "#b4bac2",
        "tickSize": 4,
    }
    legend = {
        "labelFont": SANS,
        "titleFont": SANS,
        "labelFontSize": 13,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": SOFT,
        "labelLimit": 360,
        "symbolStrokeWidth": 2.5,
        "symbolOpacity": 1,
        "symbolSize": 90,
        "rowPadding": 5,
    }
    title = {
        "font": SANS,
        "subtitleFont": SANS,
        "fontSize": 15,
        "subtitleFontSize": 13,
        "fontWeight": 600,
        "color": INK,
        "subtitleColor": SOFT,
        "anchor": "start",
        "frame": "group",
        "offset": 10,
    }
    return chart.properties(description=description, background="white", padding=8).configure(
        font=SANS,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(**axis),
        legend=alt.LegendConfig(**legend),
        title=alt.TitleConfig(**title),
        header=alt.HeaderConfig(labelFont=SANS, titleFont=SANS, labelFontSize=14),
        text=alt.MarkConfig(font=SANS, fontSize=13),
    )


def values(frame: pd.DataFrame) -> alt.InlineData:
    """A frame's rows as data that travel inside the chart.

    Not the frame itself: Altair would then guess the types, refuse more than 5000 rows, and obey whatever
    data transformer a notebook has set. A number that is not finite becomes null, which JSON can say.
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
        # Six digits are more than any figure shows, and make the page a third smaller.
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def message_chart(message: str) -> ChartType:
    """What stands in the place of a figure that has nothing to show."""
    mark = alt.Chart(alt.InlineData(values=[{}]), width=WIDTH, height=80).mark_text(
        fontSize=15, color=VERDICTS["inconclusive"], text=message
    )
    return themed(mark, message)


def unique_labels(labels: Sequence[str]) -> list[str]:
    """The labels, told apart where two are equal: a chart's axis would draw equal ones as one."""
    seen: dict[str, int] = {}
    made: list[str] = []
    taken = set(labels)
    for label in labels:
        seen[label] = count = seen.get(label, 0) + 1
        name = label
        while count > 1 and name in taken:
            name = f"{label} ({count})"
            count += 1
        taken.add(name)
        made.append(name)
    return made
