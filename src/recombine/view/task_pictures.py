"""A picture of a run's task: a grid world with the teacher's path, images, a puzzle, or a graph of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np
import pandas as pd

from recombine.errors import BadInput
from recombine.families.puzzles.arc import Arc
from recombine.families.puzzles.mazes import Mazes
from recombine.families.puzzles.sudoku import Sudoku
from recombine.families.sequences.graphs import GraphFamily
from recombine.figures.base import Figure
from recombine.store.stored_run import StoredRun
from recombine.supports.regions import Region

if TYPE_CHECKING:
    from recombine.view.puzzle_grids import CellStyle

IMAGES = 8
"""Images of each region."""
SHOWN: dict[Region, str] = {"trained": "trained", "held_out": "held out"}
"""The regions of which examples are shown."""
ARC_COLOURS = (
    *("#1b1b1b", "#2a78b8", "#d8453b", "#3f9a5f", "#f0c93a", "#a9afb6"),
    *("#c74fa3", "#ef8b2c", "#8fd0ea", "#7c2d3e"),
)
"""The ten colours of ARC's puzzles, 0 first."""


def task_picture(run: StoredRun) -> Figure:
    """A picture of the tasks of a run; BadInput for families that have none.

    Args:
        run: The run. Its support and teacher are drawn again from its configuration.
    """
    from recombine.design.pictures import episodes

    family = run.config.family
    if isinstance(family, GraphFamily):
        return _graph(run, family)
    if family.targets == "images":
        return _images(run)
    if isinstance(family, (Sudoku, Mazes, Arc)):
        return _puzzles(run, family)
    found = episodes(run.config)
    if not found:
        raise BadInput(f"The family {family.kind!r} has no picture of a task.")
    return found[0]


def _images(run: StoredRun) -> Figure:
    """Images as the teacher renders them: of trained combinations, and of held-out ones."""
    from recombine.figures.image_grid import draw_image_grid, image_grid_info
    from recombine.probes.gallery import shades

    setting, space = run.setting, run.config.space
    rows = []
    for region, words in SHOWN.items():
        for place, row in enumerate(np.asarray(setting.regions.rows(region, IMAGES))[:IMAGES]):
            by_task, by_batch = jax.random.split(jax.random.key(place))
            batch = setting.teacher.batch(setting.teacher.task(row, by_task), by_batch, 1)
            image = {"image": shades(np.asarray(batch.targets)[0]), "kind": region, "right": None}
            rows.append({"row": words, "group": "", "place": place, "name": space.name(row)} | image)
    caption = "One rendered image of each combination: of some that are trained, and of some that are held out."
    info = image_grid_info(pd.DataFrame(rows), {str(region): words for region, words in SHOWN.items()}, caption)
    return Figure("task", "What a task looks like", info.caption, draw_image_grid(info))


def _graph(run: StoredRun, family: GraphFamily) -> Figure:
    """The computation of one held-out instance."""
    from recombine.figures.computation_graph import computation_graph_info, draw_computation_graph

    rows = np.asarray(run.setting.regions.rows("held_out", 1))
    if not len(rows):
        raise BadInput("No combination is held out.")
    lead = f"The computation of one held-out instance, {run.config.space.name(rows[0])}."
    info = computation_graph_info(family.graph(rows[0]), caption_lead=lead)
    return Figure("task", "What a task looks like", info.caption, draw_computation_graph(info))


def _puzzles(run: StoredRun, family: Sudoku | Mazes | Arc) -> Figure:
    """A puzzle and its solution, of the trained ones and of the held-out ones."""
    from recombine.view.puzzle_grids import PuzzleGrid, draw_puzzle_grids

    setting, side = run.setting, round(family.horizon**0.5)
    box = family.box if isinstance(family, Sudoku) else None
    grids = []
    for region, words in SHOWN.items():
        for row in jax.numpy.asarray(setting.regions.rows(region, 1)):
            by_task, by_batch = jax.random.split(jax.random.key(0))
            batch = setting.teacher.batch(setting.teacher.task(row, by_task), by_batch, family.horizon)
            puzzle, solution = (
                np.asarray(array).argmax(-1).reshape(side, side) for array in (batch.inputs, batch.targets)
            )
            if isinstance(family, Sudoku):
                solution = solution + 1  # Inputs have a number for an empty cell, targets do not.
            elif isinstance(family, Mazes):
                solution = np.where((puzzle == 0) & (solution == 1), PATH, puzzle)
            grids += [
                PuzzleGrid(f"{words.capitalize()}: the puzzle", puzzle, styles(family), box=box),
                PuzzleGrid(f"{words.capitalize()}: the solution", solution, styles(family), given=puzzle, box=box),
            ]
    caption = "A puzzle with its solution, one that is trained and one that is held out."
    return Figure("task", "What a task looks like", caption, draw_puzzle_grids(grids, caption))


PATH = 4
"""The number of a free cell on the shortest path, behind the four kinds of cells of a maze."""


def styles(family: Sudoku | Mazes | Arc) -> list[CellStyle]:
    """How each number of a puzzle's cells looks."""
    from recombine.view.puzzle_grids import BLANK, CellStyle

    if isinstance(family, Sudoku):
        return [CellStyle(BLANK, "", "empty")] + [
            CellStyle(BLANK, str(digit), str(digit)) for digit in range(1, family.box[0] * family.box[1] + 1)
        ]
    if isinstance(family, Mazes):
        return [
            CellStyle(BLANK, "", "free"),
            CellStyle("#4a5059", "", "wall"),
            CellStyle("#9ed3a8", "S", "start"),
            CellStyle("#f0c27a", "G", "goal"),
            CellStyle("#a9cdea", "", "shortest path"),
        ]
    return [CellStyle(colour, "", f"colour {number}") for number, colour in enumerate(ARC_COLOURS)] + [
        CellStyle("#eef0f2", "", "outside")
    ]
