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
from recombine.families.sequences import WrittenTeacher
from recombine.families.sequences.graphs import GraphFamily
from recombine.graphs import Graph, Scratchpad
from recombine.graphs.einstein import different_puzzles, left_word, puzzle_scratchpad
from recombine.graphs.einstein.clues import HOUSE, MAX_HOUSES, Puzzle, Thing
from recombine.graphs.einstein.elimination import RULES, Elimination
from recombine.language.vocabulary import END, Vocabulary, padded
from recombine.spaces import InstanceSpace, Space


class Einstein(GraphFamily):
    """Puzzles that elimination solves. The prompt is the clues; the result gives the house of each thing.

    Puzzles that differ only in the names of things and the order of clues form a block of `names` instances. Blocks are
    sorted by depth: the longest chain of steps, over all names.
    """

    kind: Literal["einstein"] = "einstein"
    defaults: ClassVar[Mapping[str, Any]] = {
        **GraphFamily.defaults,
        "space": {"kind": "instances", "number": 480},
        "support": "leading-instances",
        "model": "decoder",
    }
    houses: int = Field(default=3, ge=2, le=MAX_HOUSES)
    """Houses in a row."""
    attributes: PositiveInt = 2
    """Attributes of a house. Each house has one value of each."""
    names: PositiveInt = 4
    """Renamed versions of each puzzle."""
    instances: InstanceSpace = InstanceSpace(number=480)
    """The instances, with all renamed versions; the same as the space."""

    def check(self, space: Space) -> None:
        if space != self.instances:
            raise BadInput(
                f"The family 'einstein' needs {self.instances.title}, but the space has {space.title}.",
                fix="set space and family.instances to the same number",
            )
        if self.instances.number % self.names:
            raise BadInput(
                f"{self.instances.number} instances cannot be divided into puzzles with {self.names} names each.",
                fix=f"space.number={self.names * max(1, self.instances.number // self.names)}",
            )

    @property
    def solved(self) -> tuple[Elimination, ...]:
        """The solved puzzles, in order."""
        return _solved(self.houses, self.attributes, self.instances.number // self.names, self.names)

    @property
    def vocabulary(self) -> Vocabulary:
        things = [thing.label for thing in Puzzle(self.houses, self.attributes, ()).things]
        houses = [Thing(HOUSE, house).label for house in range(self.houses)]
        left = [left_word(thing, mask, self.houses) for thing in things for mask in range(1, 1 << self.houses)]
        return Vocabulary(words=(*RULES, *houses, *things, *left))

    def lengths(self, size: int) -> tuple[int, int]:
        # For every size: each step leaves a thing fewer houses, and there are at most as many clues as things.
        things = self.houses * self.attributes
        steps = things * (self.houses - 1) if self.steps else 0
        return 3 * things, steps + things + 1

    @property
    def longest_prompt(self) -> int:
        return self.lengths(0)[0]

    @property
    def longest_answer(self) -> int:
        return self.lengths(0)[1]

    def draw(self, space: Space, key: Array) -> WrittenTeacher:
        self.check(space)
        vocabulary = self.vocabulary
        questions = [vocabulary.numbers(solved.puzzle.tokens) for solved in self.solved]
        answers = [(*vocabulary.numbers(self._answer(solved)), END) for solved in self.solved]
        return WrittenTeacher(
            jnp.asarray(padded(questions, self.longest_prompt)), jnp.asarray(padded(answers, self.longest_answer))
        )

    def _answer(self, solved: Elimination) -> tuple[str, ...]:
        steps = self.scratchpad(solved.graph).write() if self.steps else ()
        result = (left_word(thing.label, mask, self.houses) for thing, mask in solved.masks.items())
        return (*steps, *result)

    def sizes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        depths = np.array([solved.graph.depth for solved in self.solved])
        return depths[np.asarray(rows)[:, 0]]

    def larger(self, sizes: Int[np.ndarray, " row"], trained: Int[np.ndarray, " size"]) -> Bool[np.ndarray, " row"]:
        # A depth between two depths of training is a gap, not a larger problem.
        return sizes > trained.max()

    def shapes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        return np.asarray(rows)[:, 0]

    def results(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        return np.full(len(rows), self.houses * self.attributes)

    def graph(self, row: Int[np.ndarray, " slots"]) -> Graph:
        return self.solved[int(row[0])].graph

    def inputs(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, "row input"]:
        return np.stack([self.graph(row).input_values for row in rows])

    def scratchpad(self, graph: Graph) -> Scratchpad:
        return puzzle_scratchpad(graph, self.houses)


@functools.lru_cache(maxsize=8)
def _solved(houses: int, attributes: int, number: int, names: int) -> tuple[Elimination, ...]:
    blocks = different_puzzles(houses, attributes, number, names)
    ordered = sorted(blocks, key=lambda block: max(solved.graph.depth for solved in block))
    return tuple(solved for block in ordered for solved in block)
