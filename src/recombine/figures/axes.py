"""Axes of figures: their ends and ticks, reference lines across a plot, and marks for means below the axis."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from recombine.figures.palette import NOTE, RULE
from recombine.figures.theme import values
from recombine.figures.wording import number as in_words

REACH = 0.75
"""Interval bars widen an axis by at most this fraction of the data's span: one wide bar must not flatten the rest."""
MOST_TICKS = 12
"""With more values than this, the ticks are round numbers instead of the values."""
LEAST_SPACING = 24
"""Smallest distance between ticks, in pixels, at which their labels still fit."""
LABEL = 15
"""Height of the label of a vertical line in pixels."""
MARGIN = 0.05
"""Space beyond the first and the last value, as a fraction of their span."""


class Reference(NamedTuple):
    """A labelled line across a figure that is not data: a threshold, chance, a published value."""

    value: float
    label: str
    facet: Any = None
    """The only panel of `lines` that shows the line. None: every panel."""


def finite(numbers: Iterable[float]) -> list[float]:
    """The numbers that are finite."""
    return [float(value) for value in numbers if value is not None and math.isfinite(value)]


def extent(inner: Iterable[float], outer: Iterable[float] = (), log: bool = False) -> tuple[float, float]:
    """The two ends of an axis.

    Args:
        inner: Values that must lie within the axis.
        outer: Ends of interval bars. They widen the axis by at most `REACH`.
        log: The axis is logarithmic.

    Returns:
        The low and the high end.
    """
    shown, bars = finite(inner), finite(outer)
    if log:
        shown = [math.log10(value) for value in shown if value > 0]
        bars = [math.log10(value) for value in bars if value > 0]
    if not shown:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(shown), max(shown)
    reach = REACH * (high - low) or math.inf
    low, high = max(min([low, *bars]), low - reach), min(max([high, *bars]), high + reach)
    space = MARGIN * (high - low) or (0.3 if log else max(abs(low), 1.0) * 0.1)
    low, high = low - space, high + space
    return (10**low, 10**high) if log else (low, high)


def colour_ends(numbers: Iterable[float], domain: tuple[float, float] | None) -> tuple[float, float]:
    """The two ends of a colour scale: `domain`, or the range of the numbers. They differ."""
    shown = finite(numbers)
    low, high = domain or (min(shown, default=0.0), max(shown, default=1.0))
    return (low, high) if low != high else (low - 0.5, high + 0.5)


def separated(positions: Sequence[float], gap: float) -> list[float]:
    """Move positions apart, each as little as possible, until any two differ by at least `gap`.

    Positions that are too close become a row around their mean.
    """
    order = sorted(range(len(positions)), key=lambda k: positions[k])
    groups: list[tuple[list[int], float]] = []
    for index in order:
        members, centre = [index], float(positions[index])
        while groups and centre - gap * (len(members) - 1) / 2 < groups[-1][1] + gap * (len(groups[-1][0]) + 1) / 2:
            before, _ = groups.pop()
            members = [*before, *members]
            centre = sum(positions[k] for k in members) / len(members)
        groups.append((members, centre))
    moved = [0.0] * len(positions)
    for members, centre in groups:
        for rank, index in enumerate(members):
            moved[index] = centre + gap * (rank - (len(members) - 1) / 2)
    return moved


