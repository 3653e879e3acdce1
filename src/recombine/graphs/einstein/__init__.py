"""Einstein's puzzles: random puzzles with one solution, which elimination finds, and their scratchpads.

`clues` has the puzzles as data, `elimination` solves them step by step as a computation graph.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import replace
from typing import get_args

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.graphs.einstein.clues import HOUSE, Clue, ClueKind, Puzzle, Thing, holds, orbit_key
from recombine.graphs.einstein.elimination import Elimination, eliminate
from recombine.graphs.graph import Graph
from recombine.graphs.scratchpad import Scratchpad, Spelling

ATTEMPTS = 20
"""The largest number of draws per puzzle; small puzzles repeat often."""


def draw_puzzle(houses: int, attributes: int, seed: int) -> Puzzle:
    """Draw a puzzle that elimination solves, and that it no longer solves if any clue is removed.

    True clues are added in random order until the puzzle is solved. Then clues that are not needed are removed, those that
    name a house first, so that few of them remain.

    Args:
        houses: The number of houses.
        attributes: The number of attributes.
        seed: The seed.

    Returns:
        The puzzle.
    """
    rng = np.random.default_rng(seed)
    homes = np.stack([rng.permutation(houses) for _ in range(attributes)])
    clues = _true_clues(Puzzle(houses, attributes, ()), homes)
    clues = [clues[index] for index in rng.permutation(len(clues))]
    few, many = 1, len(clues)
    while few < many:  # More clues never undo a step, so bisection finds the smallest number.
        middle = (few + many) // 2
        solved = eliminate(Puzzle(houses, attributes, tuple(clues[:middle]))).solved
        few, many = (few, middle) if solved else (middle + 1, many)
    kept = clues[:few]
    for clue in sorted(kept, key=lambda clue: HOUSE not in (clue.first.attribute, clue.second.attribute)):
        fewer = tuple(other for other in kept if other != clue)
        if eliminate(Puzzle(houses, attributes, fewer)).solved:
            kept = list(fewer)
    return Puzzle(houses, attributes, tuple(kept))


def _true_clues(puzzle: Puzzle, homes: Int[np.ndarray, "attribute value"]) -> list[Clue]:
    """All true clues about things in these houses, except those that hold in every puzzle.

    Clues name a house only to say that a thing is in it, or is not.
    """
    house_of = {thing: int(homes[thing]) for thing in puzzle.things}
    house_of |= {Thing(HOUSE, house): house for house in range(puzzle.houses)}
    clues = []
    for kind in get_args(ClueKind):
        pairs = [
            (first, second)
            for first, second in itertools.permutations(house_of, 2)
            if (
                first.attribute != second.attribute
                if kind in ("same", "apart")
                else HOUSE not in (first.attribute, second.attribute)
            )
            and (kind == "left" or first < second)
        ]
        pair_houses = np.array([(house_of[first], house_of[second]) for first, second in pairs]).reshape(-1, 2)
        true = holds(kind, pair_houses[:, 0], pair_houses[:, 1])
        clues += [Clue(kind, *pair) for pair, kept in zip(pairs, true, strict=True) if kept]
    return clues


def renamed(puzzle: Puzzle, rng: np.random.Generator) -> Puzzle:
    """The same puzzle with other names: attributes and values are permuted, and so is the order of the clues."""
    order = rng.permutation(puzzle.attributes)
    values = [rng.permutation(puzzle.houses) for _ in range(puzzle.attributes)]

    def new_name(thing: Thing) -> Thing:
        if thing.attribute == HOUSE:
            return thing
        return Thing(int(order[thing.attribute]), int(values[thing.attribute][thing.value]))

    clues = [Clue(clue.kind, new_name(clue.first), new_name(clue.second)).ordered for clue in puzzle.clues]
    return replace(puzzle, clues=tuple(clues[index] for index in rng.permutation(len(clues))))


@functools.lru_cache(maxsize=8)
def different_puzzles(houses: int, attributes: int, number: int, names: int) -> tuple[tuple[Elimination, ...], ...]:
    """Draw puzzles of which no two are equal up to names, and solve each under several names.

    Puzzles with more clues than things are left out, so that the length of questions is bounded.

    Args:
        houses: The number of houses.
        attributes: The number of attributes.
        number: The number of puzzles.
        names: The number of renamings of each.

    Returns:
        The solved renamings of each puzzle.
    """
    by_key: dict[str, tuple[Elimination, ...]] = {}
    for seed in range(ATTEMPTS * number):
        puzzle = draw_puzzle(houses, attributes, seed)
        key = orbit_key(puzzle)
        if key not in by_key and len(puzzle.clues) <= len(puzzle.things):
            rng = np.random.default_rng([seed, 61])
            by_key[key] = tuple(eliminate(renamed(puzzle, rng)) for _ in range(names))
        if len(by_key) == number:
            return tuple(by_key.values())
    raise BadInput(
        f"{ATTEMPTS * number} draws gave {len(by_key)} of {number} different puzzles of {houses} houses and {attributes} "
        "attributes.",
        fix="ask for fewer puzzles, or for more houses or attributes",
    )


def puzzle_scratchpad(graph: Graph, houses: int) -> Scratchpad:
    """One token per step: the thing and its remaining houses, e.g. `b2:13` for the first and the third."""
    return Scratchpad(graph, tuple(_houses(graph.nodes[step].name.split()[0], houses) for step in graph.steps))


def left_word(thing: str, mask: int, houses: int) -> str:
    """The token for a thing and its remaining houses."""
    return f"{thing}:{''.join(str(house + 1) for house in range(houses) if mask >> house & 1)}"


def _houses(thing: str, houses: int) -> Spelling:
    def write(mask: int) -> tuple[str, ...]:
        return (left_word(thing, mask, houses),)

    def read(tokens: tuple[str, ...]) -> int | None:
        match = re.fullmatch(rf"{thing}:([1-{houses}]*)", tokens[0])
        mask = sum({1 << int(house) - 1 for house in match[1]}) if match else 0
        # Each house is named once, in order.
        return mask if match and write(mask) == tokens else None

    return Spelling(1, write, read)
