"""Chains of named random functions, f5(f2(f7(x))): one answer for every start and every list of functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.language.vocabulary import END, PAD, SPECIAL, Vocabulary
from recombine.spaces import ListSpace, Space

Rule = Literal["composed", "last"]


class ChainsTeacher(SequenceTeacher):
    """The functions of one replicate. Each is a permutation of the values, so no step of a chain loses information."""

    functions: Int[Array, "function value"]
    width: int = eqx.field(static=True)
    rule: Rule = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, self.width)

    def _entries(self, task: Task) -> tuple[Int[Array, " slots"], Int[Array, ""]]:
        """The start and the functions, and how many entries there are. Entries after the end are zero."""
        real = task.combination < self.width
        return jnp.where(real, task.combination % len(self.functions), 0), jnp.sum(real)

    def prompt(self, task: Task) -> Int[Array, " word"]:
        entries, number = self._entries(task)
        words = SPECIAL + entries + jnp.where(jnp.arange(len(entries)) > 0, len(self.functions), 0)
        return jnp.where(jnp.arange(len(entries)) < number, words, PAD)

    def answer(self, task: Task) -> Int[Array, " token"]:
        entries, number = self._entries(task)
        value = entries[0]
        if self.rule == "last":
            value = self.functions[entries[number - 1], value]
        else:
            for place in range(1, len(entries)):
                value = jnp.where(place < number, self.functions[entries[place], value], value)
        return jnp.stack([SPECIAL + value, jnp.asarray(END, value.dtype)])


class Chains(SequenceFamily):
    """A start and a list of functions, `x f2 f7 f5`, answered by the value of f5(f7(f2(x))).

    The functions are random permutations of the values and belong to the replicate: a network has to keep them in its
    weights. A list of numbers is a chain: its first number is the start, and the others name the functions.
    """

    kind: Literal["chains"] = "chains"
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": {"kind": "lists", "low": 0, "high": 7, "longest": 7},
        "support": {"kind": "short-lists", "longest": 6},
        "model": "decoder",
    }
    lists: ListSpace = ListSpace(low=0, high=7, longest=7)
    """The chains; the same as the space. There are as many functions as values."""
    rule: Rule = "composed"
    """`last`: only the last function is applied to the start. The prompts and the facts are the same, and no step depends on
    another one."""

    def check(self, space: Space) -> None:
        if space != self.lists or self.lists.low != 0:
            raise BadInput(
                f"The family {self.kind!r} needs {self.lists.title} (from 0 on), but the space has {space.title}.",
                fix="set space and family.lists to the same numbers, with low=0",
            )

    @property
    def vocabulary(self) -> Vocabulary:
        values = range(self.lists.levels)
        return Vocabulary(words=(*map(str, values), *(f"f{value}" for value in values)))

    @property
    def longest_prompt(self) -> int:
        return self.lists.longest

    @property
    def longest_answer(self) -> int:
        return 2

    def draw(self, space: Space, key: Array) -> ChainsTeacher:
        self.check(space)
        keys = jax.random.split(key, self.lists.levels)
        functions = jax.vmap(lambda own: jax.random.permutation(own, self.lists.levels))(keys)
        return ChainsTeacher(functions, self.lists.width, self.rule)
