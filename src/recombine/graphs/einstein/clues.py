"""Einstein's puzzle as data: houses in a row, things in them, and clues about where they are."""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from recombine.errors import BadInput

ClueKind = Literal["same", "apart", "left", "beside"]
"""Two things are in the same house, in different houses, one directly left of the other, or next to each other."""
HOUSE = -1
"""The attribute of the houses themselves, for clues such as: this thing is in the second house."""
MAX_HOUSES = 9
MAX_CASES = 2_000_000
"""The largest number of ways to fill the houses that `solutions` tries."""


class Thing(NamedTuple):
    """A value of an attribute. Each house has one value of each attribute."""

    attribute: int
    value: int

    @property
    def label(self) -> str:
        """A letter for the attribute and a number for the value; `h2` is the second house."""
        return f"{'h' if self.attribute == HOUSE else LETTERS[self.attribute]}{self.value + 1}"


LETTERS = "abcdefgijklmnopqrstuvwxyz"


class Clue(NamedTuple):
    """A statement about two things."""

    kind: ClueKind
    first: Thing
    second: Thing

    @property
    def ordered(self) -> Clue:
        """The clue with its things in a fixed order, if it is symmetric."""
        swapped = self.kind != "left" and self.second < self.first
        return Clue(self.kind, self.second, self.first) if swapped else self


@dataclass(frozen=True)
class Puzzle:
    """A row of houses, each with one value of each attribute, and clues."""

    houses: int
    attributes: int
    clues: tuple[Clue, ...]

    def __post_init__(self) -> None:
        if not 2 <= self.houses <= MAX_HOUSES or not 1 <= self.attributes <= len(LETTERS):
            raise BadInput(
                f"A puzzle cannot have {self.houses} houses and {self.attributes} attributes.",
                fix=f"choose 2 to {MAX_HOUSES} houses and 1 to {len(LETTERS)} attributes",
            )
        for clue in self.clues:
            for thing in (clue.first, clue.second):
                if not (HOUSE <= thing.attribute < self.attributes and 0 <= thing.value < self.houses):
                    raise BadInput(f"The clue {tuple(clue)} names a thing that the puzzle does not have.")

    @property
    def things(self) -> tuple[Thing, ...]:
        """Every value of every attribute."""
        pairs = itertools.product(range(self.attributes), range(self.houses))
        return tuple(Thing(*pair) for pair in pairs)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The clues as tokens: the kind and two things of each."""
        return tuple(word for clue in self.clues for word in (clue.kind, clue.first.label, clue.second.label))


def holds(
    kind: ClueKind, first: Int[np.ndarray, "*cases"], second: Int[np.ndarray, "*cases"]
) -> Bool[np.ndarray, "*cases"]:
    """Whether a clue holds for things in these houses."""
    match kind:
        case "same":
            true = first == second
        case "apart":
            true = first != second
        case "left":
            true = first + 1 == second
        case "beside":
            true = np.abs(first - second) == 1
    return np.asarray(true)


def solutions(puzzle: Puzzle) -> Int[np.ndarray, "solution attribute value"]:
    """All solutions, by brute force: the house of each thing in each."""
    ways = math.factorial(puzzle.houses)
    cases = ways**puzzle.attributes
    if cases > MAX_CASES:
        raise BadInput(
            f"There are {cases} ways to fill {puzzle.houses} houses with {puzzle.attributes} attributes, "
            f"but at most {MAX_CASES} are tried.",
            fix="choose fewer houses or attributes",
        )
    orders = np.array(list(itertools.permutations(range(puzzle.houses))), np.int64)
    # The permutation of each attribute: the digits of the case's number.
    chosen = np.arange(cases)[:, None] // ways ** np.arange(puzzle.attributes) % ways
    for clue in puzzle.clues:

        def house(thing: Thing, chosen: np.ndarray = chosen) -> np.ndarray:
            if thing.attribute == HOUSE:
                return np.full(len(chosen), thing.value)
            return orders[chosen[:, thing.attribute], thing.value]

        chosen = chosen[holds(clue.kind, house(clue.first), house(clue.second))]
    return orders[chosen]


def orbit_key(puzzle: Puzzle) -> str:
    """A key that two puzzles share exactly if they differ only in the names of attributes and values.

    The order of clues does not matter. A renaming maps the solution to the solution, so each value can be named after its
    house; it remains to try the orders of the attributes.
    """
    solved = solutions(puzzle)
    if len(solved) != 1:
        raise BadInput(f"The puzzle has {len(solved)} solutions; a key needs exactly one.", fix="add or remove clues")
    homes = solved[0].tolist()

    def renamed(thing: Thing, order: tuple[int, ...]) -> Thing:
        if thing.attribute == HOUSE:
            return thing
        return Thing(order[thing.attribute], homes[thing.attribute][thing.value])

    forms = (
        sorted({Clue(c.kind, renamed(c.first, order), renamed(c.second, order)).ordered for c in puzzle.clues})
        for order in itertools.permutations(range(puzzle.attributes))
    )
    least = [(kind, *first, *second) for kind, first, second in min(forms)]
    text = repr((puzzle.houses, puzzle.attributes, least))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
