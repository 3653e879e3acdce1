"""Pictures of puzzles and their solutions: coloured cells with words on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType
from jaxtyping import Int

from recombine.figures.theme import INK, themed, values

SIDE = 210
"""Rows and columns of a grid, in pixels."""
PANELS = 4
"""Grids side by side."""
BLANK = "#ffffff"
LINE = "#9aa2ab"


class CellStyle(NamedTuple):
    """How a cell with one number looks."""

    colour: str
    text: str = ""
    name: str = ""
    """What the cell is, for people who point at it."""


class PuzzleGrid(NamedTuple):
    """One grid of the picture."""

    title: str
    cells: Int[np.ndarray, "row column"]
    styles: Sequence[CellStyle]
    """By the numbers of the cells."""
    given: Int[np.ndarray, "row column"] | None = None
    """The puzzle that this grid solves: what was given is printed bold. None for the puzzle itself."""
    box: tuple[int, int] | None = None
    """Rows and columns of the boxes that thick lines surround."""


def draw_puzzle_grids(grids: Sequence[PuzzleGrid], caption: str) -> ChartType:
    """Grids in rows of four, each under its title.

    Args:
        grids: The grids, from left to right.
        caption: What the picture shows, for screen readers.
    """
    rows = [
        alt.hconcat(*(_panel(grid) for grid in grids[first : first + PANELS]), spacing=24)
        for first in range(0, len(grids), PANELS)
    ]
    return themed(alt.vconcat(*rows, spacing=20), caption)


def _panel(grid: PuzzleGrid) -> ChartType:
    rows, columns = grid.cells.shape
    frame = pd.DataFrame(
        [
            {
                **{"x": column, "y": row, "x2": column + 1, "y2": row + 1, "across": column + 0.5, "down": row + 0.5},
                **style._asdict(),
                "given": grid.given is None or bool(grid.given[row, column] == number),
            }
            for (row, column), number in np.ndenumerate(grid.cells)
            for style in [grid.styles[int(number)]]
        ]
    )
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, columns], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, rows], nice=False, reverse=True))
    base = alt.Chart(values(frame))
    cells = base.mark_rect(stroke=LINE, strokeWidth=1, opacity=1).encode(
        x=x,
        y=y,
        x2="x2:Q",
        y2="y2:Q",
        color=alt.Color("colour:N", scale=None),
        tooltip=alt.Tooltip("name:N", title=" "),
    )
    size = max(9, min(20, SIDE // (2 * rows)))
    words = [
        base.transform_filter(f"datum.given === {str(bold).lower()}")
        .mark_text(fontSize=size, fontWeight="bold" if bold else "normal", color=INK if bold else "#1c6aa5")
        .encode(x=alt.X("across:Q", axis=None), y=alt.Y("down:Q", axis=None), text="text:N")
        for bold in (True, False)
    ]
    layers = [cells, *words, *_boxes(rows, columns, grid.box or (rows, columns))]
    return alt.layer(*layers).properties(width=SIDE * columns // max(rows, columns), height=SIDE, title=grid.title)


def _boxes(rows: int, columns: int, box: tuple[int, int]) -> list[alt.Chart]:
    """Thick lines around the boxes."""
    lines = [{"x": 0, "x2": columns, "y": row, "y2": row} for row in range(0, rows + 1, box[0])]
    lines += [{"x": column, "x2": column, "y": 0, "y2": rows} for column in range(0, columns + 1, box[1])]
    chart = alt.Chart(values(pd.DataFrame(lines))).mark_rule(color=INK, strokeWidth=2)
    return [chart.encode(x=alt.X("x:Q", axis=None), x2="x2:Q", y=alt.Y("y:Q", axis=None), y2="y2:Q")]
