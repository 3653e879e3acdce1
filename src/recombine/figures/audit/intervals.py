"""One row per finding: an estimate with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd
from altair.typing import ChartType

from recombine.figures.axes import extent, finite
from recombine.figures.palette import NOTE, RULE
from recombine.figures.theme import TRAINED, WIDTH, message_chart, row_axis, themed, tooltips, unique_labels, values
from recombine.figures.wording import cut, number as in_words, sentences, signed
from recombine.plain import plain

SHORT = 46
"""Most characters of the name of a row."""
WILD = 4.0
"""Bars that extend this many times further than the estimates are cut: they would hide the rest."""
STEP = 34
LETTER = 6.6
COLUMNS = ["label", "whole", "estimate", "low", "high", "note", "colour", "text"]


class IntervalRow(NamedTuple):
    """One row of the figure."""

    name: str
    estimate: float
    low: float = math.nan
    high: float = math.nan
    """NaN if there is no interval."""
    note: str = ""
    """Text at the right."""
    colour: str = TRAINED


class IntervalsInfo(NamedTuple):
    """The content of the figure."""

    rows: pd.DataFrame
    """Columns: `COLUMNS`. One row per finding, from top to bottom."""
    domain: tuple[float, float]
    zero: bool
    """Draw a line at zero."""
    title: str
    """The title of the axis."""
    caption: str


def intervals_info(
    rows: Sequence[IntervalRow],
    *,
    title: str = "",
    domain: tuple[float, float] | None = None,
    zero: bool = False,
    lead: str = "",
) -> IntervalsInfo:
    """The rows that have an estimate, in order.

    Args:
        rows: Estimates with their intervals.
        title: The title of the axis.
        domain: The ends of the axis. Ignored if an estimate lies outside.
        zero: The numbers are differences: they have signs, and the figure has a line at zero.
        lead: The first sentences of the caption.

    Returns:
        The input of `draw_intervals`.
    """
    kept = [row for row in rows if math.isfinite(row.estimate)]
    to_text = signed if zero else in_words
    labels = unique_labels([cut(plain(row.name), SHORT) for row in kept])
    cells = [
        (label, cut(plain(row.name)), *row[1:4], cut(plain(row.note), 60), row.colour, _interval(to_text, row))
        for label, row in zip(labels, kept, strict=True)
    ]
    frame = pd.DataFrame(cells, columns=COLUMNS).astype({"estimate": float, "low": float, "high": float})
    seen = [*frame["estimate"], *([0.0] if zero else [])]
    bars = finite([*frame["low"], *frame["high"]])
    wild = bars and max(bars) - min(bars) > WILD * (max(seen) - min(seen))
    ends = extent(seen, bars) if wild and max(seen) > min(seen) else extent([*seen, *bars])
    if domain is not None and all(domain[0] <= value <= domain[1] for value in seen):
        ends = domain
    missing = frame["low"].isna()
    beyond = (frame["low"] < ends[0]).any() or (frame["high"] > ends[1]).any()
    caption = sentences(
        lead,
        "" if missing.all() else "Points are estimates, bars are 95 % intervals.",
        "A point without a bar has no interval." if missing.any() and not missing.all() else "",
        "There are no intervals." if len(frame) and missing.all() else "",
        "Bars that extend beyond the axis are cut off." if beyond else "",
    )
    return IntervalsInfo(frame, ends, zero, cut(plain(title), 60), caption)


def _interval(to_text: Any, row: IntervalRow) -> str:
    known = math.isfinite(row.low) and math.isfinite(row.high)
    return to_text(row.estimate) + (f" [{to_text(row.low)}, {to_text(row.high)}]" if known else ", no interval")


def draw_intervals(info: IntervalsInfo) -> ChartType:
    """Draw one row per finding."""
    if not len(info.rows):
        return message_chart("There is nothing to show.")
    low, high = info.domain
    frame = info.rows.assign(
        shown=info.rows["estimate"].clip(low, high),
        start=info.rows["low"].clip(low, high),
        end=info.rows["high"].clip(low, high),
    )
    names = min(frame["label"].str.len().max() * LETTER + 20, 330)
    texts = frame["text"].str.len().max() * LETTER + 24
    notes = min(frame["note"].str.len().max() * LETTER, 240)
    width = max(round(WIDTH + 70 - names - texts - notes), 240)
    scale = alt.Scale(domain=[low, high], nice=False)
    x = alt.X("shown:Q", scale=scale, title=info.title or None)
    x = x.axis(grid=True, tickCount=max(3, min(8, width // 90)), format=".6~g", titleLimit=420)
    position = alt.Scale(type="point", padding=0.5, domain=list(frame["label"]))
    y = alt.Y("label:N", scale=position, sort=None, title=None, axis=row_axis(labelLimit=330, grid=True))
    colour = alt.Color("colour:N", scale=None, legend=None)
    tooltip = tooltips({"whole:N": "name", "text:N": "estimate", "note:N": "note"})
    base = alt.Chart(values(frame)).encode(y=y, color=colour, tooltip=tooltip)
    bars = alt.Chart(values(frame[frame["low"].notna()])).encode(y=y, color=colour, tooltip=tooltip)
    aside = base.encode(x=alt.value("width"), color=alt.value(NOTE))
    layers: list[alt.Chart] = []
    if info.zero and low <= 0 <= high:
        line = alt.Chart(alt.InlineData(values=[{"shown": 0}])).mark_rule(color=RULE, strokeWidth=1.5)
        layers.append(line.encode(x=x))
    layers.append(bars.mark_rule(strokeWidth=3).encode(x=alt.X("start:Q", scale=scale), x2="end:Q"))
    layers.append(base.mark_point(filled=True, size=120, opacity=1).encode(x=x))
    for column, dx in (("text", 16), ("note", round(texts))):
        layers.append(aside.mark_text(align="left", dx=dx, fontSize=13, limit=240).encode(text=f"{column}:N"))
    chart = alt.layer(*layers).properties(width=width, height=STEP * len(frame))
    return themed(chart, f"Estimates with intervals: {info.title}")
