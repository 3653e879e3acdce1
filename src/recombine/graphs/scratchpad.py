"""Scratchpads: the values of a graph's steps, written one after another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, evaluate

MISSING = int(np.iinfo(np.int64).min)
"""The value of nodes for which a scratchpad states nothing readable."""


@dataclass(frozen=True)
class Spelling:
    """How the value of a step is written as tokens."""

    length: int
    """The number of tokens of a value."""
    write: Callable[[int], tuple[str, ...]]
    read: Callable[[tuple[str, ...]], int | None]
    """Reads `length` tokens; None if they are not a value."""


def _number(tokens: tuple[str, ...]) -> int | None:
    return int(tokens[0]) if re.fullmatch(r"0|-?[1-9][0-9]{0,17}", tokens[0]) else None


NUMBER = Spelling(1, lambda value: (str(value),), _number)
"""A number as one token."""


def digits(length: int) -> Spelling:
    """A number that is not negative as `length` tokens, one per digit, with leading zeros."""

    def read(tokens: tuple[str, ...]) -> int | None:
        valid = all(re.fullmatch("[0-9]", token) for token in tokens)
        return int("".join(tokens)) if valid else None

    return Spelling(length, lambda value: tuple(str(value).zfill(length)), read)


@dataclass(frozen=True)
class Scratchpad:
    """The text of a graph's steps in order, each with its spelling. Inputs are not written; they are in the question.

    Example:
        ```python
        scratchpad = multiplication_scratchpad(multiplication_graph(23, 4))
        tokens = scratchpad.write()
        scratchpad.read(tokens)  # the value of each node
        ```
    """

    graph: Graph
    spellings: tuple[Spelling, ...]
    """One spelling per step."""

    def __post_init__(self) -> None:
        if len(self.spellings) != len(self.graph.steps):
            raise BadInput(
                f"The graph has {len(self.graph.steps)} steps, but there are {len(self.spellings)} spellings."
            )

    @property
    def length(self) -> int:
        """The number of tokens."""
        return sum(spelling.length for spelling in self.spellings)

    def write(self, values: Int[np.ndarray, " node"] | None = None) -> tuple[str, ...]:
        """Write the values of all nodes; the true ones by default."""
        values_of_nodes = evaluate(self.graph) if values is None else values
        tokens: list[str] = []
        for step, spelling in zip(self.graph.steps, self.spellings, strict=True):
            tokens += spelling.write(int(values_of_nodes[step]))
        return tuple(tokens)

    def read(self, tokens: Sequence[str]) -> Int[np.ndarray, " node"]:
        """Read the stated value of each node: the true one for inputs, `MISSING` where none can be read.

        Tokens belong to steps by position. Tokens after the last step are ignored.
        """
        stated = np.full(len(self.graph), MISSING)
        stated[list(self.graph.inputs)] = self.graph.input_values
        start = 0
        for step, spelling in zip(self.graph.steps, self.spellings, strict=True):
            own = tuple(tokens[start : start + spelling.length])
            start += spelling.length
            value = spelling.read(own) if len(own) == spelling.length else None
            if value is not None:
                stated[step] = value
        return stated
