"""Einstein's puzzle as data: houses in a row, things in them, and clues that say where they are."""

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
"""In the same house, in different ones, directly left of, directly beside."""
HOUSE = -1
"""The attribute of the houses themselves: so a clue can say that a thing is in the second house."""
MOST_HOUSES = 9
MOST_CASES = 2_000_000
"""Puzzles with more ways to fill the houses than this are not solved by trying."""


class Thing(NamedTuple):
    """A value of an attribute: each house has one of each attribute."""

    attribute: int
    value: int

    @property
    def label(self) -> str:
        """A letter for the attribute and a number for the value; `h2` is the second house."""
        return f"{'h' if self.attribute == HOUSE else LETTERS[self.attribute]}{self.value + 1}"


LETTERS = "abcdefgijklmnopqrstuvwxyz"


class Clue(NamedTuple):
    """What is said of two things."""

    kind: ClueKind
    first: Thing
    second: Thing

    @property
    def ordered(self) -> Clue:
        """The same clue with the things in the order of their numbers, where it says the same of both."""
        swapped = self.kind != "left" and self.second < self.first
        return Clue(self.kind, self.second, self.first) if swapped else self


@dataclass(frozen=True)
class Puzzle:
    """So many houses in a row, each with one value of each attribute, and what is said of them."""

    houses: int
    attributes: int
    clues: tuple[Clue, ...]

    def __post_init__(self) -> None:
        if not 2 <= self.houses <= MOST_HOUSES or not 1 <= self.attributes <= len(LETTERS):
            raise BadInput(
                f"A puzzle of {self.houses} houses and {self.attributes} attributes was asked for.",
                fix=f"choose 2 to {MOST_HOUSES} houses and 1 to {len(LETTERS)} attributes",
            )
        for clue in self.clues:
            for thing in (clue.first, clue.second):
                if not (HOUSE <= thing.attribute < self.attributes and 0 <= thing.value < self.houses):
                    raise BadInput(f"The clue {tuple(clue)} speaks of a thing that the puzzle does not have.")

    @property
    def things(self) -> tuple[Thing, ...]:
        """Every value of every attribute."""
        pairs = itertools.product(range(self.attributes), range(self.houses))
        return tuple(Thing(*pair) for pair in pairs)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The clues as short words: its kind and two things each."""
        return tuple(word for clue in self.clues for word in (clue.kind, clue.first.label, clue.second.label))


def holds(
    kind: ClueKind, first: Int[np.ndarray, "*cases"], second: Int[np.ndarray, "*cases"]
) -> Bool[np.ndarray, "*cases"]:
    """Whether a clue is true of things in these houses."""
    match kind:
        case "same":
            found = first == second
        case "apart":
            found = first != second
        case "left":
            found = first + 1 == second
        case "beside":
            found = np.abs(first - second) == 1
    return np.asarray(found)


def solutions(puzzle: Puzzle) -> Int[np.ndarray, "solution attribute value"]:
    """The house of each thing in every way to fill the houses that agrees with the clues, found by trying all."""
    ways = math.factorial(puzzle.houses)
    cases = ways**puzzle.attributes
    if cases > MOST_CASES:
        raise BadInput(
            f"There are {cases} ways to fill {puzzle.houses} houses with {puzzle.attributes} attributes, "
            f"but at most {MOST_CASES} are tried.",
            fix="choose fewer houses or attributes",
        )
    orders = np.array(list(itertools.permutations(range(puzzle.houses))), np.int64)
    # An order for each attribute: the digits of the case's number.
    chosen = np.arange(cases)[:, None] // ways ** np.arange(puzzle.attributes) % ways
    for clue in puzzle.clues:

        def house(thing: Thing, chosen: np.ndarray = chosen) -> np.ndarray:
            if thing.attribute == HOUSE:
                return np.full(len(chosen), thing.value)
            return orders[chosen[:, thing.attribute], thing.value]

        chosen = chosen[holds(clue.kind, house(clue.first), house(clue.second))]
    return orders[chosen]


def orbit_key(puzzle: Puzzle) -> str:
    """A name that two puzzles share exactly if renaming attributes and their values turns one into the other.

    The order of clues does not matter. A renaming takes the one solution to the one solution, so that each value can
    be called after its house; what is left is to try the orders of the attributes.
    """
    found = solutions(puzzle)
    if len(found) != 1:
        raise BadInput(
            f"The puzzle has {len(found)} solutions; a key is defined for one.", fix="add or take away clues"
        )
    homes = found[0].tolist()

    def renamed(thing: Thing, order: tuple[int, ...]) -> Thing:
        if thing.attribute == HOUSE:
            return thing
        return Thing(order[thing.attribute], homes[thing.attribute][thing.value])

    forms = (
        sorted(
            {Clue(c.kind, renamed(c.first, order), renamed(c.second, order)).ordered for c in puzzle.clues}
        )
        for order in itertools.permutations(range(puzzle.attributes))
    )
    least = [(kind, *first, *second) for kind, first, second in min(forms)]
    told = repr((puzzle.houses, puzzle.attributes, least))
    return hashlib.blake2b(told.encode(), digest_size=12).hexdigest()
