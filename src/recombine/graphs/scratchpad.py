"""A scratchpad: the values of a graph's steps, written one after another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, evaluate

MISSING = int(np.iinfo(np.int64).min)
"""Stands in an array where a scratchpad states no value that can be read."""


@dataclass(frozen=True)
class Spelling:
    """How the value of a step is written."""

    length: int
    """Tokens a value."""
    write: Callable[[int], tuple[str, ...]]
    read: Callable[[tuple[str, ...]], int | None]
    """Of so many tokens; None where they say no value."""


def _number(tokens: tuple[str, ...]) -> int | None:
    return int(tokens[0]) if re.fullmatch(r"0|-?[1-9][0-9]{0,17}", tokens[0]) else None


NUMBER = Spelling(1, lambda value: (str(value),), _number)
"""A number is one token."""


def digits(length: int) -> Spelling:
    """A number that is not negative as `length` tokens, a digit each, with zeros in front."""

    def read(tokens: tuple[str, ...]) -> int | None:
        told = all(re.fullmatch("[0-9]", token) for token in tokens)
        return int("".join(tokens)) if told else None

    return Spelling(length, lambda value: tuple(str(value).zfill(length)), read)


@dataclass(frozen=True)
class Scratchpad:
    """The steps of a graph in its order, each with its spelling. Inputs are not written: the question says them."""

    graph: Graph
    spellings: tuple[Spelling, ...]
    """One for each step."""

    def __post_init__(self) -> None:
        if len(self.spellings) != len(self.graph.steps):
            raise BadInput(
                f"The graph has {len(self.graph.steps)} steps, but there are {len(self.spellings)} spellings."
            )

    @property
    def length(self) -> int:
        """How many tokens it has."""
        return sum(spelling.length for spelling in self.spellings)

    def write(self, values: Int[np.ndarray, " node"] | None = None) -> tuple[str, ...]:
        """The tokens of these values of all nodes; without any, of the true ones."""
        told = evaluate(self.graph) if values is None else values
        tokens: list[str] = []
        for step, spelling in zip(self.graph.steps, self.spellings, strict=True):
            tokens += spelling.write(int(told[step]))
        return tuple(tokens)

    def read(self, tokens: Sequence[str]) -> Int[np.ndarray, " node"]:
        """The value that the tokens state of each node: the true one of an input, `MISSING` where none can be read.

        A token belongs to the step at its place. What comes after the last step is not looked at.
        """
        stated = np.full(len(self.graph), MISSING)
        stated[list(self.graph.inputs)] = self.graph.given
        start = 0
        for step, spelling in zip(self.graph.steps, self.spellings, strict=True):
            said = tuple(tokens[start : start + spelling.length])
            start += spelling.length
            value = spelling.read(said) if len(said) == spelling.length else None
            if value is not None:
                stated[step] = value
        return stated
