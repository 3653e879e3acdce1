"""A numeric axis that runs across a figure: where it ends, its ticks, and a few pixels beside a value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import altair as alt
import numpy as np

MOST_TICKS = 12
"""With more values than this the ticks are round numbers and not the values."""
LEAST_SPACING = 24
"""Pixels between ticks at which their labels still have room."""
MARGIN = 0.05
"""Room beyond the first and the last value, as a part of what they span."""


class Along(NamedTuple):
    """The axis of a figure's x. Its ticks are the values themselves where these are few."""

    values: tuple[float, ...]
    log: bool
    width: float
    """In pixels."""
    ratio: float | None = None
    """A logarithmic axis ends at this many times its last value; None: as much room as a linear one has."""

    ticks: tuple[float, ...] = ()
    """The values that ticks stand at, if not all."""

    @property
    def ends(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        low, high = min(self.values), max(self.values)
        if self.log:
            ratio = self.ratio or max((high / low) ** MARGIN, 1.2 if low == high else 1.0)
            return low / ratio, high * ratio
        room = MARGIN * (high - low) or max(abs(low), 1.0) * 0.2
        return low - room, high + room

    def pixel(self, value: float) -> float:
        """How far right of the axis's beginning a value stands."""
        low, high = self.ends
        if self.log:
            return self.width * math.log(value / low) / math.log(high / low)
        return self.width * (value - low) / (high - low)

    def aside(self, value: Iterable[float], pixels: Iterable[float]) -> np.ndarray:
        """The values moved so many pixels to the right."""
        (low, high), at, by = self.ends, np.asarray(value, float), np.asarray(pixels, float) / self.width
        return at * (high / low) ** by if self.log else at + (high - low) * by

    def spacing(self) -> float:
        """Pixels between the two ticks that stand closest, were each value a tick."""
        places = [self.pixel(value) for value in sorted(set(self.ticks or self.values))]
        return min((b - a for a, b in itertools.pairwise(places)), default=self.width)

    def encoding(self, title: str | None, field: str = "place:Q") -> alt.X:
        """The axis as Altair takes it."""
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
        scale = alt.Scale(type="log" if self.log else "linear", domain=list(self.ends), nice=False)
        axis = alt.Axis(grid=False, labelOverlap="greedy", labelSeparation=4, **settings)
        return alt.X(field, title=title, scale=scale, axis=axis)


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers on a logarithmic axis: powers of ten, and a few between them where these are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    span = math.log10(high / low)
    steps = (1,) if span > 4 else (1, 3) if span > 2 else (1, 2, 5)
    return [mark for decade in decades for step in steps if low <= (mark := step * 10.0**decade) <= high]


def even_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers on a linear axis."""
    for power in range(math.floor(math.log10(high - low)) - 2, math.ceil(math.log10(high - low)) + 1):
        for step in (10.0**power, 2.5 * 10.0**power, 5 * 10.0**power):
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            if last - first < most:
                return [round(at * step, 9) for at in range(first, last + 1)]
    return []


def sides(number: int, step: float, most: float) -> list[float]:
    """Pixels by which so many series stand aside of their value, evenly to both sides."""
    width = min(step * (number - 1), most)
    return np.linspace(-width / 2, width / 2, number).tolist() if number > 1 else [0.0] * number
