"""A row for each finding: an estimate that was made elsewhere, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd
from altair.typing import ChartType

from recombine.figures.audit_names import cut
from recombine.figures.extent import extent, finite
from recombine.figures.palette import NOTE, RULE
from recombine.figures.theme import INK, TRAINED, WIDTH, message_chart, themed, unique_labels, values
from recombine.figures.wording import number as in_words
from recombine.figures.wording import signed
from recombine.plain import plain

SHORT = 46
"""Names at the left of a row have at most so many characters."""
WILD = 4.0
"""Bars that reach so many times further than the estimates are cut: the rest could not be seen."""
STEP = 34
LETTER = 6.6
COLUMNS = ["label", "whole", "estimate", "low", "high", "note", "colour", "text"]


class Row(NamedTuple):
    """What one row shows."""

    name: str
    estimate: float
    low: float = math.nan
    high: float = math.nan
    """Not a number where there is no interval."""
    note: str = ""
    """Words at the right."""
    colour: str = TRAINED


class IntervalsInfo(NamedTuple):
    """What the figure shows."""

    rows: pd.DataFrame
    """`COLUMNS`; a row a finding, from top to bottom."""
    domain: tuple[float, float]
    zero: bool
    """There is a line at zero."""
    title: str
    """Of the axis."""
    lead: str
    """The first words of the caption: what is shown."""

    @property
    def caption(self) -> str:
        """How to read the figure."""
        words = [self.lead] if self.lead else []
        if self.rows["low"].notna().any():
            words.append("Points are estimates, bars 95 % intervals.")
        missing = int(self.rows["low"].isna().sum())
        if missing:
            words.append(
                "A point without a bar has no interval."
                if missing < len(self.rows)
                else "There are no intervals."
            )
        low, high = self.domain
        if (self.rows["low"] < low).any() or (self.rows["high"] > high).any():
            words.append("Bars that reach beyond the axis are cut off there.")
        return " ".join(words)


def intervals_info(
    rows: Sequence[Row],
    *,
    title: str = "",
    domain: tuple[float, float] | None = None,
    zero: bool = False,
    lead: str = "",
) -> IntervalsInfo:
    """The rows with an estimate, in their order. `domain` gives the ends of the axis if all estimates lie within.

    With `zero` the numbers are differences: they have signs, and the axis shows where there is none.
    """
    kept = [row for row in rows if math.isfinite(row.estimate)]
    say = signed if zero else in_words
    frame = pd.DataFrame(
        {
            "label": unique_labels([cut(plain(row.name), SHORT) for row in kept]),
            "whole": [cut(plain(row.name)) for row in kept],
            "estimate": [row.estimate for row in kept],
            "low": [row.low for row in kept],
            "high": [row.high for row in kept],
            "note": [cut(plain(row.note), 60) for row in kept],
            "colour": [row.colour for row in kept],
            "text": [_interval(say, row) for row in kept],
        },
        columns=COLUMNS,
    )
    seen = [*frame["estimate"], *([0.0] if zero else [])]
    bars = finite([*frame["low"], *frame["high"]])
    wild = bars and max(bars) - min(bars) > WILD * (max(seen) - min(seen))
    ends = extent(seen, bars) if wild and max(seen) > min(seen) else extent([*seen, *bars])
    if domain is not None and all(domain[0] <= value <= domain[1] for value in seen):
        ends = domain
    return IntervalsInfo(frame, ends, zero, cut(plain(title), 60), lead)


def _interval(say: Any, row: Row) -> str:
    ends = finite([row.low, row.high])
    text = say(row.estimate)
    return f"{text} [{say(row.low)}, {say(row.high)}]" if len(ends) == 2 else f"{text}, no interval"


def draw_intervals(info: IntervalsInfo) -> ChartType:
    """The figure: a row a finding."""
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
    place = alt.Scale(type="point", padding=0.5, domain=list(frame["label"]))
    axis = alt.Axis(
        labelLimit=330,
        labelFontSize=14,
        labelColor=INK,
        labelPadding=12,
        domain=False,
        ticks=False,
        grid=True,
    )
    y = alt.Y("label:N", scale=place, sort=None, title=None, axis=axis)
    colour = alt.Color("colour:N", scale=None, legend=None)
    tooltip = [
        alt.Tooltip("whole:N", title="what"),
        alt.Tooltip("text:N", title="estimate"),
        alt.Tooltip("note:N", title="of"),
    ]
    base = alt.Chart(values(frame)).encode(y=y, color=colour, tooltip=tooltip)
    bars = alt.Chart(values(frame[frame["low"].notna()])).encode(y=y, color=colour, tooltip=tooltip)
    layers: list[alt.Chart] = []
    if info.zero and low <= 0 <= high:
        line = alt.Chart(alt.InlineData(values=[{"shown": 0}])).mark_rule(color=RULE, strokeWidth=1.5)
        layers.append(line.encode(x=x))
    layers += [
        bars.mark_rule(strokeWidth=3).encode(x=alt.X("start:Q", scale=scale), x2="end:Q"),
        base.mark_point(filled=True, size=120, opacity=1).encode(x=x),
        *(
            base.mark_text(align="left", dx=dx, fontSize=13, limit=240).encode(
                x=alt.value("width"), text=f"{column}:N", color=alt.value(NOTE)
            )
            for column, dx in (("text", 16), ("note", round(texts)))
        ),
    ]
    chart = alt.layer(*layers).properties(width=width, height=STEP * len(frame))
    return themed(chart, f"Estimates with intervals: {info.title}")
