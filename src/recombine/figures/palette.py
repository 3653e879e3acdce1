"""The colour, dash and name of each series of a figure."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np

from recombine.figures.theme import CONTROL, HELD_OUT, TRAINED, UNTRAINED, WIDTH, size_colours, unique_labels

# Chosen like the theme's colours: a contrast of about 3 on white and on the dark page. All of them differ from each
# other and from both control colours under deuteranopia and protanopia. Further series repeat them with a dash.
COLOURS = (TRAINED, HELD_OUT, "#12915e", "#7486f2", "#d1202a", "#c93fb0")
CONTROL_COLOURS = (CONTROL, UNTRAINED)
NOTE = "#7c828a"
"""Text and lines inside a plot that are not data. The colour is readable on white and on the dark page."""
RULE = "#98a0a9"

SOLID = (1, 0)
DASHES = (SOLID, (8, 3), (3, 3), (9, 3, 2, 3))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
CONTROL_DASHES = ((6, 4), (2, 3), (9, 3, 2, 3))

Labels = Mapping[Any, str] | Sequence[Any] | None
"""A mapping from levels to names, or a list of levels: the order of the legend. None: the order of the data."""


class Style(NamedTuple):
    """The look of one series."""

    key: Any
    """The level in the data."""
    name: str
    """The name in the legend. Names are unique within a figure."""
    colour: str
    dash: tuple[int, ...] = SOLID


def level_name(key: Any) -> str:
    """A level as text: `4` instead of `4.0`."""
    return str(int(key)) if isinstance(key, float) and math.isfinite(key) and key == int(key) else str(key)


def levels(column: Iterable[Any], labels: Labels = None) -> dict[Any, str]:
    """The levels that occur in a column, in order, each with a unique name.

    Args:
        column: The levels, with repetitions. Missing ones are left out.
        labels: Levels that come first, in this order. The rest follows: numbers by size, text as it comes.

    Returns:
        The name of each level.
    """
    present = [key for key in dict.fromkeys(column) if key is not None and key == key]
    named = dict(labels) if isinstance(labels, Mapping) else {key: level_name(key) for key in labels or ()}
    rest = [key for key in present if key not in named]
    if all(isinstance(key, numbers.Real) and not isinstance(key, bool) for key in rest):
        rest = sorted(rest)
    order = [*(key for key in named if key in present), *rest]
    names = unique_labels([str(named.get(key, level_name(key))) for key in order])
    return dict(zip(order, names, strict=True))


def series_styles(
    column: Iterable[Any], labels: Labels = None, controls: Collection[Any] = (), ordered: bool = False
) -> tuple[Style, ...]:
    """One style for each level that occurs in a column.

    Args:
        column: The levels, with repetitions.
        labels: Names of levels. A level named here keeps its colour when others are absent, so that the figures of one
            study agree.
        controls: Levels that are controls. They are dashed and have separate colours.
        ordered: The levels have an order (sizes, depths). Their colours run from gold to indigo.

    Returns:
        The styles, in the order of the legend.
    """
    present = levels(column, labels)
    named = list(labels or ())
    every = [*named, *(key for key in present if key not in named)]
    plain = [key for key in every if key not in controls]
    shaded = size_colours(len(plain)) if ordered else []
    looks = {}
    for index, key in enumerate(plain):
        cycle, which = divmod(index, len(COLOURS))
        looks[key] = (shaded[index], SOLID) if ordered else (COLOURS[which], DASHES[cycle % len(DASHES)])
    for index, key in enumerate(key for key in every if key in controls):
        colour = CONTROL_COLOURS[index % len(CONTROL_COLOURS)]
        looks[key] = (colour, CONTROL_DASHES[index % len(CONTROL_DASHES)])
    return tuple(Style(key, name, *looks[key]) for key, name in present.items())


def named_as(column: Iterable[Any], names: Mapping[Any, str]) -> np.ndarray:
    """The names of a column of levels; None for a missing level."""
    return np.array([names.get(key) if key == key else None for key in column], dtype=object)


def colour_by(styles: Sequence[Style], legend: alt.Legend | None = None) -> alt.Color:
    """A colour encoding of the column `series`."""
    scale = alt.Scale(domain=[style.name for style in styles], range=[style.colour for style in styles])
    return alt.Color("series:N", scale=scale, sort=None, legend=legend)


def stroke_by(styles: Sequence[Style], legend: alt.Legend | None) -> tuple[alt.Color, alt.StrokeDash]:
    """A colour and a dash encoding of the column `series`, which share one legend."""
    scale = alt.Scale(domain=[style.name for style in styles], range=[list(style.dash) for style in styles])
    return colour_by(styles, legend), alt.StrokeDash("series:N", scale=scale, sort=None, legend=legend)


def shape_by(styles: Sequence[Style], legend: alt.Legend | None, shapes: Sequence[str] = SHAPES) -> alt.Shape:
    """A shape encoding of the column `series`. With the same legend as the colours, both share one legend."""
    marks = [shapes[index % len(shapes)] for index in range(len(styles))]
    scale = alt.Scale(domain=[style.name for style in styles], range=marks)
    return alt.Shape("series:N", scale=scale, sort=None, legend=legend)


def legend_above(
    styles: Sequence[Style], symbol: str | None = "stroke", size: int = 110, offset: int = 14
) -> alt.Legend:
    """A legend above the plot, in as many columns as fit. `symbol=None` shows the shapes of the series."""
    widths = [6.6 * min(len(style.name), 50) + 62 for style in styles]
    # One line if all names fit. Otherwise a grid whose columns are as wide as the longest name.
    columns = len(styles) if sum(widths) <= WIDTH else max(1, int(WIDTH / max(widths)))
    settings: dict[str, Any] = {"symbolSize": 420 if symbol == "stroke" else size}
    settings |= {"symbolType": symbol} if symbol else {}
    return alt.Legend(title=None, orient="top", columns=columns, columnPadding=22, offset=offset, **settings)
