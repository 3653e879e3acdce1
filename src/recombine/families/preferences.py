"""A grid world whose objects are worth what the active parts say of their type."""

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
from recombine.families.base import Task
from recombine.families.classification import ClassificationFamily
from recombine.families.episode import Episode
from recombine.families.grid import MOVES, GridTeacher, Play, picture, played, shifts
from recombine.families.hyperteacher import Coefficients, draw_coefficients
from recombine.spaces.base import Space

ROOMS = (
    "#######",
    "#..#..#",
    "#.....#",
    "##.#.##",
    "#..#..#",
    "#..#..#",
    "#######",
)
"""Four rooms of 2 x 2 cells and three doors, 19 free cells: the two lower rooms meet through the upper ones only."""

SIZE = len(ROOMS)
FREE = np.array([[cell == "." for cell in line] for line in ROOMS])
PLACES = np.flatnonzero(FREE)
FIRST, LAST = int(PLACES[0]) - 1, int(PLACES[-1]) + 1
"""The cells between which all free ones are. A move from there stays on the grid."""

LIMIT = 8
"""Steps of an episode, and backups of the value iteration."""
DISCOUNT = 0.9
ACTIONS = ("nothing", *MOVES)


def arrivals(cells: Int[Array, " thing"], pays: Float[Array, " thing"]) -> Float[Array, "subset cell"]:
    """What it is worth to arrive at a cell while a subset of the objects is there; bit i stands for object i.

    It pays what the object is worth, if one is there, and then the discounted value of what remains. Values come from
    `LIMIT` backups that begin at zero. Arriving at a wall is worth minus infinity, which is to say that no move is
    blocked: staying costs a step and gains nothing, so it is best only where all is worth nothing, and then "nothing"
    comes first.
    """
    objects, window = len(cells), np.arange(FIRST, LAST)
    here = [window == cells[thing] for thing in range(objects)]

    def arrive(later: Float[Array, "subset window"]) -> Float[Array, "subset cell"]:
        # By rows of subsets, each a plain choice between other rows: no gather, and cells stay side by side.
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
    # One round more than backups: its first half is what is asked for. So `arrive`, which is long, is compiled once.
    (_, worth), _ = jax.lax.scan(backup, nothing, None, length=LIMIT + 1)
    return worth


class PreferenceShape(ClassificationFamily):
    """What preferences and their control share."""

    features: PositiveInt = 16
    """F, the types of objects; at least as many as constituents, so that each constituent can be told from the others."""
    objects: int = Field(default=4, ge=1, le=6)
    """Objects of an episode. The work of solving it doubles with each, and fewer make a task that is learned sooner."""
    coefficients: Coefficients = "discrete"
    """discrete: one of .5, .6, ..., 1; k-hot: 1; continuous: uniform in [.5, 1]."""

    def check(self, space: Space) -> None:
        if space.width > self.features:
            raise BadInput(
                f"Preferences of {space.width} constituents need as many types of objects; there are {self.features}.",
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


class PreferringTeacher(GridTeacher):
    """Tasks and episodes that preferences and their control share; they differ in what an object is worth."""

    space: Space = eqx.field(static=True)
    shape: PreferenceShape = eqx.field(static=True)

    @abc.abstractmethod
    def worth(self, task: Task) -> Float[Array, " feature"]:
        """What each type of object pays in a task."""

    @property
    def horizon(self) -> int:
        return LIMIT

    @property
    def types(self) -> int:
        return self.shape.features

    @property
    def outputs(self) -> int:
        return len(ACTIONS)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        drawn = draw_coefficients(self.shape.coefficients, self.space.slots, key)
        coefficients = jnp.where(row < self.space.width, drawn, 0.0)
        return Task(row, coefficients, self.space.vector(row, coefficients))

    def play(self, task: Task, key: Array) -> Play:
        by_place, by_type = jax.random.split(key)
        order = jax.lax.top_k(jax.random.uniform(by_place, (len(PLACES),)), self.shape.objects + 1)[1]
        start, *cells = jnp.asarray(PLACES)[order]
        types = jax.random.randint(by_type, (self.shape.objects,), 0, self.shape.features)
        return solve(start, jnp.stack(cells), types, self.worth(task)[types])

    def episode(self, task: Task, key: Array) -> Episode:
        play = played(self, task, key)
        parts = self.space.constituents(np.asarray(task.combination))
        amounts = np.asarray(task.coefficients)
        title = " + ".join(
            f"{amount:.2g} x {self.space.label(part)}" for part, amount in zip(parts, amounts, strict=False)
        )
        types = np.asarray(play.types)
        worth = np.asarray(self.worth(task))[types].tolist()
        return picture(play, title, ACTIONS, [f"type {kind}" for kind in types], worth)


def solve(
    start: Int[Array, ""],
    cells: Int[Array, " thing"],
    types: Int[Array, " thing"],
    pays: Float[Array, " thing"],
) -> Play:
    """The episode from a start: in each step the best action, the first where several are."""
    worth = arrivals(cells, pays)
    moves = jnp.asarray((0, *shifts(SIZE)))

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        cell, present = state
        subset = jnp.sum(present << jnp.arange(len(cells)))
        # Doing nothing is worth nothing.
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
        # Who does nothing stays, and does nothing for ever.
        going=jnp.concatenate([jnp.ones(1, bool), actions[:-1] != 0]),
    )


class PreferencesTeacher(PreferringTeacher):
    """One table of preferences for all combinations."""

    table: Float[Array, "width feature"]

    def worth(self, task: Task) -> Float[Array, " feature"]:
        # A pad picks any row: its coefficient is zero.
        return task.coefficients @ self.table.at[task.combination].get(mode="clip")


class Preferences(PreferenceShape):
    """An object of type f pays the sum over active parts of coefficient x preference for f; labels are optimal."""

    kind: Literal["preferences"] = "preferences"

    def draw(self, space: Space, key: Array) -> PreferencesTeacher:
        self.check(space)
        table = jax.random.normal(key, (space.width, self.features))
        return PreferencesTeacher(space=space, shape=self, table=table)
