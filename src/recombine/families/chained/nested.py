"""Nested expressions over one random operation, ((-2 (1 3)) 0): an operand joins on the left or on the right at every level."""

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

LISTS = ListSpace(low=-2, high=2, longest=7)


class NestedTeacher(SequenceTeacher):
    """The operation of one replicate, by `operation[operand, value]`: what an operand makes of the value inside.

    Each operand permutes the values, so no level loses information. Negative operands stand on the left.
    """

    operation: Int[Array, "operand value"]
    low: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, self.width)

    def _entries(self, task: Task) -> tuple[Int[Array, " slots"], Int[Array, ""]]:
        """The innermost value and the operands, from the inside to the outside, and how many there are."""
        real = task.combination < self.width
        return jnp.where(real, task.combination % len(self.operation), 0), jnp.sum(real)

    def prompt(self, task: Task) -> Int[Array, " word"]:
        entries, number = self._entries(task)
        open_bracket = SPECIAL + len(self.operation)
        slots = jnp.arange(len(entries))
        operand = (slots > 0) & (slots < number)
        left = operand & (entries + self.low < 0)
        # Each level adds a bracket on both sides, and its operand on one: `(operand inside)` or `(inside operand)`.
        before, after = jnp.where(left, 2, operand), jnp.where(operand & ~left, 2, operand)
        # The outermost level begins the prompt, so what precedes a level is all that lies further out.
        start = jnp.sum(before) - jnp.cumsum(before)
        middle = jnp.sum(before)
        stop = middle + jnp.cumsum(after)  # One token beyond the innermost value, then the levels around it.
        words = jnp.full(longest_prompt(len(entries)) + 1, PAD)
        nowhere = len(words)
        words = words.at[middle].set(SPECIAL + entries[0])
        words = words.at[jnp.where(operand, start, nowhere)].set(open_bracket, mode="drop")
        words = words.at[jnp.where(left, start + 1, nowhere)].set(SPECIAL + entries, mode="drop")
        words = words.at[jnp.where(operand, stop, nowhere)].set(open_bracket + 1, mode="drop")
        words = words.at[jnp.where(operand & ~left, stop - 1, nowhere)].set(SPECIAL + entries, mode="drop")
        return words[:-1]

    def answer(self, task: Task) -> Int[Array, " token"]:
        entries, number = self._entries(task)
        value = entries[0]
        for place in range(1, len(entries)):
            value = jnp.where(place < number, self.operation[entries[place], value], value)
        return jnp.stack([SPECIAL + value, jnp.asarray(END, value.dtype)])


def longest_prompt(entries: int) -> int:
    """The tokens of an expression with this number of values: each level has two brackets and an operand."""
    return 3 * entries - 2


class Nested(SequenceFamily):
    """Bracketed expressions such as `( -2 ( ( 1 2 ) 0 ) )`, answered by their value under a random operation.

    A list of numbers is an expression: its first number is the innermost value, and each further number is the operand of the
    next level. Negative operands stand on the left. The value is worked out from the inside to the outside, so levels are the
    steps of a chain that has to be found in the brackets first.
    """

    kind: Literal["nested"] = "nested"
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": LISTS.model_dump(mode="json"),
        "support": {"kind": "short-lists", "longest": 6},
        "model": "decoder",
    }
    lists: ListSpace = LISTS
    """The expressions; the same as the space."""

    def check(self, space: Space) -> None:
        if space != self.lists or not self.lists.low < 0 <= self.lists.high:
            raise BadInput(
                f"The family {self.kind!r} needs {self.lists.title} (negative and other numbers), but the space has {space.title}.",
                fix="set space and family.lists to the same numbers, with low below zero and high from zero on",
            )

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(words=(*map(str, range(self.lists.low, self.lists.high + 1)), "(", ")"))

    @property
    def longest_prompt(self) -> int:
        return longest_prompt(self.lists.longest)

    @property
    def longest_answer(self) -> int:
        return 2

    def draw(self, space: Space, key: Array) -> NestedTeacher:
        self.check(space)
        keys = jax.random.split(key, self.lists.levels)
        operation = jax.vmap(lambda own: jax.random.permutation(own, self.lists.levels))(keys)
        return NestedTeacher(operation, self.lists.low, self.lists.width)
