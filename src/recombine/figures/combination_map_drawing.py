"""Draws the map of the combination space."""

from __future__ import annotations

import altair as alt
import pandas as pd
from altair.typing import ChartType

from recombine.figures.combination_map import CombinationMapInfo, Panel, panel_title
from recombine.figures.theme import QUALITY, message_chart, themed, values

LOWER = "M-1,-1L1,1L-1,1Z"
UPPER = "M-1,-1L1,-1L1,1Z"
CROSS = "M-1,-1L1,1M1,-1L-1,1"
GAP = 0.08
PANEL = 236
"""Width of one map in pixels, unless its cells would become too small."""


def draw_combination_map(info: CombinationMapInfo, columns: int = 4) -> ChartType:
    """The figure: maps side by side, from few training combinations to many."""
    if not info.panels or not len(info.cells):
        return message_chart("No scores of combinations yet: there is no map to show.")
    step = max(PANEL / len(info.labels), 11.0)
    # Few constituents: larger cells help nobody.
    step = min(step, 34.0)
    frame = info.cells.assign(
        down=[info.labels[row] for row in info.cells["row"]],
        across=[info.labels[column] for column in info.cells["column"]],
        shown=info.cells["r2"].clip(0, 1),
        words=["never" if marked else "yes" for marked in info.cells["marked"]],
    )
    across = max(1, min(columns, int(columns * PANEL / (step * len(info.labels)) + 0.01)))
    panels = [
        _draw_panel(
            frame[frame["number"] == panel.number], panel, info.labels, step, first=index % across == 0
        )
        for index, panel in enumerate(info.panels)
    ]
    chart = alt.concat(*panels, columns=across, spacing=22)
    return themed(chart, "Scores of pairs of constituents, trained and held out, for each training-set size")


def _draw_panel(
    cells: pd.DataFrame, panel: Panel, labels: tuple[str, ...], step: float, first: bool
) -> ChartType:
    # Labels that are as short as numbers stand upright; longer ones are turned.
    short = max(len(label) for label in labels) <= 2
    size = min(12, max(step, 12))
    position = alt.Scale(domain=list(labels), paddingInner=GAP, paddingOuter=GAP / 2)
    x = alt.X("across:N", scale=position, title=None, sort=None)
    x = x.axis(
        labelAngle=0 if short else -90,
        labelFontSize=size,
        ticks=False,
        domain=False,
        labelLimit=110,
        labelOverlap=True,
        labelSeparation=3,
        labelPadding=4,
    )
    y = alt.Y("down:N", scale=position, title=None, sort=None)
    y = y.axis(
        labels=first,
        labelFontSize=size,
        ticks=False,
        domain=False,
        labelLimit=150,
        labelOverlap=True,
        labelPadding=4,
    )
    colour = alt.Color(
        "shown:Q",
        scale=alt.Scale(domain=[0, 1], scheme=QUALITY, clamp=True),
        legend=alt.Legend(
            title="R² of the combinations",
            orient="bottom",
            direction="horizontal",
            gradientLength=300,
            gradientThickness=12,
            values=[0, 0.25, 0.5, 0.75, 1],
            format=".2~f",
            titleAnchor="start",
        ),
    )
    tooltip = [
        alt.Tooltip("part:N", title="combinations"),
        alt.Tooltip("down:N", title="constituent"),
        alt.Tooltip("across:N", title="with"),
        alt.Tooltip("r2:Q", title="pooled R²", format=".3f"),
        alt.Tooltip("combinations:Q", title="how many"),
        alt.Tooltip("words:N", title="met in training"),
    ]

    def layer(kept: pd.Series) -> alt.Chart:
        return alt.Chart(values(cells[kept])).encode(x=x, y=y, tooltip=tooltip)

    scored, diagonal = cells["r2"].notna(), cells["row"] == cells["column"]
    half = {"filled": True, "opacity": 1, "strokeWidth": 0, "size": (step * (1 - GAP)) ** 2}
    cross = {"shape": CROSS, "filled": False, "opacity": 0.95, "strokeWidth": 1.4, "size": (step * 0.36) ** 2}
    bright = scored & (cells["shown"] > 0.6)
    title, subtitle = panel_title(panel)
    return alt.layer(
        layer(scored & ~diagonal).mark_rect().encode(color=colour),
        layer(scored & diagonal & (cells["part"] == "trained"))
        .mark_point(shape=LOWER, **half)
        .encode(color=colour),
        layer(scored & diagonal & (cells["part"] == "held out"))
        .mark_point(shape=UPPER, **half)
        .encode(color=colour),
        # Where both sides do equally well, only this line tells them apart.
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_rule(color="#1c1f24", opacity=0.6, strokeWidth=1)
        .encode(x=alt.value(0), y=alt.value(0), x2=alt.value("width"), y2=alt.value("height")),
        # A cross must be seen on a bright cell, on a dark one, and on none.
        layer(cells["marked"] & bright).mark_point(color="#1c1f24", **cross),
        layer(cells["marked"] & scored & ~bright).mark_point(color="#ffffff", **cross),
        layer(cells["marked"] & ~scored).mark_point(color="#8a9199", **cross),
    ).properties(
        width=step * len(labels),
        height=step * len(labels),
        title=alt.TitleParams(text=title, subtitle=subtitle),
    )
