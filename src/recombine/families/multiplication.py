"""Products of two numbers: digit by digit, with or without the steps of long multiplication."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.sequences import SequenceTeacher
from recombine.families.sequences.graphs import GraphFamily
from recombine.graphs import Graph, Scratchpad, multiplication_graph, multiplication_scratchpad
from recombine.language.vocabulary import END, PAD, SPECIAL, Vocabulary
from recombine.spaces import NumberPairs, Space

MOST = 89
"""The largest value of a step: 9 times 9 and a carry of 8. Sums of columns are smaller."""


class MultiplicationTeacher(SequenceTeacher):
    """Multiplies. Nothing is random: all replicates have the same tasks."""

    pairs: NumberPairs = eqx.field(static=True)
    steps: bool = eqx.field(static=True)
    longest_answer: int = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, self.pairs.width)

    def prompt(self, task: Task) -> Int[Array, " word"]:
        digits = self.pairs.digits(task.combination, jnp)
        left, right = digits[: self.pairs.left], digits[self.pairs.left :]
        # Leading digits first. The empty places in front of a shorter number are removed.
        tokens = jnp.concatenate([left[::-1], jnp.array([MOST + 1]), right[::-1]])
        order = jnp.argsort(tokens < 0, stable=True)
        return jnp.where(tokens < 0, PAD, SPECIAL + tokens)[order]

    def answer(self, task: Task) -> Int[Array, " token"]:
        digits = self.pairs.digits(task.combination, jnp)
        left, right = digits[: self.pairs.left], digits[self.pairs.left :]
        answers = []
        for size in sizes_of(self.pairs):
            words = _solved(size, left, right, self.steps)
            answers.append(
                jnp.stack([*words, jnp.array(END)] + [jnp.array(PAD)] * (self.longest_answer - len(words) - 1))
            )
        lengths = jnp.sum(left >= 0), jnp.sum(right >= 0)
        return jnp.stack(answers)[(lengths[0] - 1) * self.pairs.right + lengths[1] - 1]


def _solved(
    size: tuple[int, int], left: Int[Array, " place"], right: Int[Array, " place"], steps: bool
) -> list[Int[Array, ""]]:
    """The tokens of the steps, computed along the graph for numbers of this size, and of the digits of the product."""
    graph = shape_of(size)
    given = iter([*left[: size[0]], *right[: size[1]]])
    values: list[Array] = []
    for number, node in enumerate(graph.nodes):
        if node.operation is None:
            values.append(next(given))
        else:
            values.append(node.operation.apply(*(values[parent] for parent in graph.parents[number])))
    product = [values[parent] for parent in graph.parents[graph.index["answer"]]]
    between = [values[step] for step in graph.steps if step != graph.index["answer"]] if steps else []
    return [SPECIAL + value for value in (*between, *product)]


@functools.cache
def shape_of(size: tuple[int, int]) -> Graph:
    """The graph of products of numbers with these numbers of digits."""
    return multiplication_graph("1" * size[0], "1" * size[1])


def sizes_of(pairs: NumberPairs) -> list[tuple[int, int]]:
    """All pairs of numbers of digits."""
    return [(left, right) for left in range(1, pairs.left + 1) for right in range(1, pairs.right + 1)]


class Multiplication(GraphFamily):
    """Two numbers, answered by their product, padded with leading zeros to as many digits as both numbers together.

    Each step of long multiplication is a token. The last step, which collects the digits of the product, is the result.
    """

    kind: Literal["multiplication"] = "multiplication"
    defaults: ClassVar[Mapping[str, Any]] = {
        **GraphFamily.defaults,
        "space": "number-pairs",
        "support": "small-factors",
        "model": "decoder",
    }
    pairs: NumberPairs = NumberPairs()
    """The pairs of numbers; the same as the space."""

    def check(self, space: Space) -> None:
        if space != self.pairs:
            raise BadInput(
                f"The family 'multiplication' needs {self.pairs.title}, but the space has {space.title}.",
                fix="set space and family.pairs to the same numbers",
            )

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(words=(*(str(number) for number in range(MOST + 1)), "x"))

    @property
    def longest_prompt(self) -> int:
        return self.pairs.slots + 1

    @property
    def longest_answer(self) -> int:
        return self.lengths(10 * self.pairs.left + self.pairs.right)[1]

    def draw(self, space: Space, key: Array) -> MultiplicationTeacher:
        self.check(space)
        return MultiplicationTeacher(self.pairs, self.steps, self.longest_answer)

    def sizes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        real = self.pairs.digits(rows) >= 0
        return 10 * real[:, : self.pairs.left].sum(axis=1) + real[:, self.pairs.left :].sum(axis=1)

    def size_name(self, size: int) -> str:
        return f"{size // 10} x {size % 10}"

    def lengths(self, size: int) -> tuple[int, int]:
        left, right = divmod(size, 10)
        length = self.scratchpad(shape_of((left, right))).length if self.steps else left + right
        return left + right + 1, length + 1

    def results(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        return (rows < self.pairs.width).sum(axis=1)

    def graph(self, row: Int[np.ndarray, " slots"]) -> Graph:
        left, right = self.pairs.numbers(np.asarray(row))
        return multiplication_graph(str(left), str(right))

    def inputs(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, "row input"]:
        digits = self.pairs.digits(np.asarray(rows))
        return digits[:, (digits[0] >= 0)].astype(np.int64)

    def scratchpad(self, graph: Graph) -> Scratchpad:
        return multiplication_scratchpad(graph)
