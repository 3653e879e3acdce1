"""Mazes with one shortest path, split so that held-out mazes are new after every turn and reflection."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32
from pydantic import Field, PositiveInt, model_validator

from recombine.errors import BadInput
from recombine.families.base import Batch, Task, Teacher
from recombine.families.classification import ClassificationFamily
from recombine.families.puzzles import maze_grids
from recombine.families.puzzles.sudoku import CACHED
from recombine.spaces import InstanceSpace, Space


class MazeTeacher(Teacher):
    """The mazes of one replicate. An example is a maze after a random turn or reflection; its rows are the cells."""

    mazes: Int[Array, "instance cell"]
    paths: Int[Array, "instance cell"]

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, len(self.mazes))

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        cells = self.mazes.shape[-1]
        instance = task.combination[0]
        orders = jnp.asarray(maze_grids.orientations(round(cells**0.5)))
        chosen = orders[jax.random.randint(key, (-(-samples // cells),), 0, len(orders))].reshape(-1)[:samples]
        return Batch(
            inputs=jax.nn.one_hot(self.mazes[instance][chosen], 4),
            targets=jax.nn.one_hot(self.paths[instance][chosen], 2),
            mask=jnp.ones(samples),
        )


class Mazes(ClassificationFamily):
    """Mark the shortest path from start to goal. Every maze has one shortest path.

    An instance is a maze, and no two are the same after a turn or reflection. Each example is the maze after one of these
    at random. An example's rows are the cells of the grid; each is on the path or not.
    """

    kind: Literal["mazes"] = "mazes"
    defaults: ClassVar[Mapping[str, Any]] = {
        "objective": "deep-supervision",
        "space": {"kind": "instances", "number": 1280},
        "support": {"kind": "leading-instances", "share": 0.8, "block": 1, "reserve": 1},
        "encoding": "unsaid",
        "model": {"kind": "recursive", "cells": 36},
        "recipe": {"kind": "fast", "tasks": 64, "samples": 36},
    }
    size: int = Field(default=6, ge=3, le=30)
    """Rows and columns of the grid."""
    walls: float = Field(default=0.35, gt=0, lt=1)
    """The probability that a cell is a wall."""
    least: PositiveInt = 6
    """The least number of steps from start to goal."""

    @model_validator(mode="after")
    def _is_possible(self) -> Mazes:
        if self.least >= self.size**2 // 2:
            raise ValueError(f"least={self.least} is too long for a grid of {self.size} x {self.size} cells")
        return self

    def check(self, space: Space) -> None:
        if not isinstance(space, InstanceSpace):
            raise BadInput(f"The family 'mazes' needs a space of instances, got {space.title}.", fix="space=instances")

    @property
    def input_size(self) -> int:
        return 4

    @property
    def output_size(self) -> int:
        return 2

    @property
    def horizon(self) -> int:
        return self.size**2

    @property
    def validation_samples(self) -> int:  # type: ignore[override]
        """One grid."""
        return self.size**2

    def prepare(self, space: Space, key: Array) -> None:
        """Draw the mazes; `draw` takes them from the cache."""
        self._mazes(space.size, jax.random.bits(key, (4,), "uint32"))

    def draw(self, space: Space, key: Array) -> MazeTeacher:
        self.check(space)
        shape = jax.ShapeDtypeStruct((space.size, self.horizon), np.dtype("int32"))
        bits = jax.random.bits(key, (4,), "uint32")
        return MazeTeacher(*jax.pure_callback(functools.partial(self._mazes, space.size), (shape, shape), bits))

    def _mazes(
        self, number: int, bits: UInt32[Array | np.ndarray, " four"]
    ) -> tuple[Int[np.ndarray, "n cell"], Int[np.ndarray, "n cell"]]:
        seed = np.asarray(bits, np.uint32).tobytes()
        return drawn(self, number, seed)  # pyright: ignore[reportArgumentType]  # Frozen models can be hashed.


@functools.lru_cache(maxsize=CACHED)
def drawn(family: Mazes, number: int, seed: bytes) -> tuple[Int[np.ndarray, "n cell"], Int[np.ndarray, "n cell"]]:
    """The mazes of a replicate and their paths, cell by cell."""
    rng = np.random.default_rng(int.from_bytes(seed, "little"))
    grids, paths = maze_grids.distinct_mazes(number, family.size, family.walls, family.least, rng)
    return grids.reshape(number, -1).astype(np.int32), paths.reshape(number, -1).astype(np.int32)
