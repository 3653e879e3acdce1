"""What the grid worlds share: cells and moves, the observations of a model, and the picture of an episode."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from recombine.families.base import Batch, Episode, Task, Teacher, Thing
from recombine.families.classification import ClassificationFamily
from recombine.spaces.base import Space

MOVES = ("up", "right", "down", "left")
"""The moves in the order of their actions. Of several best moves the first is the label."""


def shifts(size: int) -> tuple[int, ...]:
    """What each move adds to the number of a cell. Cells are numbered row by row."""
    return (-size, 1, size, -1)


def neighbours(free: Bool[np.ndarray, "size size"]) -> Int[np.ndarray, "cell move"]:
    """The cell to which each move leads; the same cell where a wall or the edge blocks the move."""
    size = len(free)
    inside = np.pad(free, 1)
    table = np.repeat(np.arange(size * size)[:, None], len(MOVES), axis=1)
    for move, (down, right) in enumerate(((-1, 0), (0, 1), (1, 0), (0, -1))):
        open_ = inside[1 + down : 1 + down + size, 1 + right : 1 + right + size].ravel()
        table[:, move] += np.where(open_, shifts(size)[move], 0)
    return table


def distances(free: Bool[np.ndarray, "size size"]) -> Int[np.ndarray, "cell cell"]:
    """The number of moves from each cell (second axis) to each cell (first axis); the number of cells where there is no path."""
    cells = free.size
    table = np.where(np.eye(cells, dtype=bool) & free.ravel(), 0, cells)
    beside = neighbours(free)
    while True:
        nearer = np.minimum(table, np.where(free.ravel(), 1 + table[:, beside].min(axis=2), cells))
        if np.array_equal(nearer, table):
            return table
        table = nearer


class Play(eqx.Module):
    """One episode, step by step, with the teacher's actions."""

    walls: Bool[Array, " cell"]
    cells: Int[Array, " thing"]
    """The cells of the objects."""
    types: Int[Array, " thing"]
    present: Bool[Array, "step thing"]
    """Which objects are present at the beginning of each step."""
    agent: Int[Array, " step"]
    """The cell of the agent at the beginning of each step."""
    actions: Int[Array, " step"]
    """The teacher's action in each step: the labels."""
    going: Bool[Array, " step"]
    """Whether the episode continues at the beginning of each step. The action that ends it still counts."""


def observe(play: Play, types: int) -> Float[Array, "step feature"]:
    """The observation in each step: one-hot planes of walls, agent and each type of object, RMS-normalised.

    The planes are the innermost axis.
    """
    steps, cells = len(play.agent), len(play.walls)
    step = jnp.arange(steps)
    planes = jnp.zeros((steps, cells, types + 2)).at[:, :, 0].set(play.walls)
    planes = planes.at[step, play.agent, 1].set(1.0)
    planes = planes.at[step[:, None], play.cells, play.types + 2].set(play.present)
    ones = 1 + jnp.sum(play.walls) + jnp.sum(play.present, axis=1)
    return planes.reshape(steps, -1) * jnp.sqrt(cells * (types + 2) / ones)[:, None]


class GridTeacher(Teacher):
    """Batches of whole episodes; the last one is cut at the number of samples."""

    space: Space = eqx.field(static=True)
    shape: ClassificationFamily = eqx.field(static=True)
    """The configuration that it was drawn from."""

    @abc.abstractmethod
    def play(self, task: Task, key: Array) -> Play:
        """A fresh episode of a task, solved."""

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        def episode(episode_key: Array) -> tuple[Array, Array, Array]:
            play = self.play(task, episode_key)
            wanted = jax.nn.one_hot(play.actions, self.shape.output_size)
            # All planes but those of walls and agent are types of objects.
            types = self.shape.input_size // len(play.walls) - 2
            return observe(play, types), wanted, play.going.astype(jnp.float32)

        keys = jax.random.split(key, math.ceil(samples / self.shape.horizon))
        inputs, targets, mask = (values.reshape(-1, *values.shape[2:])[:samples] for values in jax.vmap(episode)(keys))
        return Batch(inputs, targets, mask)


@eqx.filter_jit
def played(teacher: GridTeacher, task: Task, key: Array) -> Play:
    """One episode, compiled: without compilation it would take seconds."""
    return teacher.play(task, key)


def picture(
    play: Play,
    title: str,
    actions: Sequence[str],
    names: Sequence[str],
    values: Sequence[float] | None = None,
    wanted: int | None = None,
) -> Episode:
    """An episode as plain values; with names and values (rewards) of the objects, and the number of the wanted one."""
    size = math.isqrt(len(play.walls))
    walls = np.asarray(play.walls).reshape(size, size)
    positions = [divmod(int(cell), size) for cell in np.asarray(play.cells)]
    things = tuple(
        Thing(row, column, names[index], None if values is None else float(values[index]), index == wanted)
        for index, (row, column) in enumerate(positions)
    )
    taken = [actions[int(action)] for action in np.asarray(play.actions)[np.asarray(play.going)]]
    path = [int(play.agent[0])]
    for action in taken:
        if action in MOVES:  # The teacher never walks into a wall.
            path.append(path[-1] + shifts(size)[MOVES.index(action)])
    return Episode(
        walls=tuple(tuple(bool(wall) for wall in row) for row in walls),
        things=things,
        path=tuple(divmod(cell, size) for cell in path),
        actions=tuple(taken),
        title=title,
    )
