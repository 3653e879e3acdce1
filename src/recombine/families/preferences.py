"""A grid world in which the active constituents decide how much each type of object is worth."""

from __future__ import annotations

import abc
import functools
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Episode, Task
from recombine.families.classification import ClassificationFamily
from recombine.families.grid import MOVES, GridTeacher, Play, picture, played, shifts
from recombine.families.hyperteacher import Coefficients, draw_task
from recombine.spaces.base import Space

ROOMS = ("#######", "#..#..#", "#.....#", "##.#.##", "#..#..#", "#..#..#", "#######")
"""Four rooms of 2 x 2 cells and three doors, 19 free cells. The two lower rooms are connected through the upper ones only."""

SIZE = len(ROOMS)
FREE = np.array([[cell == "." for cell in line] for line in ROOMS])
PLACES = np.flatnonzero(FREE)
FIRST, LAST = int(PLACES[0]) - 1, int(PLACES[-1]) + 1
"""The range of cells that contains all free ones. A move from there stays on the grid."""

LIMIT = 8
"""Steps of an episode, and backups of the value iteration."""
DISCOUNT = 0.9
ACTIONS = ("nothing", *MOVES)


def arrivals(cells: Int[Array, " thing"], pays: Float[Array, " thing"]) -> Float[Array, "subset cell"]:
    """The value of arriving at a cell while a subset of the objects is present; bit i stands for object i.

    It is the reward of the object there, if any, plus the discounted value of the rest. Values come from `LIMIT` backups
    from zero. Arriving at a wall has value minus infinity, so that no move is ever blocked: staying costs a step and gains
    nothing, so it is best only where nothing has a positive value, and then the action "nothing" comes first.
    """
    objects, window = len(cells), np.arange(FIRST, LAST)
    here = [window == cells[thing] for thing in range(objects)]

    def arrive(later: Float[Array, "subset window"]) -> Float[Array, "subset cell"]:
        # One row per subset, each a choice between other rows: no gather is needed, and cells stay contiguous.
        rows = []
        for subset in range(2**objects):
            row = later[subset]
            for thing in range(objects):
                if subset >> thing & 1:
                    row = jnp.where(here[thing], pays[thing] + later[subset ^ (1 << thing)], row)
            rows.append(row)
        open_ = jnp.where(FREE.ravel()[FIRST:LAST], jnp.stack(rows), -jnp.inf)
        return jnp.pad(open_, ((0, 0), (FIRST, SIZE * SIZE - LAST)), constant_values=-jnp.inf)

    def backup(before: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        worth = arrive(before[0])
        moves = [worth[:, FIRST + shift : LAST + shift] for shift in shifts(SIZE)]
        return (DISCOUNT * jnp.maximum(functools.reduce(jnp.maximum, moves), 0.0), worth), None

    nothing = jnp.zeros((2**objects, LAST - FIRST)), jnp.zeros((2**objects, SIZE * SIZE))
    # One more round than backups, of which only `arrive` is used. So `arrive`, which is long, is compiled once.
    (_, worth), _ = jax.lax.scan(backup, nothing, None, length=LIMIT + 1)
    return worth


class Preferences(ClassificationFamily):
    """An object of type f pays the sum over active constituents of coefficient x preference for f. Labels are optimal."""

    kind: Literal["preferences"] = "preferences"
    features: PositiveInt = 16
    """Types of objects; at least as many as constituents, so that constituents can be distinguished."""
    objects: int = Field(default=4, ge=1, le=6)
    """Objects of an episode. Each doubles the work of solving it; with fewer, the task is learned sooner."""
    coefficients: Coefficients = "discrete"
    """discrete: one of .5, .6, ..., 1; k-hot: 1; continuous: uniform in [.5, 1]."""

    def check(self, space: Space) -> None:
        if space.width > self.features:
            raise BadInput(
                f"Preferences of {space.width} constituents need at least as many types of objects; there are {self.features}.",
                fix=f"family.features={space.width}",
            )

    @property
    def horizon(self) -> int:
        return LIMIT

    @property
    def input_size(self) -> int:
        return SIZE * SIZE * (self.features + 2)

    @property
    def output_size(self) -> int:
        return len(ACTIONS)

    def draw(self, space: Space, key: Array) -> PreferringTeacher:
        self.check(space)
        table = jax.random.normal(key, (space.width, self.features))
        return PreferencesTeacher(space=space, shape=self, table=table)


class PreferringTeacher(GridTeacher):
    """Tasks and episodes that preferences and their control share. They differ in the values of objects."""

    shape: Preferences = eqx.field(static=True)

    @abc.abstractmethod
    def worth(self, task: Task) -> Float[Array, " feature"]:
        """The reward of each type of object in a task."""

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return draw_task(self.shape.coefficients, self.space, row, key)

    def play(self, task: Task, key: Array) -> Play:
        by_cell, by_type = jax.random.split(key)
        order = jax.lax.top_k(jax.random.uniform(by_cell, (len(PLACES),)), self.shape.objects + 1)[1]
        start, *cells = jnp.asarray(PLACES)[order]
        types = jax.random.randint(by_type, (self.shape.objects,), 0, self.shape.features)
        return solve(start, jnp.stack(cells), types, self.worth(task)[types])

    def episode(self, task: Task, key: Array) -> Episode:
        play = played(self, task, key)
        constituents = self.space.constituents(np.asarray(task.combination))
        amounts = np.asarray(task.coefficients)
        title = " + ".join(
            f"{amount:.2g} x {self.space.label(constituent)}"
            for constituent, amount in zip(constituents, amounts, strict=False)
        )
        types = np.asarray(play.types)
        worth = np.asarray(self.worth(task))[types].tolist()
        return picture(play, title, ACTIONS, [f"type {kind}" for kind in types], worth)


def solve(
    start: Int[Array, ""], cells: Int[Array, " thing"], types: Int[Array, " thing"], pays: Float[Array, " thing"]
) -> Play:
    """The episode from a start. Each step takes the best action; of several, the first."""
    worth = arrivals(cells, pays)
    moves = jnp.asarray((0, *shifts(SIZE)))

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        cell, present = state
        subset = jnp.sum(present << jnp.arange(len(cells)))
        # The action "nothing" has value zero.
        action = jnp.argmax(worth[subset, cell + moves].at[0].set(0.0))
        after = cell + moves[action]
        return (after, present & (cells != after)), (cell, present, action)

    everything = jnp.ones(len(cells), bool)
    _, (agent, present, actions) = jax.lax.scan(step, (start, everything), None, length=LIMIT)
    return Play(
        walls=jnp.asarray(~FREE.ravel()),
        cells=cells,
        types=types,
        present=present,
        agent=agent,
        actions=actions,
        # The episode ends with the action "nothing".
        going=jnp.concatenate([jnp.ones(1, bool), actions[:-1] != 0]),
    )


class PreferencesTeacher(PreferringTeacher):
    """One table of preferences for all combinations."""

    table: Float[Array, "width feature"]

    def worth(self, task: Task) -> Float[Array, " feature"]:
        # A pad picks an arbitrary row, with coefficient zero.
        return task.coefficients @ self.table.at[task.combination].get(mode="clip")