def reference_layers(
    references: Sequence[Reference], y: alt.Y, domain: tuple[float, float], height: float, log: bool, outside: bool
) -> list[alt.Chart]:
    """Dashed horizontal lines across a panel, with their labels: those within the axis.

    Args:
        references: The lines.
        y: The panel's y encoding, of a field `shown`.
        domain: The ends of the y axis.
        height: The panel's height in pixels.
        log: The y axis is logarithmic.
        outside: Labels stand to the right of the panel; otherwise inside, at its right end.
    """
    references = [line for line in references if domain[0] <= line.value <= domain[1]]
    if not references:
        return []
    low, high = (math.log(end) for end in domain) if log else domain

    def pixel(value: float) -> float:
        return height * (1 - ((math.log(value) if log else value) - low) / (high - low))

    rules = alt.Chart(values(pd.DataFrame(references, columns=["shown", "label", "facet"]).drop(columns="facet")))
    layers = [rules.mark_rule(color=NOTE, strokeDash=[3, 3], strokeWidth=1.5).encode(y=y)]
    heights = [pixel(line.value) for line in references]
    style = (
        {"align": "left", "dx": 8, "baseline": "middle", "limit": 150}
        if outside
        else {"align": "right", "dx": -2, "dy": -4, "baseline": "bottom"}
    )
    for line, at in zip(references, separated(heights, 16) if outside else heights, strict=True):
        if line.label:
            text = alt.Chart(alt.InlineData(values=[{"label": line.label}])).mark_text(color=NOTE, fontSize=12, **style)
            layers.append(text.encode(x=alt.value("width"), y=alt.value(at), text="label:N"))
    return layers


def vertical_lines(references: Sequence[Reference], x: alt.X, domain: tuple[float, float]) -> list[alt.Chart]:
    """Vertical lines with their labels above the plot, and a line at zero if the axis includes it."""
    low, high = domain
    layers = []
    if low < 0 < high:
        layers.append(alt.Chart(values(pd.DataFrame({"shown": [0]}))).mark_rule(color=RULE).encode(x=x))
    inside = [line for line in references if low <= line.value <= high]
    for rank, line in enumerate(sorted(inside, key=lambda line: -line.value)):
        data = alt.Chart(values(pd.DataFrame({"shown": [line.value], "label": [line.label]}))).encode(x=x)
        layers.append(data.mark_rule(color=NOTE, strokeDash=[3, 3], strokeWidth=1.5))
        # Labels at one height could overlap: each one stands a line higher than the one before.
        right = line.value > sum(domain) / 2
        words = {"align": "right" if right else "left", "dx": 4 if right else -4, "fontSize": 12}
        text = data.mark_text(color=NOTE, baseline="bottom", dy=-4 - LABEL * rank, **words)
        layers.append(text.encode(y=alt.value(0), text="label:N"))
    return layers


class NumericAxis(NamedTuple):
    """A numeric x axis. Its ticks are the values themselves when there are few of them."""

    values: tuple[float, ...]
    log: bool
    width: float
    """Width in pixels."""
    ticks: tuple[float, ...] = ()
    """The values at which ticks stand. Empty: all values."""
    names: tuple[str, ...] = ()
    """The labels of the ticks at 0, 1, 2, ... Empty: the numbers themselves."""

    @property
    def ends(self) -> tuple[float, float]:
        """The low and the high end of the axis."""
        low, high = min(self.values), max(self.values)
        if self.log:
            ratio = max((high / low) ** MARGIN, 1.2 if low == high else 1.0)
            return low / ratio, high * ratio
        room = MARGIN * (high - low) or max(abs(low), 1.0) * 0.2
        return low - room, high + room

    def pixel(self, value: float) -> float:
        """The distance of a value from the left end, in pixels."""
        low, high = self.ends
        if self.log:
            return self.width * math.log(value / low) / math.log(high / low)
        return self.width * (value - low) / (high - low)

    def shifted(self, value: Iterable[float], pixels: Iterable[float]) -> np.ndarray:
        """The values that lie this number of pixels to the right of the given ones."""
        (low, high), start = self.ends, np.asarray(value, float)
        fraction = np.asarray(pixels, float) / self.width
        return start * (high / low) ** fraction if self.log else start + (high - low) * fraction

    def spacing(self) -> float:
        """The smallest distance between two ticks in pixels, with one tick per value."""
        positions = [self.pixel(value) for value in sorted(set(self.ticks or self.values))]
        return min((b - a for a, b in itertools.pairwise(positions)), default=self.width)

    def encoding(self, title: str | None, field: str = "place:Q") -> alt.X:
        """The axis as an Altair encoding of `field`."""
        shown = sorted(set(self.ticks or self.values))
        whole = all(float(value).is_integer() for value in shown)
        settings: dict[str, Any] = {
            "format": ",d" if whole and max(map(abs, shown)) >= 10_000 else "d" if whole else ".6~g"
        }
        if len(shown) <= MOST_TICKS and self.spacing() >= LEAST_SPACING:
            settings["values"] = [int(value) if whole else value for value in shown]
        elif self.log:
            settings["values"] = log_ticks(*self.ends)
            settings["format"] = ",d" if min(settings["values"], default=0) >= 1 else ".6~g"
        else:
            settings |= {"tickCount": max(2, min(8, int(self.width / 90))), "format": ",.6~r"}
        if self.names:
            settings |= {"values": shown, "labelExpr": f"{json.dumps(self.names)}[datum.value]", "labelLimit": 220}
        scale = alt.Scale(type="log" if self.log else "linear", domain=list(self.ends), nice=False)
        axis = alt.Axis(grid=False, labelOverlap="greedy", labelSeparation=4, **settings)
        return alt.X(field, title=title, scale=scale, axis=axis)


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers on a logarithmic axis: powers of ten, and a few between them on a short axis."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    span = math.log10(high / low)
    steps = (1,) if span > 4 else (1, 3) if span > 2 else (1, 2, 5)
    return [mark for decade in decades for step in steps if low <= (mark := step * 10.0**decade) <= high]


