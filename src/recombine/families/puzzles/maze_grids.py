"""Mazes on a grid: shortest paths, how many there are, and mazes that have exactly one.

A grid is an array of size x size numbers: `FREE`, `WALL`, `START` and `GOAL`. A path goes from cell to neighbouring cell.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from jaxtyping import Bool, Int

from recombine.errors import BadInput

FREE, WALL, START, GOAL = range(4)
Grid = Int[np.ndarray, "row column"]
Path = Bool[np.ndarray, "row column"]
ATTEMPTS = 1000
"""Random mazes that are drawn for each one that must differ from all others."""


def distances(grid: Grid, start: tuple[int, int]) -> tuple[Grid, Grid]:
    """The length of a shortest path from the start to each cell (-1 where there is none), and how many such paths there are.

    Counts beyond two stay at two: only "none", "one" and "several" matter.
    """
    length, count = np.full(grid.shape, -1), np.zeros(grid.shape, int)
    length[start], count[start] = 0, 1
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        for other in _neighbours(cell, grid.shape):
            if grid[other] == WALL:
                continue
            if length[other] < 0:
                length[other] = length[cell] + 1
                queue.append(other)
            if length[other] == length[cell] + 1:
                count[other] = min(2, count[other] + count[cell])
    return length, count


def _neighbours(cell: tuple[int, int], shape: tuple[int, ...]) -> list[tuple[int, int]]:
    row, column = cell
    around = (row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)
    return [(r, c) for r, c in around if 0 <= r < shape[0] and 0 <= c < shape[1]]


def path_back(length: Grid, goal: tuple[int, int]) -> Path:
    """The cells of a shortest path, walked back from the goal."""
    path, cell = np.zeros(length.shape, bool), goal
    path[cell] = True
    while length[cell]:
        cell = next(each for each in _neighbours(cell, length.shape) if length[each] == length[cell] - 1)
        path[cell] = True
    return path


def check_maze(grid: Grid, size: int) -> Path:
    """The only shortest path of a maze. BadInput where the grid has another size, or none or several shortest paths.

    Args:
        grid: 0 for a free cell, 1 for a wall, 2 for the start and 3 for the goal.
        size: Rows and columns of the grid.
    """
    grid = np.asarray(grid)
    if grid.shape != (size, size) or grid.min() < FREE or grid.max() > GOAL:
        raise BadInput(
            f"A maze has {size} rows of {size} numbers from 0 to 3 (free, wall, start, goal), got "
            f"{' x '.join(map(str, grid.shape))} numbers from {grid.min()} to {grid.max()}.",
            fix="set size to the rows of the maze, or correct the grid",
        )
    ends = [np.argwhere(grid == end) for end in (START, GOAL)]
    if any(len(found) != 1 for found in ends):
        raise BadInput(
            f"A maze has one start and one goal; this one has {len(ends[0])} and {len(ends[1])}.",
            fix="write one 2 (start) and one 3 (goal)",
        )
    start, goal = ((int(found[0, 0]), int(found[0, 1])) for found in ends)
    length, count = distances(grid, start)
    if count[goal] != 1:
        raise BadInput(
            f"A maze must have one shortest path; this one has {'several' if count[goal] else 'none'}.",
            fix="add a wall on one of the paths" if count[goal] else "remove a wall between start and goal",
        )
    return path_back(length, goal)


def orientations(size: int) -> Int[np.ndarray, "eight cell"]:
    """The eight turns and reflections of a grid, as orders of its cells (row by row)."""
    cells = np.arange(size**2).reshape(size, size)
    return np.stack([np.rot90(each, turns).ravel() for each in (cells, cells.T) for turns in range(4)])


def distinct_mazes(
    number: int, size: int, walls: float, least: int, rng: np.random.Generator
) -> tuple[Int[np.ndarray, "n row column"], Bool[np.ndarray, "n row column"]]:
    """Random mazes with one shortest path each, no two of which are the same after a turn or reflection, and these paths.

    Args:
        number: How many.
        size: Rows and columns.
        walls: The probability that a cell is a wall.
        least: The least number of steps from start to goal.
        rng: Draws walls, start and goal.
    """
    orders, found = orientations(size), dict[bytes, tuple[Grid, Path]]()
    for _ in range(number * ATTEMPTS):
        grid = np.where(rng.random((size, size)) < walls, WALL, FREE)
        free = np.argwhere(grid == FREE)
        if not len(free):
            continue
        row, column = map(int, free[rng.integers(len(free))])
        length, count = distances(grid, (row, column))
        goals = np.argwhere((count == 1) & (length >= least))
        if not len(goals):
            continue
        down, right = map(int, goals[rng.integers(len(goals))])
        goal = down, right
        grid[row, column], grid[goal] = START, GOAL
        name = min(own.tobytes() for own in grid.ravel()[orders].astype(np.uint8))
        found.setdefault(name, (grid, path_back(length, goal)))
        if len(found) == number:
            grids, paths = zip(*found.values(), strict=True)
            return np.stack(grids), np.stack(paths)
    raise BadInput(
        f"{number * ATTEMPTS} random mazes of {size} x {size} cells have only {len(found)} with one shortest path of at least "
        f"{least} steps, not {number}.",
        fix="ask for fewer instances, or lower family.least",
    )
