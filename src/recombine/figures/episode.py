"""One episode in a grid world: walls, objects with their rewards, and the agent's path."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.errors import BadInput
from recombine.figures.palette import COLOURS
from recombine.figures.theme import INK, message_chart, themed, tooltips, unique_labels, values
from recombine.figures.wording import NOTHING, signed

FLOOR, WALL = "#e9ecf0", "#59626d"
EARLY, LATE = (141, 179, 221), (18, 63, 120)
"""The path gets darker with time."""
STAR = "M0,-1L0.27,-0.36L0.95,-0.31L0.43,0.13L0.59,0.81L0,0.45L-0.59,0.81L-0.43,0.13L-0.95,-0.31L-0.27,-0.36Z"
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", STAR, "triangle-down")
GRID_WIDTH = 620
LARGEST, LEAST = 56.0, 22.0
"""Sides of a cell in pixels."""
ROOMY = 34
"""In cells of at least this size every step has a number. In smaller cells every fifth or tenth step has one."""
ASIDE = 0.16
"""Distance between two visits of one cell, in cells."""
MOST_LINES = 4


class EpisodeObject(NamedTuple):
    """An object in the grid."""

    row: int
    col: int
    name: str
    value: float | None = None
    """Its value, for example its reward."""


class EpisodeInfo(NamedTuple):
    """The content of the figure. `episode_info` makes and checks it, and says what the fields are."""

    walls: np.ndarray
    objects: tuple[EpisodeObject, ...]
    path: tuple[tuple[int, int], ...]
    actions: tuple[str, ...]
    title: str
    caption: str


def episode_info(
    walls: np.ndarray,
    objects: Sequence[EpisodeObject] = (),
    path: Sequence[tuple[int, int]] = (),
    actions: Sequence[str] = (),
    title: str = "",
    caption: str = "",
) -> EpisodeInfo:
    """A checked episode: everything lies within the grid, and every step has an action.

    Args:
        walls: Grid of height x width, true where there is a wall.
        objects: The objects in the grid.
        path: (row, column) of the agent at its start and after each action.
        actions: One word per step, or empty.
        title: The instruction, or the name of the episode.
        caption: How to read the figure. Default: a general caption.

    Returns:
        The input of `draw_episode`.
    """
    grid = np.asarray(walls, bool)
    if grid.ndim != 2:
        raise BadInput(
            f"The walls of an episode form a grid of height x width; these have the shape {grid.shape}.",
            fix="pass one grid, not a batch of them",
        )
    way = tuple((int(row), int(col)) for row, col in path)
    things = tuple(EpisodeObject(int(r), int(c), str(name), value) for r, c, name, value in objects)
    for what, row, col in [*(("the path", *at) for at in way), *((repr(o.name), o.row, o.col) for o in things)]:
        if not (0 <= row < grid.shape[0] and 0 <= col < grid.shape[1]):
            raise BadInput(
                f"A cell of {what}, row {row} and column {col}, lies outside the grid of "
                f"{grid.shape[0]} rows and {grid.shape[1]} columns.",
                fix="give (row, column), both counted from 0",
            )
    if actions and len(actions) != len(way) - 1:
        raise BadInput(
            f"A path of {len(way)} cells has {max(len(way) - 1, 0)} steps, but there are {len(actions)} actions.",
            fix="give the start and the cell after each action as the path",
        )
    return EpisodeInfo(grid, things, way, tuple(map(str, actions)), title, caption or CAPTION)


CAPTION = (
    "One episode from above. Dark squares are walls. The line is the agent's path from start to end; it gets darker "
    "with time. Small numbers are the steps at which the agent was there. The legend lists the objects and their values."
)


def actions_in_words(actions: Sequence[str]) -> str:
    """`1\N{EN DASH}3 right, 4 up`: runs of equal actions are merged."""
    parts, step = [], 1
    for word, same in itertools.groupby(actions):
        count = len(list(same))
        numbers = str(step) if count == 1 else f"{step}{NOTHING}{step + count - 1}"
        parts.append(f"{numbers} {word}")
        step += count
    return ", ".join(parts)


def episode_kinds(info: EpisodeInfo) -> dict[tuple[str, float | None], str]:
    """The kinds of objects, by name and value, with their legend text: value, and when they were reached."""
    words = {}
    for name, value in dict.fromkeys((thing.name, thing.value) for thing in info.objects):
        cells = {(thing.row, thing.col) for thing in info.objects if (thing.name, thing.value) == (name, value)}
        first = [info.path.index(cell) for cell in cells if cell in info.path]
        worth = "" if value is None else f": {signed(value, 0 if float(value).is_integer() else 2)}"
        reached = f", reached at step {', '.join(map(str, sorted(first)))}" if first else ""
        words[name, value] = f"{name}{worth}{reached}"
    return dict(zip(words, unique_labels(list(words.values())), strict=True))


def episode_segments(info: EpisodeInfo) -> pd.DataFrame:
    """The path in segments: step, x, y, x2, y2, angle (degrees clockwise from up) and whether it is a jump.

    A second visit to a cell is drawn with a small offset, so that segments do not overlap. Steps without a move have no
    segment.
    """
    visits: dict[tuple[int, int], int] = {}
    places: list[tuple[float, float]] = []
    for at, cell in enumerate(info.path):
        if at == 0 or cell != info.path[at - 1]:
            visits[cell] = visits.get(cell, -1) + 1
        aside = min(0.32, ASIDE * ((visits[cell] + 1) // 2)) * (-1 if visits[cell] % 2 else 1)
        places.append((cell[1] + 0.5 + aside, cell[0] + 0.5 + aside))
    rows = []
    for step, (before, after) in enumerate(itertools.pairwise(info.path), start=1):
        if before != after:
            (x, y), (x2, y2) = places[step - 1], places[step]
            angle = math.degrees(math.atan2(x2 - x, y - y2)) % 360
            rows.append((step, x, y, x2, y2, angle, math.dist(before, after) > 1))
    return pd.DataFrame(rows, columns=["step", "x", "y", "x2", "y2", "angle", "jump"])


def episode_steps(info: EpisodeInfo) -> dict[tuple[int, int], list[int]]:
    """The steps after which the agent was in each cell; the start is step 0."""
    steps: dict[tuple[int, int], list[int]] = {}
    for step, cell in enumerate(info.path):
        steps.setdefault(cell, []).append(step)
    return steps


def draw_episode(info: EpisodeInfo) -> ChartType:
    """Draw the grid, the path and the objects. The actions are under the title."""
    height, width = info.walls.shape
    if not info.walls.size:
        return message_chart("No episode yet: the grid is empty.")
    cell = max(LEAST, min(LARGEST, GRID_WIDTH / max(height, width)))
    # Cells are counted from 0, and rows run downwards.
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, width], nice=False, zero=False), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False, zero=False), axis=None)
    layers = [*_tiles(info, x, y), *_path(info, x, y, cell), *_objects(info, x, y, cell), *_words(info, cell, x, y)]
    room = max(60, int((cell * width + 260) / 6.4))
    lines = textwrap.wrap(actions_in_words(info.actions), room)
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1][: room - 2]} \N{HORIZONTAL ELLIPSIS}"]
    heading = textwrap.wrap(info.title, int(room * 0.85))
    under: dict[str, Any] = {"subtitle": lines} if lines else {}
    title = alt.TitleParams(heading or "", subtitlePadding=6, **under)
    chart = alt.layer(*layers).properties(width=cell * width, height=cell * height, title=title)
    description = f"An episode in a grid of {height} by {width}"
    return themed(chart, f"{description}: {info.title}" if info.title else description)


def _tiles(info: EpisodeInfo, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    edge = 0.025
    layers = []
    # Fixed colours without a scale: the only colour scale belongs to the objects, and its legend also shows shapes.
    for wall, colour in ((False, FLOOR), (True, WALL)):
        row, col = np.nonzero(info.walls == wall)
        tiles = pd.DataFrame({"x": col + edge, "y": row + edge, "x2": col + 1 - edge, "y2": row + 1 - edge})
        mark = alt.Chart(values(tiles)).mark_rect(cornerRadius=2, color=colour)
        layers.append(mark.encode(x=x, y=y, x2="x2:Q", y2="y2:Q"))
    return layers


def _path(info: EpisodeInfo, x: alt.X, y: alt.Y, cell: float) -> list[alt.Chart]:
    pieces = episode_segments(info)
    if not len(pieces):
        return []
    pieces = pieces.assign(ink=[_at_time(step / (len(info.path) - 1)) for step in pieces["step"]])
    heads = pieces.assign(**{at: pieces[at] + 0.55 * (pieces[f"{at}2"] - pieces[at]) for at in ("x", "y")})
    layers = []
    step: dict[str, Any] = {"strokeWidth": max(2.5, cell * 0.07)}
    for jump, look in ((False, step), (True, {"strokeDash": [4, 4], "strokeWidth": 2})):
        line = alt.Chart(values(pieces[pieces["jump"] == jump])).mark_rule(strokeCap="round", **look)
        layers.append(line.encode(x=x, y=y, x2="x2:Q", y2="y2:Q", stroke=alt.Stroke("ink:N", scale=None)))
    arrow = alt.Chart(values(heads)).mark_point(shape="triangle", filled=True, opacity=1, size=(cell * 0.26) ** 2)
    layers.append(arrow.encode(x=x, y=y, fill=alt.Fill("ink:N", scale=None), angle=alt.Angle("angle:Q", scale=None)))
    return layers


def _at_time(part: float) -> str:
    """The colour of the path at this fraction of its length."""
    channels = [round(early + part * (late - early)) for early, late in zip(EARLY, LATE, strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def _objects(info: EpisodeInfo, x: alt.X, y: alt.Y, cell: float) -> list[alt.Chart]:
    kinds = episode_kinds(info)
    if not kinds:
        return []
    names = list(kinds.values())
    legend = alt.Legend(title="objects", orient="right", symbolSize=190, symbolStrokeWidth=1.5, offset=26, rowPadding=9)
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(names))]
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(names))]
    rows = [(col + 0.5, row + 0.5, kinds[name, value], name, value) for row, col, name, value in info.objects]
    frame = pd.DataFrame(rows, columns=["x", "y", "kind", "name", "value"])
    mark = alt.Chart(values(frame)).mark_point(filled=True, opacity=1, size=(cell * 0.4) ** 2, stroke="white")
    return [
        mark.encode(
            x=x,
            y=y,
            color=alt.Color("kind:N", scale=alt.Scale(domain=names, range=colours), sort=None, legend=legend),
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=names, range=shapes), sort=None, legend=legend),
            tooltip=tooltips({"name:N": "object", "value:Q": "value"}),
        )
    ]


def _words(info: EpisodeInfo, cell: float, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Step numbers in the corners, and the start and the end of the path."""
    if not info.path:
        return []
    size = max(9.0, min(12.0, cell * 0.21))
    every = 1 if cell >= ROOMY else 5 if len(info.path) <= 60 else 10
    rows = []
    for (row, col), steps in episode_steps(info).items():
        shown = [str(step) for step in steps if step and step % every == 0]
        fits = max(1, int((cell - 4) / (size * 0.56 * (max(map(len, shown), default=1) + 1.2))))
        more = "\N{HORIZONTAL ELLIPSIS}" if len(shown) > fits else ""
        rows.append((col + 0.07, row + 0.06, ", ".join(shown[:fits]) + more))
    numbers = alt.Chart(values(pd.DataFrame(rows, columns=["x", "y", "text"])))
    layers = _haloed(numbers.encode(x=x, y=y, text="text:N"), align="left", baseline="top", fontSize=size)
    start, end = info.path[0], info.path[-1]
    ends = {"start and end": start} if start == end else {"start": start, "end": end}
    places = [(col + 0.5, row + 0.5, row + 0.95, word) for word, (row, col) in ends.items()]
    marks = pd.DataFrame(places, columns=["x", "y", "foot", "text"])
    both = alt.Chart(values(marks))
    ring = {"filled": False, "opacity": 1, "color": INK, "strokeWidth": max(1.5, cell * 0.04)}
    layers.append(both.mark_point(size=(cell * 0.5) ** 2, **ring).encode(x=x, y=y))
    first = alt.Chart(values(marks[marks["text"] != "end"]))
    layers.append(first.mark_point(filled=True, opacity=1, color=INK, size=(cell * 0.18) ** 2).encode(x=x, y=y))
    words = alt.Chart(values(marks.assign(y=marks["foot"]))).encode(x=x, y=y, text="text:N")
    return [*layers, *_haloed(words, baseline="bottom", fontSize=size, fontWeight=600)]


def _haloed(text: alt.Chart, **look: Any) -> list[alt.Chart]:
    """Text with an outline in the colour of the floor, so that it is readable on the path."""
    rim = {"stroke": FLOOR, "strokeWidth": 3, "strokeJoin": "round", "strokeOpacity": 0.9, "color": FLOOR}
    return [text.mark_text(**rim, **look), text.mark_text(color=INK, **look)]
