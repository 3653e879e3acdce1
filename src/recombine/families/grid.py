"""What the grid worlds share: cells and moves, what a model sees of an episode, and its picture."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from recombine.families.base import Batch, Task, Teacher
from recombine.families.episode import Episode, Thing

MOVES = ("up", "right", "down", "left")
"""The moves in the order of their actions: where several are best, the first is the label."""


def shifts(size: int) -> tuple[int, ...]:
    """What each move adds to the number of a cell; cells are numbered row by row."""
    return (-size, 1, size, -1)


def neighbours(free: Bool[np.ndarray, "size size"]) -> Int[np.ndarray, "cell move"]:
    """The cell to which each move leads: the same cell where a wall or the edge blocks it."""
    size = len(free)
    inside = np.pad(free, 1)
    table = np.repeat(np.arange(size * size)[:, None], len(MOVES), axis=1)
    for move, (down, right) in enumerate(((-1, 0), (0, 1), (1, 0), (0, -1))):
        open_ = inside[1 + down : 1 + down + size, 1 + right : 1 + right + size].ravel()
        table[:, move] += np.where(open_, shifts(size)[move], 0)
    return table


def distances(free: Bool[np.ndarray, "size size"]) -> Int[np.ndarray, "cell cell"]:
    """The moves from each cell (second) to each cell (first); the number of cells where there is no way."""
    cells = free.size
    table = np.where(np.eye(cells, dtype=bool) & free.ravel(), 0, cells)
    beside = neighbours(free)
    while True:
        nearer = np.minimum(table, np.where(free.ravel(), 1 + table[:, beside].min(axis=2), cells))
        if np.array_equal(nearer, table):
            return table
        table = nearer


class Play(eqx.Module):
    """One episode, step by step, along the teacher's way."""

    walls: Bool[Array, " cell"]
    cells: Int[Array, " thing"]
    """Where the objects stand."""
    types: Int[Array, " thing"]
    present: Bool[Array, "step thing"]
    """Which objects are still there when a step begins."""
    agent: Int[Array, " step"]
    """Where the agent is when a step begins."""
    actions: Int[Array, " step"]
    """What the teacher does in each step: the labels."""
    going: Bool[Array, " step"]
    """Whether the episode is not over when a step begins: the action that ends it still counts."""


def observe(play: Play, types: int) -> Float[Array, "step feature"]:
    """What a model sees in each step: planes of walls, agent and each type of object, RMS-normalised.

    The planes are innermost: cell by cell, a one at what is there.
    """
    steps, cells = len(play.agent), len(play.walls)
    step = jnp.arange(steps)
    planes = jnp.zeros((steps, cells, types + 2)).at[:, :, 0].set(play.walls)
    planes = planes.at[step, play.agent, 1].set(1.0)
    planes = planes.at[step[:, None], play.cells, play.types + 2].set(play.present)
    ones = 1 + jnp.sum(play.walls) + jnp.sum(play.present, axis=1)
    return planes.reshape(steps, -1) * jnp.sqrt(cells * (types + 2) / ones)[:, None]


def pick(chances: Float[Array, " cell"], allowed: Bool[Array, " cell"]) -> Int[Array, ""]:
    """One of the allowed cells: with independent uniform chances, uniformly."""
    return jnp.argmax(jnp.where(allowed, chances, -1.0))


class GridTeacher(Teacher):
    """Batches of whole episodes: the last one is cut where the number of samples asks for it."""

    @property
    @abc.abstractmethod
    def horizon(self) -> int:
        """The most steps of an episode."""

    @property
    @abc.abstractmethod
    def types(self) -> int:
        """How many types of objects there are."""

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """How many actions there are."""

    @abc.abstractmethod
    def play(self, task: Task, key: Array) -> Play:
        """A fresh episode of a task, solved."""

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        def one(episode_key: Array) -> tuple[Array, Array, Array]:
            play = self.play(task, episode_key)
            wanted = jax.nn.one_hot(play.actions, self.outputs)
            return observe(play, self.types), wanted, play.going.astype(jnp.float32)

        keys = jax.random.split(key, math.ceil(samples / self.horizon))
        inputs, targets, mask = (
            values.reshape(-1, *values.shape[2:])[:samples] for values in jax.vmap(one)(keys)
        )
        return Batch(inputs, targets, mask)


@eqx.filter_jit
def played(teacher: GridTeacher, task: Task, key: Array) -> Play:
    """One episode, compiled: operation by operation it would take seconds."""
    return teacher.play(task, key)


def picture(
    play: Play,
    title: str,
    actions: Sequence[str],
    names: Sequence[str],
    values: Sequence[float] | None = None,
    wanted: int | None = None,
) -> Episode:
    """An episode in plain values. `names` and `values` are those of its objects."""
    size = math.isqrt(len(play.walls))
    walls = np.asarray(play.walls).reshape(size, size)
    places = [divmod(int(cell), size) for cell in np.asarray(play.cells)]
    things = tuple(
        Thing(
            row=row,
            column=column,
            name=names[index],
            value=None if values is None else float(values[index]),
            wanted=index == wanted,
        )
        for index, (row, column) in enumerate(places)
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
