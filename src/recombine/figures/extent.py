"""How far an axis reaches, and the lines on it that are no data: a threshold, a published value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from recombine.figures.palette import NOTE
from recombine.figures.theme import values

REACH = 0.75
"""Bars may widen an axis by this part of what the data span: one wide bar must not flatten the rest."""


class Reference(NamedTuple):
    """A line across a figure, with a word for it."""

    value: float
    label: str
    facet: Any = None
    """The only panel that has it; None is every panel."""


def finite(numbers: Iterable[float]) -> list[float]:
    """Those that are finite."""
    return [float(value) for value in numbers if value is not None and math.isfinite(value)]


def extent(
    inner: Iterable[float], outer: Iterable[float] = (), log: bool = False, room: float = 0.05
) -> tuple[float, float]:
    """The ends of an axis that shows all of `inner`, and of `outer` (bars) as far as `REACH` allows."""
    seen, bars = finite(inner), finite(outer)
    if log:
        seen = [math.log10(value) for value in seen if value > 0]
        bars = [math.log10(value) for value in bars if value > 0]
    if not seen:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(seen), max(seen)
    reach = REACH * (high - low) or math.inf
    low, high = max(min([low, *bars]), low - reach), min(max([high, *bars]), high + reach)
    space = room * (high - low) or (0.3 if log else max(abs(low), 1.0) * 0.1)
    low, high = low - space, high + space
    return (10**low, 10**high) if log else (low, high)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """The places moved apart until any two are at least `gap` from each other, each as little as may be.

    Places that are too close become a row around their middle.
    """
    order = sorted(range(len(places)), key=lambda k: places[k])
    groups: list[tuple[list[int], float]] = []
    for at in order:
        members, centre = [at], float(places[at])
        while (
            groups
            and centre - gap * (len(members) - 1) / 2 < groups[-1][1] + gap * (len(groups[-1][0]) + 1) / 2
        ):
            before, _ = groups.pop()
            members = [*before, *members]
            centre = sum(places[k] for k in members) / len(members)
        groups.append((members, centre))
    moved = [0.0] * len(places)
    for members, centre in groups:
        for rank, at in enumerate(members):
            moved[at] = centre + gap * (rank - (len(members) - 1) / 2)
    return moved


def reference_layers(
    references: Sequence[Reference],
    y: alt.Y,
    domain: tuple[float, float],
    height: float,
    log: bool,
    outside: bool,
) -> list[alt.Chart]:
    """Dashed lines across a panel at these heights. Words stand right of it, or inside at its right end."""
    references = [one for one in references if domain[0] <= one.value <= domain[1]]
    if not references:
        return []
    low, high = (math.log(end) for end in domain) if log else domain

    def pixel(value: float) -> float:
        return height * (1 - ((math.log(value) if log else value) - low) / (high - low))

    rows = [{"shown": one.value, "label": one.label} for one in references]
    line = (
        alt.Chart(values(pd.DataFrame(rows)))
        .mark_rule(color=NOTE, strokeDash=[3, 3], strokeWidth=1.5)
        .encode(y=y)
    )
    layers = [line]
    heights = spread([pixel(one.value) for one in references], 16) if outside else None
    for place, one in enumerate(references):
        if not one.label:
            continue
        at = heights[place] if heights else pixel(one.value)
        words = (
            {"align": "left", "dx": 8, "baseline": "middle", "limit": 150}
            if outside
            else {"align": "right", "dx": -2, "dy": -4, "baseline": "bottom"}
        )
        text = alt.Chart(values(pd.DataFrame([{"label": one.label}]))).mark_text(
            color=NOTE, fontSize=12, **words
        )
        layers.append(text.encode(x=alt.value("width"), y=alt.value(at), text="label:N"))
    return layers
