"""Sudoku grids of any box size: solving, counting solutions, making puzzles, and which grids are the same up to symmetry.

A grid is an array of size x size numbers, 0 for an empty cell. A box of R x C cells belongs to grids of size R C. The symmetries
keep every box a box: rows change places within a band of R rows, bands change places, columns likewise, digits are renamed, and
rows and columns change places where boxes are square.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput

Box = tuple[int, int]
"""Rows and columns of a box."""
Grid = Int[np.ndarray, "row column"]

MOST_SYMMETRIES = 100_000
"""With more arrangements of rows and columns than this, grids are not compared: two random ones are practically never alike."""
ATTEMPTS = 1000
"""Random grids that are drawn for each one that must differ from all others."""


@functools.cache
def units(box: Box) -> tuple[tuple[int, ...], ...]:
    """The cells (row by row) of each row, column and box: each unit holds every digit once."""
    rows, columns = box
    size = rows * columns
    cells = np.arange(size**2).reshape(size, size)
    boxes = cells.reshape(columns, rows, rows, columns).swapaxes(1, 2).reshape(size, size)
    return tuple(tuple(map(int, unit)) for unit in (*cells, *cells.T, *boxes))


@functools.cache
def peers(box: Box) -> tuple[tuple[int, ...], ...]:
    """For each cell the other cells that must hold other digits."""
    size = box[0] * box[1]
    found: list[set[int]] = [set() for _ in range(size**2)]
    for unit in units(box):
        for cell in unit:
            found[cell] |= set(unit) - {cell}
    return tuple(tuple(sorted(cells)) for cells in found)


def solutions(grid: Grid, box: Box, most: int = 2, rng: np.random.Generator | None = None) -> list[Grid]:
    """The solutions of a puzzle.

    Args:
        grid: The puzzle.
        box: Rows and columns of a box.
        most: The search ends after this many.
        rng: Tries digits in random order; None for ascending order.
    """
    size = box[0] * box[1]
    neighbours, everything = peers(box), (1 << size) - 1
    digits, allowed = [0] * size**2, [everything] * size**2
    found: list[Grid] = []

    def place(cell: int, digit: int) -> list[int] | None:
        """Write a digit; the cells that lose it as a candidate, or None where one of them has no candidate left."""
        bit, changed = 1 << (digit - 1), []
        digits[cell] = digit
        for other in neighbours[cell]:
            if digits[other] == 0 and allowed[other] & bit:
                allowed[other] &= ~bit
                changed.append(other)
                if not allowed[other]:
                    undo(cell, digit, changed)
                    return None
        return changed

    def undo(cell: int, digit: int, changed: list[int]) -> None:
        digits[cell] = 0
        for other in changed:
            allowed[other] |= 1 << (digit - 1)

    def search() -> None:
        empty = [cell for cell, digit in enumerate(digits) if not digit]
        if not empty:
            found.append(np.array(digits, np.int32).reshape(size, size))
            return
        cell = min(empty, key=lambda own: allowed[own].bit_count())
        candidates = [digit for digit in range(1, size + 1) if allowed[cell] >> (digit - 1) & 1]
        for digit in candidates if rng is None else rng.permutation(candidates).tolist():
            changed = place(cell, digit)
            if changed is not None:
                search()
                undo(cell, digit, changed)
            if len(found) >= most:
                return

    for cell, digit in enumerate(np.asarray(grid).ravel().tolist()):
        if digit and (not allowed[cell] >> (digit - 1) & 1 or place(cell, digit) is None):
            return []
    search()
    return found


def check_puzzle(grid: Grid, box: Box) -> Grid:
    """The only solution of a puzzle. BadInput where the grid has another size, or none or several solutions."""
    size, grid = box[0] * box[1], np.asarray(grid)
    if grid.shape != (size, size) or grid.min() < 0 or grid.max() > size:
        raise BadInput(
            f"A puzzle with boxes of {box[0]} x {box[1]} has {size} rows of {size} numbers from 0 (empty) to {size}, got "
            f"{' x '.join(map(str, grid.shape))} numbers from {grid.min()} to {grid.max()}.",
            fix="set box to the rows and columns of a box, or correct the grid",
        )
    found = solutions(grid, box)
    if len(found) != 1:
        raise BadInput(
            f"A puzzle must have one solution; this one has {'none' if not found else 'several'}.",
            fix="add clues" if found else "correct the clues that contradict each other",
        )
    return found[0]


def random_solution(box: Box, rng: np.random.Generator) -> Grid:
    """A random full grid."""
    size = box[0] * box[1]
    return solutions(np.zeros((size, size), np.int32), box, 1, rng)[0]


def make_puzzle(solution: Grid, box: Box, clues: int, rng: np.random.Generator) -> Grid:
    """A puzzle with this solution only: clues are removed in random order while it stays the only one, down to `clues`."""
    puzzle = solution.copy().ravel()
    left = len(puzzle)
    for cell in rng.permutation(len(puzzle)):
        if left <= clues:
            break
        digit, puzzle[cell] = puzzle[cell], 0
        if len(solutions(puzzle.reshape(solution.shape), box)) == 1:
            left -= 1
        else:
            puzzle[cell] = digit
    return puzzle.reshape(solution.shape)


@functools.cache
def arrangements(lines: int, groups: int) -> Int[np.ndarray, "arrangement line"]:
    """All orders of the rows (or columns) of a grid: groups of `lines` neighbours change places, and lines within a group."""
    found = []
    for order in itertools.permutations(range(groups)):
        for within in itertools.product(itertools.permutations(range(lines)), repeat=groups):
            found.append(
                [lines * group + line for group, lines_of in zip(order, within, strict=True) for line in lines_of]
            )
    return np.array(found)


def canonical(solution: Grid, box: Box) -> bytes:
    """A name that two full grids share if and only if a symmetry takes one to the other."""
    rows, columns = arrangements(box[0], box[1]), arrangements(box[1], box[0])

    def smallest() -> Iterator[bytes]:
        # With square boxes, rows and columns may change places too.
        for grid in (solution, solution.T) if box[0] == box[1] else (solution,):
            by_rows = grid[rows]
            for order in columns:
                every = by_rows[:, :, order]
                # Digits are renamed so that the first row is 1, 2, 3, ...
                names = np.argsort(every[:, 0], axis=1) + 1
                renamed = np.take_along_axis(names[:, None], every - 1, axis=2).astype(np.uint8)
                yield min(own.tobytes() for own in renamed)

    return min(smallest())


def distinct_solutions(number: int, box: Box, rng: np.random.Generator) -> list[Grid]:
    """Full grids no two of which are the same up to symmetry. BadInput where there are too few."""
    symmetries = count_arrangements(*box) * count_arrangements(*box[::-1])
    compared = symmetries <= MOST_SYMMETRIES
    found: dict[bytes, Grid] = {}
    for _ in range(number * ATTEMPTS):
        grid = random_solution(box, rng)
        found.setdefault(canonical(grid, box) if compared else grid.tobytes(), grid)
        if len(found) == number:
            return list(found.values())
    raise BadInput(
        f"{number * ATTEMPTS} random grids with boxes of {box[0]} x {box[1]} are only {len(found)} grids up to symmetry, not "
        f"{number}.",
        fix=f"ask for at most {len(found)}: fewer instances, or more puzzles per grid",
    )


def count_arrangements(lines: int, groups: int) -> int:
    """The number of `arrangements`."""
    return math.factorial(groups) * math.factorial(lines) ** groups
