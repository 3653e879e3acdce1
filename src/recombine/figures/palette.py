"""Which colour, dash and name each series of a figure has."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np

from recombine.figures.theme import CONTROL, HELD_OUT, TRAINED, UNTRAINED, WIDTH, size_colours, unique_labels

# Chosen like the theme's colours: a contrast of about 3 on white and on the dark page, and all of them with
# both control colours told apart under deuteranopia and protanopia. More series repeat them with a dash.
COLOURS = (TRAINED, HELD_OUT, "#12915e", "#7486f2", "#d1202a", "#c93fb0")
CONTROL_COLOURS = (CONTROL, UNTRAINED)
NOTE = "#7c828a"
"""Words and lines inside a plot that are no data; they read on white and on the dark page."""
RULE = "#98a0a9"

SOLID = (1, 0)
DASHES = (SOLID, (8, 3), (3, 3), (9, 3, 2, 3))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
CONTROL_DASHES = ((6, 4), (2, 3), (9, 3, 2, 3))

Labels = Mapping[Any, str] | Sequence[Any] | None
"""Names of levels in their order, or the levels in their order, or nothing: as they come."""


class Style(NamedTuple):
    """How one series looks."""

    key: Any
    """Its level in the data."""
    name: str
    """Its name in the legend; no two are equal."""
    colour: str
    dash: tuple[int, ...]


def level_name(key: Any) -> str:
    """A level as a reader writes it: 4 and not 4.0."""
    return str(int(key)) if isinstance(key, float) and math.isfinite(key) and key == int(key) else str(key)


def levels(found: Iterable[Any], labels: Labels = None) -> dict[Any, str]:
    """The levels that occur, in their order, with names that no two share.

    Those in `labels` come first, in that order; then the rest: numbers by size, words as they come.
    """
    present = [key for key in dict.fromkeys(found) if key is not None and key == key]
    named = dict(labels) if isinstance(labels, Mapping) else {key: level_name(key) for key in labels or ()}
    rest = [key for key in present if key not in named]
    if all(isinstance(key, numbers.Real) and not isinstance(key, bool) for key in rest):
        rest = sorted(rest)
    order = [*(key for key in named if key in present), *rest]
    names = unique_labels([str(named.get(key, level_name(key))) for key in order])
    return dict(zip(order, names, strict=True))


def series_styles(
    found: Iterable[Any], labels: Labels = None, controls: Collection[Any] = (), ordered: bool = False
) -> tuple[Style, ...]:
    """A style for each level that occurs.

    A level that `labels` names keeps its colour when others are absent: two figures of one study agree.
    Controls are dashed and have colours of their own. `ordered` levels run from gold to indigo.
    """
    present = levels(found, labels)
    named = list(labels or ())
    every = [*named, *(key for key in present if key not in named)]
    plain = [key for key in every if key not in controls]
    shaded = size_colours(len(plain)) if ordered else []
    made = {}
    for place, key in enumerate(plain):
        around, at = divmod(place, len(COLOURS))
        dash = SOLID if ordered else DASHES[around % len(DASHES)]
        made[key] = (shaded[place] if ordered else COLOURS[at], dash)
    for place, key in enumerate(key for key in every if key in controls):
        colour = CONTROL_COLOURS[place % len(CONTROL_COLOURS)]
        made[key] = (colour, CONTROL_DASHES[place % len(CONTROL_DASHES)])
    return tuple(Style(key, name, *made[key]) for key, name in present.items())


def named_as(column: Iterable[Any], names: Mapping[Any, str]) -> np.ndarray:
    """A column of levels as their names; a missing level has none."""
    return np.array([names.get(key) if key == key else None for key in column], dtype=object)


def colour_by(styles: Sequence[Style], legend: alt.Legend | None = None) -> alt.Color:
    """Colour by the column `series`, with the legend given or none."""
    scale = alt.Scale(domain=[style.name for style in styles], range=[style.colour for style in styles])
    return alt.Color("series:N", scale=scale, sort=None, legend=legend)


def dash_by(styles: Sequence[Style], legend: alt.Legend | None = None) -> alt.StrokeDash:
    """Dashes by the column `series`."""
    dashes = [list(style.dash) for style in styles]
    scale = alt.Scale(domain=[style.name for style in styles], range=dashes)
    return alt.StrokeDash("series:N", scale=scale, sort=None, legend=legend)


def shape_by(styles: Sequence[Style], legend: alt.Legend | None = None) -> alt.Shape:
    """Shapes of points by the column `series`; with colours of the same legend they become one."""
    names = [style.name for style in styles]
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(names))]
    return alt.Shape("series:N", scale=alt.Scale(domain=names, range=shapes), sort=None, legend=legend)


def legend_above(
    styles: Sequence[Style],
    title: str | None = None,
    symbol: str | None = "stroke",
    size: int = 110,
    offset: int = 14,
) -> alt.Legend:
    """A legend above the plot, in as many columns as its names leave room for. No symbol: the shapes."""
    widths = [6.6 * min(len(style.name), 50) + 62 for style in styles]
    # One line if all names fit into it, else a grid whose columns are as wide as the longest.
    columns = len(styles) if sum(widths) <= WIDTH else max(1, int(WIDTH / max(widths)))
    settings: dict[str, Any] = {"symbolSize": 420 if symbol == "stroke" else size}
    settings |= {"symbolType": symbol} if symbol else {}
    return alt.Legend(
        title=title,
        orient="top",
        columns=columns,
        columnPadding=22,
        offset=offset,
        titleOrient="left",
        titlePadding=14,
        **settings,
    )
