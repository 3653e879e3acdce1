"""The largest sum of non-adjacent entries of a list: which entries are taken, with or without the steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.sequences import SequenceTeacher
from recombine.families.sequences.graphs import GraphFamily
from recombine.graphs import Graph, Scratchpad
from recombine.graphs.dynamic_programming import LEFT_OUT, TAKEN, maximum_sum_graph, maximum_sum_scratchpad
from recombine.language.vocabulary import END, PAD, SPECIAL, Vocabulary
from recombine.spaces import ListSpace, Space


class MaximumSumTeacher(SequenceTeacher):
    """Solves lists. Nothing is random: all replicates have the same tasks."""

    low: int = eqx.field(static=True)
    levels: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    steps: bool = eqx.field(static=True)
    first: int = eqx.field(static=True)
    """The number that the first word of the vocabulary stands for."""

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, self.width)

    def _entries(self, task: Task) -> tuple[Int[Array, " slots"], Int[Array, ""]]:
        """The numbers of the list, followed by zeros, and their count."""
        real = task.combination < self.width
        return jnp.where(real, task.combination % self.levels + self.low, 0), jnp.sum(real)

    def _tokens(self, numbers: Int[Array, "*place"]) -> Int[Array, "*place"]:
        return SPECIAL + numbers - self.first

    def prompt(self, task: Task) -> Int[Array, " word"]:
        entries, number = self._entries(task)
        return jnp.where(jnp.arange(len(entries)) < number, self._tokens(entries), PAD)

    def answer(self, task: Task) -> Int[Array, " token"]:
        entries, number = self._entries(task)
        best, labels = solve(entries)
        position = jnp.arange((2 if self.steps else 1) * len(entries) + 1)
        if self.steps:
            # The best sums from the last entry to the first, then the labels from the first to the last.
            back = jnp.where(position < number, number - 1 - position, 0)
            values = jnp.where(position < number, best[back], labels[jnp.clip(position - number, 0, len(labels) - 1)])
            number = 2 * number
        else:
            values = labels[jnp.minimum(position, len(labels) - 1)]
        tokens = jnp.where(position < number, self._tokens(values), PAD)
        return jnp.where(position == number, END, tokens)


def solve(entries: Int[Array, " slots"]) -> tuple[Int[Array, " slots"], Int[Array, " slots"]]:
    """For each entry the best sum from there on, and its label: taken (1) or left out (2). Trailing zeros change nothing."""

    def backwards(later: tuple[Array, Array], entry: Array) -> tuple[tuple[Array, Array], Array]:
        following, beyond = later
        best = jnp.maximum(jnp.maximum(following, entry + beyond), 0)
        return (best, following), best

    nothing = jnp.zeros((), entries.dtype)
    _, best = jax.lax.scan(backwards, (nothing, nothing), entries, reverse=True)
    beyond = jnp.concatenate([best[2:], jnp.zeros(2, best.dtype)])

    def forwards(taken: Array, given: tuple[Array, Array]) -> tuple[Array, Array]:
        here, sum_with = given
        taken = ~taken & (here == sum_with)
        return taken, jnp.where(taken, TAKEN, LEFT_OUT)

    _, labels = jax.lax.scan(forwards, jnp.zeros((), bool), (best, entries + beyond))
    return best, labels


class MaximumSum(GraphFamily):
    """Lists of numbers. The answer says for each entry whether it is taken (1) or left out (2); of several best answers it is
    the first. Steps are the best sums from each entry on."""

    kind: Literal["maximum-sum"] = "maximum-sum"
    defaults: ClassVar[Mapping[str, Any]] = {
        **GraphFamily.defaults,
        "space": "lists",
        "support": "short-lists",
        "model": "decoder",
    }
    lists: ListSpace = ListSpace()
    """The lists; the same as the space."""

    def check(self, space: Space) -> None:
        if space != self.lists:
            raise BadInput(
                f"The family 'maximum-sum' needs {self.lists.title}, but the space has {space.title}.",
                fix="set space and family.lists to the same numbers",
            )

    @property
    def vocabulary(self) -> Vocabulary:
        most = max(self.lists.high * -(-self.lists.longest // 2), LEFT_OUT, self.lists.high)
        return Vocabulary(words=tuple(str(number) for number in range(self.first, most + 1)))

    @property
    def first(self) -> int:
        """The number that the first word stands for."""
        return min(self.lists.low, 0)

    @property
    def longest_prompt(self) -> int:
        return self.lists.longest

    @property
    def longest_answer(self) -> int:
        return self.lengths(self.lists.longest)[1]

    def draw(self, space: Space, key: Array) -> MaximumSumTeacher:
        self.check(space)
        lists = self.lists
        return MaximumSumTeacher(lists.low, lists.levels, lists.width, self.steps, self.first)

    def sizes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        return (rows < self.lists.width).sum(axis=1)

    def lengths(self, size: int) -> tuple[int, int]:
        return size, (2 if self.steps else 1) * size + 1

    def results(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        return self.sizes(rows)

    def graph(self, row: Int[np.ndarray, " slots"]) -> Graph:
        return maximum_sum_graph(self.lists.values(row))

    def inputs(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, "row input"]:
        return np.array([self.lists.values(row) for row in rows], np.int64)

    def scratchpad(self, graph: Graph) -> Scratchpad:
        return maximum_sum_scratchpad(graph)
