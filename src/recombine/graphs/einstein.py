"""Einstein's puzzles by the dozen: drawn by a seed, each with one solution that elimination finds."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import replace
from typing import get_args

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.graphs.clues import HOUSE, Clue, ClueKind, Puzzle, Thing, holds, orbit_key
from recombine.graphs.elimination import Elimination, eliminate
from recombine.graphs.graph import Graph
from recombine.graphs.scratchpad import Scratchpad, Spelling

ATTEMPTS = 20
"""At most so many draws for each puzzle that is asked for: small ones come again and again."""


def draw_puzzle(houses: int, attributes: int, seed: int) -> Puzzle:
    """A puzzle that elimination solves, and no longer does when any clue is taken away.

    True clues are added in random order until it is solved; then those that are not needed are dropped, clues that
    name a house first: so few of them are left.
    """
    rng = np.random.default_rng(seed)
    homes = np.stack([rng.permutation(houses) for _ in range(attributes)])
    told = _true_clues(Puzzle(houses, attributes, ()), homes)
    told = [told[place] for place in rng.permutation(len(told))]
    few, many = 1, len(told)
    while few < many:  # More clues never undo a step, so the least number can be found by halving.
        middle = (few + many) // 2
        solved = eliminate(Puzzle(houses, attributes, tuple(told[:middle]))).solved
        few, many = (few, middle) if solved else (middle + 1, many)
    kept = told[:few]
    for clue in sorted(kept, key=lambda clue: HOUSE not in (clue.first.attribute, clue.second.attribute)):
        fewer = tuple(other for other in kept if other != clue)
        if eliminate(Puzzle(houses, attributes, fewer)).solved:
            kept = list(fewer)
    return Puzzle(houses, attributes, tuple(kept))


def _true_clues(puzzle: Puzzle, homes: Int[np.ndarray, "attribute value"]) -> list[Clue]:
    """Everything that clues can say of things in these houses, but for what holds in every puzzle.

    A house is named to say that a thing is in it, or that it is not; not to say that one is beside it.
    """
    places = {thing: int(homes[thing]) for thing in puzzle.things}
    places |= {Thing(HOUSE, house): house for house in range(puzzle.houses)}
    found = []
    for kind in get_args(ClueKind):
        pairs = [
            (first, second)
            for first, second in itertools.permutations(places, 2)
            if (
                first.attribute != second.attribute
                if kind in ("same", "apart")
                else HOUSE not in (first.attribute, second.attribute)
            )
            and (kind == "left" or first < second)
        ]
        at = np.array([(places[first], places[second]) for first, second in pairs]).reshape(-1, 2)
        true = holds(kind, at[:, 0], at[:, 1])
        found += [Clue(kind, *pair) for pair, kept in zip(pairs, true, strict=True) if kept]
    return found


def renamed(puzzle: Puzzle, rng: np.random.Generator) -> Puzzle:
    """The same puzzle with other names: attributes and their values permuted, the clues in another order."""
    order = rng.permutation(puzzle.attributes)
    values = [rng.permutation(puzzle.houses) for _ in range(puzzle.attributes)]

    def called(thing: Thing) -> Thing:
        if thing.attribute == HOUSE:
            return thing
        return Thing(int(order[thing.attribute]), int(values[thing.attribute][thing.value]))

    clues = [Clue(clue.kind, called(clue.first), called(clue.second)).ordered for clue in puzzle.clues]
    return replace(puzzle, clues=tuple(clues[place] for place in rng.permutation(len(clues))))


@functools.lru_cache(maxsize=8)
def different_puzzles(
    houses: int, attributes: int, number: int, names: int
) -> tuple[tuple[Elimination, ...], ...]:
    """The first so many puzzles of which no two are the same but for names, each worked through under so many names.

    Those with more clues than things are left out, so that the longest question is known.
    """
    found: dict[str, tuple[Elimination, ...]] = {}
    for seed in range(ATTEMPTS * number):
        puzzle = draw_puzzle(houses, attributes, seed)
        key = orbit_key(puzzle)
        if key not in found and len(puzzle.clues) <= len(puzzle.things):
            rng = np.random.default_rng([seed, 61])
            found[key] = tuple(eliminate(renamed(puzzle, rng)) for _ in range(names))
        if len(found) == number:
            return tuple(found.values())
    raise BadInput(
        f"{ATTEMPTS * number} draws gave {len(found)} of {number} different puzzles of {houses} houses and {attributes} "
        "attributes.",
        fix="fewer puzzles, or more houses or attributes",
    )


def puzzle_scratchpad(graph: Graph, houses: int) -> Scratchpad:
    """A token for each step: the thing and the houses that are left to it, `b2:13` for the first and the third."""
    return Scratchpad(
        graph, tuple(_houses(graph.nodes[step].name.split()[0], houses) for step in graph.steps)
    )


def left_word(thing: str, mask: int, houses: int) -> str:
    """The word that says which houses are left to a thing."""
    return f"{thing}:{''.join(str(house + 1) for house in range(houses) if mask >> house & 1)}"


def _houses(thing: str, houses: int) -> Spelling:
    def write(mask: int) -> tuple[str, ...]:
        return (left_word(thing, mask, houses),)

    def read(tokens: tuple[str, ...]) -> int | None:
        said = re.fullmatch(rf"{thing}:([1-{houses}]*)", tokens[0])
        mask = sum({1 << int(house) - 1 for house in said[1]}) if said else 0
        # Houses are named once, in their order.
        return mask if said and write(mask) == tokens else None

    return Spelling(1, write, read)