def even_ticks(low: float, high: float) -> list[float]:
    """At most six round numbers on a linear axis."""
    for power in range(math.floor(math.log10(high - low)) - 2, math.ceil(math.log10(high - low)) + 1):
        for step in (10.0**power, 2.5 * 10.0**power, 5 * 10.0**power):
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            if last - first < 6:
                return [round(count * step, 9) for count in range(first, last + 1)]
    return []


def y_axis(title: str, domain: tuple[float, float], log: bool, first: bool, floor: float | None = None) -> alt.Axis:
    """The y axis of a panel: with labels if it is the first of its row, without ticks below `floor`."""
    settings: dict[str, Any] = {"titleAngle": 0} if len(title) <= 3 else {}
    if log:
        settings["values"] = log_ticks(*domain)
    else:
        ticks = [] if floor is None else even_ticks(floor, domain[1])
        settings |= {"tickCount": 6} | ({"values": ticks} if ticks else {})
    return alt.Axis(format=".6~g", labels=first, ticks=first, domain=first, **settings)


def dodge(number: int, step: float, most: float) -> list[float]:
    """Offsets in pixels, centred on 0, so that the bars of `number` series at one value do not cover each other.

    Neighbours are `step` apart, but the first and the last at most `most`.
    """
    width = min(step * (number - 1), most)
    return np.linspace(-width / 2, width / 2, number).tolist() if number > 1 else [0.0] * number


def means_below(summary: pd.DataFrame, by: list[str], floor: float, strip: float) -> tuple[pd.DataFrame, float]:
    """Means below the axis: each series gets a row of triangles under it, labelled with the values.

    Args:
        summary: Means with a column `series`.
        by: The columns that identify a mean.
        floor: The low end of the axis.
        strip: The height of one row of triangles, in units of the axis.

    Returns:
        One row per mean below `floor`, with its height `shown` and its `label`; and the height of all rows.
    """
    clipped = summary.loc[summary["mean"] < floor, [*by, "mean"]].reset_index(drop=True)
    # Two series below the axis would hide each other, so each has its own row, the lowest last.
    row = clipped.groupby("series")["mean"].transform("mean").rank(method="dense", ascending=False) - 1
    clipped = clipped.assign(shown=floor - strip * (row + 0.35), label=[in_words(m) for m in clipped["mean"]])
    return clipped, strip * (float(row.max()) + 1.1) if len(clipped) else 0.0
