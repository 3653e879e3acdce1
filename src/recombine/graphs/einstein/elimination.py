"""Einstein's puzzle solved by elimination: each step removes houses in which a thing cannot be."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recombine.graphs.einstein.clues import HOUSE, ClueKind, Puzzle, Thing
from recombine.graphs.graph import Graph, Node, Operation

Houses = npt.NDArray[np.int64]
"""Sets of houses as bit masks: bit h is set if the thing may be in house h."""


def _apart(own: Houses, other: Houses) -> Houses:
    alone = (other != 0) & (other & (other - 1) == 0)
    return np.where(alone, own & ~other, own)


def _only(own: Houses, *others: Houses) -> Houses:
    left = own & ~np.bitwise_or.reduce(np.stack(others))
    return np.where(left != 0, left, own)


SAME = Operation("same house", np.bitwise_and, 2, 2, commutative=True)
APART = Operation("another house", _apart, 2, 2)
"""If the other thing has only one house left, this thing is not in it."""
LEFT = Operation("left of", lambda own, other: own & (other >> 1), 2, 2)
RIGHT = Operation("right of", lambda own, other: own & (other << 1), 2, 2)
BESIDE = Operation("beside", lambda own, other: own & ((other << 1) | (other >> 1)), 2, 2)
ONLY = Operation("only one", _only, 2, None)
"""If a house is possible for no other value of the attribute, this value is in it."""

RULES: dict[ClueKind, tuple[Operation, Operation]] = {
    "same": (SAME, SAME),
    "apart": (APART, APART),
    "left": (LEFT, RIGHT),
    "beside": (BESIDE, BESIDE),
}
"""The operations that a clue gives for its first and for its second thing."""

Step = tuple[Operation, Thing, tuple[Thing, ...]]
"""An operation, the thing whose houses it narrows, and the other things that it uses."""


@dataclass(frozen=True)
class Elimination:
    """A puzzle after elimination, with its computation graph."""

    puzzle: Puzzle
    graph: Graph
    """Inputs are the full set of houses of each thing, and the houses that clues name. Each step narrows one thing."""
    last: dict[Thing, int]
    """The index of the last node of each thing."""
    masks: dict[Thing, int]
    """The remaining houses of each thing."""

    @property
    def solved(self) -> bool:
        """Whether one house is left for each thing. The puzzle then has at most one solution."""
        return all(mask.bit_count() == 1 for mask in self.masks.values())


def eliminate(puzzle: Puzzle) -> Elimination:
    """Apply the clues and the rules of attributes until nothing changes, and record each step that removes a house."""
    masks = dict.fromkeys(puzzle.things, (1 << puzzle.houses) - 1)
    named = {thing for clue in puzzle.clues for thing in (clue.first, clue.second)}
    masks |= {thing: 1 << thing.value for thing in sorted(named) if thing.attribute == HOUSE}
    names = {thing: thing.label for thing in masks}
    nodes = [Node(names[thing], value=mask) for thing, mask in masks.items()]
    changes = dict.fromkeys(masks, 0)
    rules = list(_rules(puzzle))
    last_parents: dict[int, tuple[str, ...]] = {}
    changed = True
    while changed:
        changed = False
        for rule, (operation, own, others) in enumerate(rules):
            parents = (names[own], *(names[thing] for thing in others))
            if last_parents.get(rule) == parents:  # Nothing has changed since.
                continue
            last_parents[rule] = parents
            left = _left(operation, *(masks[thing] for thing in (own, *others)))
            if left != masks[own]:
                changed = True
                changes[own] += 1
                masks[own], names[own] = left, f"{own.label} {changes[own]}"
                nodes.append(Node(names[own], operation, parents))
    graph = Graph(tuple(nodes))
    last = {thing: graph.index[names[thing]] for thing in puzzle.things}
    return Elimination(puzzle, graph, last, {thing: masks[thing] for thing in puzzle.things})


@functools.lru_cache(maxsize=1 << 16)
def _left(operation: Operation, *masks: int) -> int:
    """The result of a step. Cached, because few masks occur and arrays of one number are slow."""
    return int(operation.apply(*(np.array([mask]) for mask in masks))[0])


def _rules(puzzle: Puzzle) -> Iterator[Step]:
    """All possible steps: those of clues in order, then those between values of one attribute."""
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
