"""Grids of which one row and one column are shown: where is a combination that was not shown?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from pydantic import Field, field_validator, model_validator

from recombine.families.episodes import ALONE, QUESTION, EpisodeFamily, EpisodeTeacher, episode_space
from recombine.families.sequences import SequenceFamily
from recombine.language.vocabulary import END, SPECIAL, Vocabulary
from recombine.spaces import Space

CONTEXTS = ("blocked", "interleaved", "rotated", ALONE)


def cells(side: int) -> tuple[tuple[int, int], ...]:
    """The combinations of a grid. Those of the shown row and the shown column have a zero."""
    return tuple(itertools.product(range(side), range(side)))


def cell_names(side: int) -> tuple[str, ...]:
    """The names of the cells of a grid: `shown 0,3` or `tested 1,3`."""
    return tuple(f"{'tested' if row and column else 'shown'} {row},{column}" for row, column in cells(side))


class GridsTeacher(EpisodeTeacher):
    """The grids of one replicate. Which colour, animal, column and row a number means is drawn for each grid."""

    side: int = eqx.field(static=True)
    names: int = eqx.field(static=True)
    turned: bool = eqx.field(static=True)

    def place(self, key: Array, rotated: Array, cell: Int[Array, "*cell 2"]) -> Int[Array, "*cell 2"]:
        """The column and the row of a cell."""
        by_column, by_row, by_turn = jax.random.split(jax.random.fold_in(key, 0), 3)
        if self.turned:
            cell = jnp.where(jax.random.bernoulli(by_turn), cell[..., ::-1], cell)
        one, other = cell[..., 0], cell[..., 1]
        column = jax.random.permutation(by_column, self.names)[jnp.where(rotated, (one + other) % self.side, one)]
        row = jax.random.permutation(by_row, self.names)[jnp.where(rotated, (one - other) % self.side, other)]
        return jnp.stack([column, row], axis=-1)

    def features(self, key: Array, cell: Int[Array, "*cell 2"]) -> Int[Array, "*cell 2"]:
        """The tokens of a cell's colour and animal."""
        by_colour, by_animal = jax.random.split(jax.random.fold_in(key, 1))
        colour = jax.random.permutation(by_colour, self.names)[cell[..., 0]]
        animal = jax.random.permutation(by_animal, self.names)[cell[..., 1]]
        return jnp.stack([SPECIAL + colour, SPECIAL + self.names + animal], axis=-1)

    def _position(self, key: Array, context: Array, cell: Int[Array, "*cell 2"]) -> Int[Array, "*cell 2"]:
        """The tokens of a cell's column and row."""
        place = self.place(key, context == CONTEXTS.index("rotated"), cell)
        return SPECIAL + 2 * self.names + place + jnp.array([0, self.names])

    def study(self, key: Array, context: Int[Array, ""], number: Int[Array, ""]) -> Int[Array, " word"]:
        by_row, by_column, by_first, by_order = jax.random.split(jax.random.fold_in(key, 2), 4)
        row = jax.random.permutation(by_row, self.side)
        column = self.side + jax.random.permutation(by_column, self.side - 1)
        first = jax.random.bernoulli(by_first)
        blocked = jnp.where(first, jnp.concatenate([row, column]), jnp.concatenate([column, row]))
        mixed = jax.random.permutation(by_order, 2 * self.side - 1)
        order = jnp.where(context == CONTEXTS.index("interleaved"), mixed, blocked)
        shown = [(0, other) for other in range(self.side)] + [(other, 0) for other in range(1, self.side)]
        examples = jnp.asarray(np.array(shown))[order]
        return jnp.concatenate([self.features(key, examples), self._position(key, context, examples)], axis=1).ravel()

    def query(self, key: Array, context: Int[Array, ""], query: Int[Array, ""]) -> Int[Array, " word"]:
        return jnp.append(self.features(key, jnp.asarray(np.array(cells(self.side)))[query]), SPECIAL + 4 * self.names)

    def reply(self, key: Array, context: Int[Array, ""], query: Int[Array, ""]) -> Int[Array, " token"]:
        position = self._position(key, context, jnp.asarray(np.array(cells(self.side)))[query])
        return jnp.append(position, END)


class Grids(EpisodeFamily):
    """Coloured animals on a grid: the colour decides the column and the animal the row.

    An episode is one grid with names of its own. Its prompt shows one row and one column, then asks for the place of another
    animal. The contexts differ in what is shown before the query:

    - `blocked`: the row and then the column, or the column first;
    - `interleaved`: the same examples in random order;
    - `rotated`: blocked, of a grid in which column and row both depend on colour and animal (their sum and their difference,
      modulo the side), so that the shown cells do not determine the others;
    - `alone`: nothing.
    """

    kind: Literal["grids"] = "grids"
    contexts: ClassVar[tuple[str, ...]] = CONTEXTS
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": episode_space(CONTEXTS, cell_names(5)),
        "support": {"kind": "episodes", "queries": ["tested"], "test_queries": ["tested"]},
        "model": "decoder",
    }
    side: int = Field(default=5, ge=3, le=15)
    """Rows and columns of a grid: an odd number, so that a rotated grid has every cell once."""
    names: int = Field(default=20, ge=3, le=1000)
    """Colours, animals, columns and rows to draw the names of a grid from, of each as many as this. With more names than a grid has, an
    answer is told from the shown names, which is a first step to reading it off."""
    turned: bool = False
    """Whether the grid decides anew which of colour and animal belongs to the column. Otherwise it is always the colour."""

    @field_validator("side")
    @classmethod
    def _odd(cls, side: int) -> int:
        if side % 2 == 0:
            raise ValueError(f"side={side} must be odd: choose {side - 1} or {side + 1}")
        return side

    @model_validator(mode="after")
    def _enough_names(self) -> Grids:
        if self.names < self.side:
            raise ValueError(f"names={self.names} are too few for a grid with side={self.side}")
        return self

    @property
    def queries(self) -> tuple[str, ...]:
        return cell_names(self.side)

    @property
    def vocabulary(self) -> Vocabulary:
        kinds = ("colour", "animal", "column", "row")
        return Vocabulary(words=(*(f"{kind}{number}" for kind in kinds for number in range(self.names)), QUESTION))

    @property
    def longest_prompt(self) -> int:
        return 4 * (2 * self.side - 1) + 3

    @property
    def longest_answer(self) -> int:
        return 3

    def draw(self, space: Space, key: Array) -> GridsTeacher:
        self.check(space)
        return GridsTeacher(key, tuple(len(values) for _, values in space.factors), self.side, self.names, self.turned)  # type: ignore[attr-defined]
