"""Tasks on strings that the prompt names, one alone or one after the other: `reverse sort d a c b` means do the first, then the second."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int
from pydantic import Field, field_validator

from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.language.vocabulary import END, PAD, SPECIAL, Vocabulary
from recombine.spaces import ProductSpace, Space

Name = Literal["reverse", "shift", "sort", "swap", "rotate", "repeat"]
NOTHING = "nothing"
"""The second task of a combination that has only one."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TASKS: tuple[Name, ...] = ("reverse", "shift", "sort", "swap")

Letters = Int[Array, " letter"]

RULES: dict[Name, Callable[[Letters, int], Letters]] = {
    "reverse": lambda letters, alphabet: letters[::-1],
    "shift": lambda letters, alphabet: (letters + 1) % alphabet,
    "sort": lambda letters, alphabet: jnp.sort(letters),
    "swap": lambda letters, alphabet: jnp.roll(letters, len(letters) // 2),
    "rotate": lambda letters, alphabet: jnp.roll(letters, -1),
    "repeat": lambda letters, alphabet: jnp.tile(letters[: len(letters) // 2], 2),
}
"""What each task makes of a string: backwards; the next letter of the alphabet, and the first after the last; in the order of the
alphabet; second half first; the first letter last; the first half twice. All keep the length."""


def string_space(tasks: Sequence[str]) -> ProductSpace:
    """The combinations of a first task and of a second one, which may be none."""
    return ProductSpace(factors=(("first", tuple(tasks)), ("then", (NOTHING, *tasks))))


def composites(tasks: Sequence[str], distances: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Pairs of tasks whose second is so many places after the first in the list, counted round its end.

    Every distance has each task once as the first and once as the second, so no task is rarer than others.
    """
    return tuple((task, tasks[(n + by) % len(tasks)]) for by in distances for n, task in enumerate(tasks))


class StringTask(Task):
    """One or two tasks with a string."""

    letters: Letters


class StringTasksTeacher(SequenceTeacher):
    """Draws strings. The rules are the same in all replicates."""

    tasks: tuple[Name, ...] = eqx.field(static=True)
    alphabet: int = eqx.field(static=True)
    length: int = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> StringTask:
        plain = Task.unweighted(row, 2 * len(self.tasks) + 1)
        letters = jax.random.randint(key, (self.length,), 0, self.alphabet)
        return StringTask(plain.combination, plain.coefficients, plain.vector, letters)

    def _numbers(self, task: Task) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """The number of the first task, and that of the second; -1 for none."""
        first, then = task.combination
        return first, then - len(self.tasks) - 1

    def prompt(self, task: Task) -> Int[Array, " word"]:
        assert isinstance(task, StringTask)
        first, then = self._numbers(task)
        names, letters = SPECIAL + self.alphabet, SPECIAL + task.letters
        alone = jnp.concatenate([(names + first)[None], letters, jnp.array([PAD])])
        both = jnp.concatenate([jnp.stack([names + first, names + then]), letters])
        return jnp.where(then < 0, alone, both)

    def answer(self, task: Task) -> Int[Array, " token"]:
        assert isinstance(task, StringTask)
        first, then = self._numbers(task)
        done = self._done(first, task.letters)
        done = jnp.where(then < 0, done, self._done(then, done))
        return jnp.append(SPECIAL + done, END)

    def _done(self, number: Int[Array, ""], letters: Letters) -> Letters:
        return jnp.stack([RULES[task](letters, self.alphabet) for task in self.tasks])[number]


class StringTasks(SequenceFamily):
    """Short strings and what is to be done with them, `reverse a b c d` or `reverse sort a b c d`: first the one, then the other.

    A combination is a first task and a second one, which may be `nothing`. Strings are drawn anew for every example.
    """

    kind: Literal["string-tasks"] = "string-tasks"
    defaults: ClassVar[Mapping[str, Any]] = {**SequenceFamily.defaults, "model": "decoder"}
    tasks: tuple[Name, ...] = Field(default=TASKS, min_length=2)
    """The tasks, by name."""
    alphabet: int = Field(default=8, ge=2, le=len(LETTERS))
    """Different letters."""
    length: int = Field(default=6, ge=2, multiple_of=2)
    """Letters of each string."""

    @field_validator("tasks")
    @classmethod
    def _differ(cls, tasks: tuple[Name, ...]) -> tuple[Name, ...]:
        if len(set(tasks)) < len(tasks):
            raise ValueError(f"each task may be named once, got {', '.join(tasks)}")
        return tasks

    def completed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The space of these tasks. Without a support, all single tasks are trained, and composites are held out."""
        singles = {"kind": "given", "combinations": [[task, NOTHING] for task in self.tasks]}
        return {"space": string_space(self.tasks), "support": singles, **given}

    def check(self, space: Space) -> None:
        wanted = string_space(self.tasks)
        if space != wanted:
            raise BadInput(
                f"The family 'string-tasks' has the tasks {', '.join(self.tasks)} and needs the space {wanted.title}, but the space "
                f"has {space.title}.",
                fix="leave the space out",
            )

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(words=(*LETTERS[: self.alphabet], *self.tasks))

    @property
    def longest_prompt(self) -> int:
        return 2 + self.length

    @property
    def longest_answer(self) -> int:
        return self.length + 1

    def draw(self, space: Space, key: Array) -> StringTasksTeacher:
        self.check(space)
        return StringTasksTeacher(self.tasks, self.alphabet, self.length)
