"""A grid world with a goal of four factors: quadrant, interaction, maze and object."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from recombine.errors import BadInput
from recombine.families.base import Episode, Task
from recombine.families.classification import ClassificationFamily
from recombine.families.grid import MOVES, GridTeacher, Play, distances, neighbours, picture, played, shifts
from recombine.spaces import ProductSpace, Space

FACTORS: Mapping[str, tuple[str, ...]] = {
    "quadrant": ("top left", "top right", "bottom left", "bottom right"),
    "interaction": ("lift", "push", "open", "paint", "clean"),
    "maze": ("birch", "cedar", "holly", "maple", "willow"),
    "object": ("bell", "crate", "drum", "lamp", "urn"),
}
"""The factors in order, with the default names of their values. A space may have fewer values."""

PHRASES = (("quadrant", "in the {} quadrant,"), ("interaction", "{}"), ("object", "the {}"), ("maze", "of the {} maze"))
TYPES, MAZES = len(FACTORS["object"]), len(FACTORS["maze"])
OBJECTS = 5
"""The goal and four distractors."""


def longest(grid: int) -> int:
    """The largest allowed distance between two cells of a maze: three more than between corners of the open grid."""
    return 2 * grid + 1


def quadrants(grid: int) -> Bool[np.ndarray, "quadrant cell"]:
    """The cells of each quadrant. The middle row and column belong to none."""
    half = np.arange(grid) - grid // 2
    sides = (half < 0, half > 0)
    return np.stack([np.outer(down, right).ravel() for down in sides for right in sides])


@functools.cache
def mazes(grid: int) -> Bool[np.ndarray, "maze cell"]:
    """The free cells of each maze. The mazes never change.

    A quarter of the cells are walls. They are placed one by one at random, where all free cells remain connected, no
    distance exceeds `longest`, and each quadrant keeps enough free cells for all objects.
    """
    result = []
    for number in range(MAZES):
        # `random()` is the only method of Python's generator that gives the same numbers in every version.
        source = random.Random(1000 * grid + number)
        free = np.ones((grid, grid), bool)
        for cell in sorted(range(grid * grid), key=lambda _: source.random()):
            if np.sum(~free) == grid * grid // 4:
                break
            free.flat[cell] = False
            inside = free.ravel()
            apart = distances(free)[np.ix_(inside, inside)].max() > longest(grid)
            if apart or np.min(quadrants(grid) @ inside.astype(int)) < OBJECTS:
                free.flat[cell] = True
        result.append(free.ravel())
    return np.stack(result)


@functools.cache
def first_moves(grid: int) -> Int[np.ndarray, "maze goal cell"]:
    """The first move of a shortest path from each cell to each goal; of several, the first in `MOVES`."""
    free = mazes(grid).reshape(MAZES, grid, grid)
    return np.stack([np.argmin(distances(maze)[:, neighbours(maze)], axis=2) for maze in free]).astype(np.int8)


class GoalsTeacher(GridTeacher):
    """Mazes with the shortest paths through them. Nothing here is random: all replicates have the same mazes."""

    space: ProductSpace = eqx.field(static=True)
    shape: Goals = eqx.field(static=True)
    free: Bool[Array, "maze cell"]
    ways: Int[Array, "maze goal cell"]
    """The first move from each cell to each goal."""

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task(row, jnp.ones(self.space.slots), self.space.vector(row))

    def meant(self, task: Task) -> Int[Array, " slots"]:
        """The value of each factor of the goal."""
        return task.combination - jnp.asarray(self.space.offsets)

    def play(self, task: Task, key: Array) -> Play:
        quadrant, interaction, maze, wanted = self.meant(task)
        free = self.free[maze]
        start, cells, types = self._scene(free, jnp.asarray(quadrants(self.shape.grid))[quadrant], wanted, key)
        ways, moves = self.ways[maze, cells[0]], jnp.asarray(shifts(self.shape.grid))

        def step(cell: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
            there = cell == cells[0]
            after = jnp.where(there, cell, cell + moves[ways[cell]])
            return after, (cell, jnp.where(there, len(MOVES) + interaction, ways[cell]))

        _, (agent, actions) = jax.lax.scan(step, start, None, length=self.shape.horizon)
        return Play(
            walls=~free,
            cells=cells,
            types=types,
            present=jnp.ones((self.shape.horizon, OBJECTS), bool),
            agent=agent,
            actions=actions,
            # The episode ends with the interaction.
            going=jnp.concatenate([jnp.ones(1, bool), actions[:-1] < len(MOVES)]),
        )

    def _scene(
        self, free: Bool[Array, " cell"], region: Bool[Array, " cell"], wanted: Int[Array, ""], key: Array
    ) -> tuple[Int[Array, ""], Int[Array, " thing"], Int[Array, " thing"]]:
        """The start of the agent, and the cells and types of the objects, the goal first.

        The second object has the wanted type and is in another quadrant; the third has another type and is in the wanted
        quadrant. So neither quadrant nor type alone identifies the goal. The others are in any quadrant and have any type,
        except that no other object has the wanted type in the wanted quadrant.
        """
        by_cell, by_type = jax.random.split(key)
        chances = jax.random.uniform(by_cell, (OBJECTS + 1, len(free)))
        anywhere = free & jnp.asarray(quadrants(self.shape.grid).any(axis=0))
        cells: list[Array] = []
        allowed_cells = (region, anywhere & ~region, region, anywhere, anywhere, free)
        for chance, allowed in zip(chances, allowed_cells, strict=True):
            taken = jnp.zeros_like(free).at[jnp.asarray(cells, jnp.int32)].set(True)
            cells.append(jnp.argmax(jnp.where(allowed & free & ~taken, chance, -1.0)))
        *objects, start = cells
        inside = region[jnp.stack(objects)]
        # The offset from the wanted type, modulo the number of types; inside the region never zero.
        other = inside + jnp.floor(jax.random.uniform(by_type, (OBJECTS,)) * (TYPES - inside))
        turn = other.astype(jnp.int32).at[:2].set(0)
        return start, jnp.stack(objects), (wanted + turn) % TYPES

    def episode(self, task: Task, key: Array) -> Episode:
        play = played(self, task, key)
        values = dict(self.space.factors)
        names = values["object"] + FACTORS["object"][len(values["object"]) :]
        kinds = [names[int(kind)] for kind in np.asarray(play.types)]
        title = self.shape.sentence(self.space, self.space.constituents(np.asarray(task.combination)))
        return picture(play, title, (*MOVES, *values["interaction"]), kinds, wanted=0)


class Goals(ClassificationFamily):
    """Go through a named maze to the object of a given type in a given quadrant, and interact with it."""

    kind: Literal["goals"] = "goals"
    defaults: ClassVar[Mapping[str, Any]] = {
        **ClassificationFamily.defaults,
        "space": {"kind": "product", "factors": FACTORS},
        "encoding": "sentences",
        "model": {"kind": "mlp", "depth": 2},
        "recipe": {"kind": "fast", "samples": 16},
    }
    grid: Literal[7, 11] = 7
    """Cells along each side. An episode has at most 2 x grid + 2 steps: the longest path, then the interaction."""

    def check(self, space: Space) -> None:
        given = {name: len(values) for name, values in space.factors} if isinstance(space, ProductSpace) else {}
        most = {name: len(values) for name, values in FACTORS.items()}
        if list(given) != list(most) or any(given[name] > most[name] for name in most):
            wanted = " x ".join(f"{name} ({number})" for name, number in most.items())
            raise BadInput(
                f"Goals need the factors {wanted}, in this order and with at most these numbers of values; "
                f"got {space.title}.",
                fix="leave the space out: the family brings it",
            )

    @property
    def horizon(self) -> int:
        return longest(self.grid) + 1

    @property
    def input_size(self) -> int:
        return self.grid**2 * (TYPES + 2)

    @property
    def output_size(self) -> int:
        return len(MOVES) + len(FACTORS["interaction"])

    def sentence(self, space: Space, constituents: Sequence[int]) -> str:
        """A goal in words: the phrases of its factors, one after the other."""
        self.check(space)
        assert isinstance(space, ProductSpace)
        parts = zip(space.factors, space.offsets, sorted(constituents), strict=True)
        chosen = {factor: values[part - offset] for (factor, values), offset, part in parts}
        return " ".join(template.format(chosen[factor]) for factor, template in PHRASES)

    def parts(self, space: Space) -> dict[str, Any]:
        """The arguments of a teacher."""
        self.check(space)
        free, ways = jnp.asarray(mazes(self.grid)), jnp.asarray(first_moves(self.grid))
        return {"space": space, "shape": self, "free": free, "ways": ways}

    def draw(self, space: Space, key: Array) -> GoalsTeacher:
        return GoalsTeacher(**self.parts(space))
