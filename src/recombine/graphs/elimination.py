"""Einstein's puzzle by elimination: each step takes houses away from where a thing may be."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Int

from recombine.graphs.clues import HOUSE, ClueKind, Puzzle, Thing
from recombine.graphs.graph import Graph, Node, Operation

Houses = npt.NDArray[np.int64]
"""Sets of houses: bit h is set where the thing may be in house h."""


def _apart(own: Houses, other: Houses) -> Houses:
    alone = (other != 0) & (other & (other - 1) == 0)
    return np.where(alone, own & ~other, own)


def _only(own: Houses, *others: Houses) -> Houses:
    left = own & ~np.bitwise_or.reduce(np.stack(others))
    return np.where(left != 0, left, own)


SAME = Operation("same house", np.bitwise_and, 2, 2, commutative=True)
APART = Operation("another house", _apart, 2, 2)
"""Where the other thing has only one house left, this one is not in it."""
LEFT = Operation("left of", lambda own, other: own & (other >> 1), 2, 2)
RIGHT = Operation("right of", lambda own, other: own & (other << 1), 2, 2)
BESIDE = Operation("beside", lambda own, other: own & ((other << 1) | (other >> 1)), 2, 2)
ONLY = Operation("only one", _only, 2, None)
"""Where a house is left to no other value of the attribute, this one is in it."""

RULES: dict[ClueKind, tuple[Operation, Operation]] = {
    "same": (SAME, SAME),
    "apart": (APART, APART),
    "left": (LEFT, RIGHT),
    "beside": (BESIDE, BESIDE),
}
"""What a clue says of its first thing, and what of its second."""

Step = tuple[Operation, Thing, tuple[Thing, ...]]
"""An operation, the thing whose houses it narrows, and the others that it looks at."""


@dataclass(frozen=True)
class Elimination:
    """A puzzle worked through until no step takes anything away."""

    puzzle: Puzzle
    graph: Graph
    """Inputs are all houses for each thing, and single houses that clues name; each step leaves fewer to one thing."""
    last: dict[Thing, int]
    """The node that says where a thing may be in the end."""
    masks: dict[Thing, int]
    """Its value."""

    @property
    def solved(self) -> bool:
        """Whether one house is left for each thing; then the puzzle has exactly one solution, if it has any."""
        return all(mask.bit_count() == 1 for mask in self.masks.values())

    @property
    def solution(self) -> Int[np.ndarray, "attribute value"] | None:
        """The house of each thing, if one is left for each."""
        if not self.solved:
            return None
        homes = [self.masks[thing].bit_length() - 1 for thing in self.puzzle.things]
        return np.array(homes, np.int64).reshape(self.puzzle.attributes, self.puzzle.houses)


def eliminate(puzzle: Puzzle) -> Elimination:
    """Go through the clues and the rules of attributes again and again, and write down each step that helps."""
    masks = dict.fromkeys(puzzle.things, (1 << puzzle.houses) - 1)
    named = {thing for clue in puzzle.clues for thing in (clue.first, clue.second)}
    masks |= {thing: 1 << thing.value for thing in sorted(named) if thing.attribute == HOUSE}
    names = {thing: thing.label for thing in masks}
    nodes = [Node(names[thing], value=mask) for thing, mask in masks.items()]
    changes = dict.fromkeys(masks, 0)
    rules = list(_rules(puzzle))
    looked: dict[int, tuple[str, ...]] = {}
    going = True
    while going:
        going = False
        for rule, (operation, own, others) in enumerate(rules):
            parents = (names[own], *(names[thing] for thing in others))
            if looked.get(rule) == parents:  # Nothing has changed since.
                continue
            looked[rule] = parents
            left = _left(operation, *(masks[thing] for thing in (own, *others)))
            if left != masks[own]:
                going = True
                changes[own] += 1
                masks[own], names[own] = left, f"{own.label} {changes[own]}"
                nodes.append(Node(names[own], operation, parents))
    graph = Graph(tuple(nodes))
    last = {thing: graph.numbers[names[thing]] for thing in puzzle.things}
    return Elimination(puzzle, graph, last, {thing: masks[thing] for thing in puzzle.things})


@functools.lru_cache(maxsize=1 << 16)
def _left(operation: Operation, *masks: int) -> int:
    """What a step leaves. Few sets of houses come again and again, and arrays of one number are slow."""
    return int(operation.apply(*(np.array([mask]) for mask in masks))[0])


def _rules(puzzle: Puzzle) -> Iterator[Step]:
    """Every step that could be made: of clues in their order, then of values of one attribute."""
    for clue in puzzle.clues:
        for operation, own, other in zip(
            RULES[clue.kind], (clue.first, clue.second), (clue.second, clue.first), strict=True
        ):
            if own.attribute != HOUSE:
                yield operation, own, (other,)
    for attribute in range(puzzle.attributes):
        values = [Thing(attribute, value) for value in range(puzzle.houses)]
        for own in values:
            others = tuple(thing for thing in values if thing != own)
            for other in others:
                yield APART, own, (other,)
            yield ONLY, own, others
