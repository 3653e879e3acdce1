"""Einstein's puzzle: which thing is in which house, with or without the steps of elimination."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.families.graph_family import GraphFamily
from recombine.families.sequences import WrittenTeacher
from recombine.families.vocabulary import END, Vocabulary, padded
from recombine.graphs.clues import HOUSE, MOST_HOUSES, Puzzle, Thing
from recombine.graphs.einstein import different_puzzles, left_word, puzzle_scratchpad
from recombine.graphs.elimination import RULES, Elimination
from recombine.graphs.graph import Graph
from recombine.graphs.scratchpad import Scratchpad
from recombine.spaces.base import Space
from recombine.spaces.instances import InstanceSpace


class Einstein(GraphFamily):
    """Puzzles that elimination solves, told by their clues; the result says for each thing the house that is left to it.

    Puzzles that are the same but for the names of things and the order of clues are a block of `names` instances. Blocks
    are in the order of their depth: the most steps that follow one from another, under any of their names.
    """

    kind: Literal["einstein"] = "einstein"
    defaults: ClassVar[Mapping[str, Any]] = {
        **GraphFamily.defaults,
        "space": {"kind": "instances", "number": 480},
        "support": "leading-instances",
        "model": "decoder",
    }
    houses: int = Field(default=3, ge=2, le=MOST_HOUSES)
    """Houses in a row."""
    attributes: PositiveInt = 2
    """What each house has one value of."""
    names: PositiveInt = 4
    """Under how many names each puzzle is there."""
    instances: InstanceSpace = InstanceSpace(number=480)
    """How many puzzles there are, under all their names; the same as the space."""

    def check(self, space: Space) -> None:
        if space != self.instances:
            raise BadInput(
                f"The family 'einstein' has {self.instances.title}, the space has {space.title}.",
                fix="give space and family.instances the same number",
            )
        if self.instances.number % self.names:
            raise BadInput(
                f"{self.instances.number} instances are no puzzles of {self.names} names each.",
                fix=f"space.number={self.names * max(1, self.instances.number // self.names)}",
            )

    @property
    def worked(self) -> tuple[Elimination, ...]:
        """The puzzles, worked through, in their order."""
        return _worked(self.houses, self.attributes, self.instances.number // self.names, self.names)

    @property
    def vocabulary(self) -> Vocabulary:
        things = [thing.label for thing in Puzzle(self.houses, self.attributes, ()).things]
        houses = [Thing(HOUSE, house).label for house in range(self.houses)]
        left = [
            left_word(thing, mask, self.houses) for thing in things for mask in range(1, 1 << self.houses)
        ]
        return Vocabulary(words=(*RULES, *houses, *things, *left))

    def lengths(self, size: int) -> tuple[int, int]:
        # Of any size: each step leaves a thing fewer houses, and there are no more clues than things.
        things = self.houses * self.attributes
        steps = things * (self.houses - 1) if self.steps else 0
        return 3 * things, steps + things + 1

    @property
    def longest_prompt(self) -> int:
        return self.lengths(0)[0]

    @property
    def longest(self) -> int:
        return self.lengths(0)[1]

    def draw(self, space: Space, key: Array) -> WrittenTeacher:
        self.check(space)
        words = self.vocabulary
        questions = [words.numbers(one.puzzle.tokens) for one in self.worked]
        answers = [(*words.numbers(self._said(one)), END) for one in self.worked]
        return WrittenTeacher(
            jnp.asarray(padded(questions, self.longest_prompt)),
            jnp.asarray(padded(answers, self.longest)),
        )

    def _said(self, worked: Elimination) -> tuple[str, ...]:
        steps = self.scratchpad(worked.graph).write() if self.steps else ()
        result = (left_word(thing.label, mask, self.houses) for thing, mask in worked.masks.items())
        return (*steps, *result)

    def sizes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        depths = np.array([one.graph.depth for one in self.worked])
        return depths[np.asarray(rows)[:, 0]]

    def larger(
        self, sizes: Int[np.ndarray, " row"], trained: Int[np.ndarray, " size"]
    ) -> Bool[np.ndarray, " row"]:
        # A depth between those that are trained is a gap, and no larger problem.
        return sizes > trained.max()

    def size_name(self, size: int) -> str:
        return str(size)

    def shapes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        return np.asarray(rows)[:, 0]

    def results(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        return np.full(len(rows), self.houses * self.attributes)

    def graph(self, row: Int[np.ndarray, " slots"]) -> Graph:
        return self.worked[int(row[0])].graph

    def inputs(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, "row input"]:
        return np.stack([self.graph(row).given for row in rows])

    def scratchpad(self, graph: Graph) -> Scratchpad:
        return puzzle_scratchpad(graph, self.houses)


@functools.lru_cache(maxsize=8)
def _worked(houses: int, attributes: int, number: int, names: int) -> tuple[Elimination, ...]:
    blocks = different_puzzles(houses, attributes, number, names)
    ordered = sorted(blocks, key=lambda block: max(one.graph.depth for one in block))
    return tuple(one for block in ordered for one in block)
