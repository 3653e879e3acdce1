"""The largest sum of entries of a list, no two of them neighbours: which entries are taken, with or without the steps."""

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
from recombine.families.graph_family import GraphFamily
from recombine.families.sequences import SequenceTeacher
from recombine.families.vocabulary import END, PAD, SPECIAL, Vocabulary
from recombine.graphs.dynamic_programming import (
    LEFT_OUT,
    TAKEN,
    maximum_sum_graph,
    maximum_sum_scratchpad,
)
from recombine.graphs.graph import Graph
from recombine.graphs.scratchpad import Scratchpad
from recombine.spaces.base import Space
from recombine.spaces.lists import ListSpace


class MaximumSumTeacher(SequenceTeacher):
    """Solves lists. Nothing is drawn: all replicates have the same task."""

    low: int = eqx.field(static=True)
    levels: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    steps: bool = eqx.field(static=True)
    first: int = eqx.field(static=True)
    """The number that the first word of the vocabulary says."""

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        active = (row < self.width).astype(jnp.float32)
        return Task(row, active, jnp.zeros(self.width).at[row].add(active, mode="drop"))

    def _entries(self, task: Task) -> tuple[Int[Array, " slots"], Int[Array, ""]]:
        """The numbers of the list, zeros behind them, and how many there are."""
        real = task.combination < self.width
        return jnp.where(real, task.combination % self.levels + self.low, 0), jnp.sum(real)

    def _said(self, numbers: Int[Array, "*place"]) -> Int[Array, "*place"]:
        return SPECIAL + numbers - self.first

    def prompt(self, task: Task) -> Int[Array, " word"]:
        entries, number = self._entries(task)
        return jnp.where(jnp.arange(len(entries)) < number, self._said(entries), PAD)

    def answer(self, task: Task) -> Int[Array, " token"]:
        entries, number = self._entries(task)
        best, labels = solved(entries)
        place = jnp.arange((2 if self.steps else 1) * len(entries) + 1)
        if self.steps:
            # The best sums from the last entry to the first, then the labels from the first to the last.
            back = jnp.where(place < number, number - 1 - place, 0)
            said = jnp.where(place < number, best[back], labels[jnp.clip(place - number, 0, len(labels) - 1)])
            number = 2 * number
        else:
            said = labels[jnp.minimum(place, len(labels) - 1)]
        tokens = jnp.where(place < number, self._said(said), PAD)
        return jnp.where(place == number, END, tokens)


def solved(entries: Int[Array, " slots"]) -> tuple[Int[Array, " slots"], Int[Array, " slots"]]:
    """For each place the best sum from there on, and the label: taken (1) or left out (2). Zeros behind a list change nothing."""

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
    """Lists of numbers; the answer says of each entry whether it is taken (1) or left out (2), the first such answer if
    several are best. Steps are the best sums from each entry on."""

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
                f"The family 'maximum-sum' has {self.lists.title}, the space has {space.title}.",
                fix="give space and family.lists the same numbers",
            )

    @property
    def vocabulary(self) -> Vocabulary:
        most = max(self.lists.high * -(-self.lists.longest // 2), LEFT_OUT, self.lists.high)
        return Vocabulary(words=tuple(str(number) for number in range(self.first, most + 1)))

    @property
    def first(self) -> int:
        """The number that the first word says."""
        return min(self.lists.low, 0)

    @property
    def longest_prompt(self) -> int:
        return self.lists.longest

    @property
    def longest(self) -> int:
        return self.lengths(self.lists.longest)[1]

    def draw(self, space: Space, key: Array) -> MaximumSumTeacher:
        self.check(space)
        lists = self.lists
        return MaximumSumTeacher(lists.low, lists.levels, lists.width, self.steps, self.first)

    def sizes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        return (rows < self.lists.width).sum(axis=1)

    def size_name(self, size: int) -> str:
        return str(size)

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
