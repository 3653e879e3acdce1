"""Sudoku: one solution each, by another search; symmetries; and held-out solutions that are new up to symmetry."""

from __future__ import annotations

import itertools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.families import Sudoku
from recombine.families.puzzles import sudoku_grids as grids
from recombine.families.puzzles.sudoku import SudokuTeacher, symmetric
from recombine.overrides import validate
from recombine.spaces import InstanceSpace
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SMALL, MIDDLE = (2, 2), (2, 3)


def valid(grid: np.ndarray, box: tuple[int, int]) -> bool:
    """Every row, column and box has every digit, found by slicing."""
    rows, columns = box
    size = rows * columns
    parts = [*grid, *grid.T]
    parts += [
        grid[r : r + rows, c : c + columns].ravel() for r in range(0, size, rows) for c in range(0, size, columns)
    ]
    return all(sorted(part.tolist()) == list(range(1, size + 1)) for part in parts)


def every_solution(puzzle: np.ndarray) -> int:
    """The number of solutions of a 4 x 4 puzzle, by trying all rows that are permutations."""
    rows = [
        [
            own
            for own in itertools.permutations(range(1, 5))
            if all(c in (0, d) for c, d in zip(clues, own, strict=True))
        ]
        for clues in puzzle.tolist()
    ]
    return sum(valid(np.array(grid), SMALL) for grid in itertools.product(*rows))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_solutions_are_counted_as_by_trying_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    solution = grids.random_solution(SMALL, rng)
    assert valid(solution, SMALL)
    puzzle = np.where(rng.random((4, 4)) < 0.45, solution, 0)
    assert len(grids.solutions(puzzle, SMALL, most=300)) == every_solution(puzzle)
    wrong = puzzle.copy()
    wrong[0, 0] = rng.integers(1, 5)
    assert len(grids.solutions(wrong, SMALL, most=300)) == every_solution(wrong)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10_000))
def test_puzzles_have_one_solution_and_few_clues(seed: int) -> None:
    rng = np.random.default_rng(seed)
    solution = grids.random_solution(MIDDLE, rng)
    puzzle = grids.make_puzzle(solution, MIDDLE, 12, rng)
    assert 12 <= (puzzle > 0).sum() <= 18 and ((puzzle == 0) | (puzzle == solution)).all()
    np.testing.assert_array_equal(grids.check_puzzle(puzzle, MIDDLE), solution)


def test_small_grids_are_two_up_to_symmetry() -> None:
    """Of the 288 grids of 4 x 4, two are different up to symmetry; their orbits have 96 and 192 grids (published counts)."""
    everything = grids.solutions(np.zeros((4, 4), int), SMALL, most=1000)
    assert len(everything) == 288 and all(valid(grid, SMALL) for grid in everything)
    assert sorted(Counter(grids.canonical(grid, SMALL) for grid in everything).values()) == [96, 192]


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10_000))
def test_symmetries_keep_grids_valid_and_their_name(seed: int) -> None:
    solution = grids.random_solution(MIDDLE, np.random.default_rng(seed))
    puzzle = np.where(np.random.default_rng(seed).random((6, 6)) < 0.4, solution, 0)
    pair = np.asarray(moved(jnp.asarray(np.stack([puzzle, solution])), jax.random.key(seed)))
    assert valid(pair[1], MIDDLE) and ((pair[0] == 0) | (pair[0] == pair[1])).all()
    assert (pair[0] > 0).sum() == (puzzle > 0).sum()
    assert grids.canonical(pair[1], MIDDLE) == grids.canonical(solution, MIDDLE)


@jax.jit
def moved(pair: jax.Array, key: jax.Array) -> jax.Array:
    return symmetric(pair, MIDDLE, key)


def test_held_out_solutions_are_new_up_to_symmetry() -> None:
    config = RunConfig.model_validate(
        {"family": "sudoku", "space": {"kind": "instances", "number": 80}, "validation_tasks": 4}
    )
    setting = Setting(config)
    teacher = setting.teacher
    assert isinstance(teacher, SudokuTeacher)
    trained = setting.support.rows[:, 0]  # type: ignore[attr-defined]
    # Eight puzzles in a row have one solution, which is named once.
    blocks = np.asarray(teacher.solutions).reshape(10, 8, 6, 6)
    assert (blocks == blocks[:, :1]).all()
    names = [grids.canonical(grid, MIDDLE) for grid in blocks[:, 0]]
    others = sorted(set(range(80)) - set(trained.tolist()))
    assert len(trained) == 56 and not {names[one // 8] for one in trained} & {names[one // 8] for one in others}
    for puzzle, solution in zip(teacher.puzzles[::9], teacher.solutions[::9], strict=True):
        np.testing.assert_array_equal(grids.check_puzzle(np.asarray(puzzle), MIDDLE), solution)
    batch = teacher.batch(teacher.task(jnp.array([3]), jax.random.key(0)), jax.random.key(1), 72)
    clue, answer = batch.inputs.argmax(-1).reshape(2, 6, 6), 1 + batch.targets.argmax(-1).reshape(2, 6, 6)
    assert ((clue == 0) | (clue == answer)).all() and all(valid(np.asarray(grid), MIDDLE) for grid in answer)
    assert (answer[0] != answer[1]).any(), "each grid has its own symmetry"


def test_bad_input(monkeypatch) -> None:
    monkeypatch.setattr(grids, "ATTEMPTS", 20)
    empty = np.zeros((6, 6), int)
    with pytest.raises(BadInput, match="several"):
        grids.check_puzzle(empty, MIDDLE)
    empty[0, :2] = 3
    with pytest.raises(BadInput, match="has none"):
        grids.check_puzzle(empty, MIDDLE)
    with pytest.raises(BadInput, match="6 rows of 6 numbers"):
        grids.check_puzzle(np.zeros((4, 4), int), MIDDLE)
    with pytest.raises(BadInput, match="only 2 grids up to symmetry"):
        grids.distinct_solutions(3, SMALL, np.random.default_rng(0))
    with pytest.raises(BadInput, match="in blocks of 8"):
        Sudoku().check(InstanceSpace(number=81))
    with pytest.raises(BadInput, match="two to four rows and columns"):
        validate(Sudoku, {"kind": "sudoku", "box": (1, 5)})
