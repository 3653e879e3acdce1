"""Sudoku with one solution each, on grids of any box size, split so that held-out solutions are new up to symmetry."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32
from pydantic import PositiveInt, model_validator

from recombine.errors import BadInput
from recombine.families.base import Batch, Task, Teacher
from recombine.families.classification import ClassificationFamily
from recombine.families.puzzles import sudoku_grids
from recombine.spaces import InstanceSpace, Space

CACHED = 64
"""Sets of puzzles in the cache: the runs of a replicate share theirs."""


class SudokuTeacher(Teacher):
    """The puzzles of one replicate. An example is a puzzle after a random symmetry; its rows are the cells."""

    puzzles: Int[Array, "instance row column"]
    solutions: Int[Array, "instance row column"]
    box: tuple[int, int] = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, len(self.puzzles))

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        size = self.puzzles.shape[-1]
        instance = task.combination[0]
        pair = jnp.stack([self.puzzles[instance], self.solutions[instance]])
        keys = jax.random.split(key, -(-samples // size**2))
        grids = jax.vmap(lambda own: symmetric(pair, self.box, own))(keys).swapaxes(0, 1).reshape(2, -1)[:, :samples]
        return Batch(
            inputs=jax.nn.one_hot(grids[0], size + 1),
            targets=jax.nn.one_hot(grids[1] - 1, size),
            mask=jnp.ones(samples),
        )


def symmetric(grids: Int[Array, "grid row column"], box: tuple[int, int], key: Array) -> Int[Array, "grid row column"]:
    """Grids after one random symmetry: bands, rows within bands, the same of columns, and the names of digits."""
    rows, columns = box
    by_row, by_column, by_digit = jax.random.split(key, 3)

    def order(lines: int, groups: int, key: Array) -> Int[Array, " line"]:
        by_group, by_line = jax.random.split(key)
        within = random_orders(by_line, (groups, lines))
        return (lines * random_orders(by_group, (groups,))[:, None] + within).reshape(-1)

    names = jnp.concatenate([jnp.zeros(1, int), 1 + random_orders(by_digit, (rows * columns,))])
    moved = grids[:, order(rows, columns, by_row)][:, :, order(columns, rows, by_column)]
    return names[moved].astype(grids.dtype)


def random_orders(key: Array, shape: tuple[int, ...]) -> Int[Array, "*row place"]:
    """A random order of 0, 1, ... in each row: the ranks of random numbers. This compiles much faster than sorts."""
    drawn_numbers = jax.random.bits(key, shape, "uint32")
    this, other = drawn_numbers[..., :, None], drawn_numbers[..., None, :]
    earlier = jnp.tri(shape[-1], k=-1, dtype=bool)
    return jnp.sum((other < this) | ((other == this) & earlier), axis=-1)


class Sudoku(ClassificationFamily):
    """Fill in a grid so that every row, column and box has each digit once. Every puzzle has one solution.

    An instance is a puzzle. Consecutive instances, `per_solution` of them, have one solution with different clues, and solutions
    of different blocks are different up to symmetry. Each example is the puzzle after a random symmetry, so the support
    `leading-instances` with this block holds out whole orbits of solutions. An example's rows are the cells of the grid.
    """

    kind: Literal["sudoku"] = "sudoku"
    defaults: ClassVar[Mapping[str, Any]] = {
        "objective": "deep-supervision",
        "space": {"kind": "instances", "number": 320},
        "support": {"kind": "leading-instances", "share": 0.8, "block": 8, "reserve": 1},
        "encoding": "unsaid",
        "model": {"kind": "recursive", "cells": 36},
        "recipe": {"kind": "fast", "tasks": 64, "samples": 36},
    }
    box: tuple[PositiveInt, PositiveInt] = (2, 3)
    """Rows and columns of a box. Their product is the size of the grid and the number of digits."""
    clues: PositiveInt = 12
    """Clues are removed down to this number, as long as the solution stays the only one."""
    per_solution: PositiveInt = 8
    """Puzzles of each solution."""

    @model_validator(mode="after")
    def _is_a_grid(self) -> Sudoku:
        if min(self.box) < 2 or self.size > 16:
            raise ValueError(f"box={self.box} must have two to four rows and columns, such as (2, 2), (2, 3) or (3, 3)")
        return self

    @property
    def size(self) -> int:
        """Rows of the grid."""
        return self.box[0] * self.box[1]

    def check(self, space: Space) -> None:
        if not isinstance(space, InstanceSpace) or space.number % self.per_solution:
            raise BadInput(
                f"The family 'sudoku' needs a space of instances in blocks of {self.per_solution}, got {space.title}.",
                fix="space=instances and a space.number that is a multiple of family.per_solution",
            )

    @property
    def input_size(self) -> int:
        return self.size + 1

    @property
    def output_size(self) -> int:
        return self.size

    @property
    def horizon(self) -> int:
        return self.size**2

    @property
    def validation_samples(self) -> int:  # type: ignore[override]
        """One grid."""
        return self.size**2

    def prepare(self, space: Space, key: Array) -> None:
        """Draw the puzzles; `draw` takes them from the cache."""
        self._puzzles(space.size, jax.random.bits(key, (4,), "uint32"))

    def draw(self, space: Space, key: Array) -> SudokuTeacher:
        self.check(space)
        shape = jax.ShapeDtypeStruct((space.size, self.size, self.size), np.dtype("int32"))
        bits = jax.random.bits(key, (4,), "uint32")
        puzzles, solutions = jax.pure_callback(functools.partial(self._puzzles, space.size), (shape, shape), bits)
        return SudokuTeacher(puzzles, solutions, self.box)

    def _puzzles(
        self, number: int, bits: UInt32[Array | np.ndarray, " four"]
    ) -> tuple[Int[np.ndarray, "n row column"], Int[np.ndarray, "n row column"]]:
        seed = np.asarray(bits, np.uint32).tobytes()
        return drawn(self, number, seed)  # pyright: ignore[reportArgumentType]  # Frozen models can be hashed.


@functools.lru_cache(maxsize=CACHED)
def drawn(
    family: Sudoku, number: int, seed: bytes
) -> tuple[Int[np.ndarray, "n row column"], Int[np.ndarray, "n row column"]]:
    """The puzzles of a replicate and their solutions."""
    rng = np.random.default_rng(int.from_bytes(seed, "little"))
    solutions = sudoku_grids.distinct_solutions(number // family.per_solution, family.box, rng)
    every = [solution for solution in solutions for _ in range(family.per_solution)]
    puzzles = [sudoku_grids.make_puzzle(solution, family.box, family.clues, rng) for solution in every]
    return np.stack(puzzles).astype(np.int32), np.stack(every).astype(np.int32)
