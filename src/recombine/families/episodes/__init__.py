"""Families of many small tasks: each episode has its own rules, and the prompt may show study examples of them."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.language.vocabulary import PAD
from recombine.spaces import ProductSpace, Space

ALONE = "alone"
"""The context in which the prompt has the query and no study examples: a network can only know the answer by its weights."""
QUESTION = "?"
"""The word that ends a prompt."""
FACTORS = ("context", "block", "episode", "query")
"""The factors of a space of episodes. Block and episode are the two digits of an episode's number."""


def episode_space(contexts: Sequence[str], queries: Sequence[str], side: int = 64) -> dict[str, Any]:
    """The settings of a space of episodes.

    Args:
        contexts: What a prompt may show before its query.
        queries: The queries that each episode has. The first word of a name says its kind.
        side: There are side x side episodes.

    Example:
        ```python
        episode_space(("shown", "alone"), ("study 1", "new 1", "new 2"))
        ```
    """
    values = (list(contexts), [*map(str, range(side))], [*map(str, range(side))], list(queries))
    return {"kind": "product", "factors": dict(zip(FACTORS, values, strict=True))}


class EpisodeTeacher(SequenceTeacher):
    """The episodes of one replicate. Nothing is listed: the rules of an episode follow from its number."""

    key: Array
    levels: tuple[int, ...] = eqx.field(static=True)

    @abc.abstractmethod
    def study(self, key: Array, context: Int[Array, ""], number: Int[Array, ""]) -> Int[Array, " word"]:
        """The study examples that a prompt shows in a context. PAD at any place is left out.

        Args:
            key: Of the episode.
            context: The number of the context.
            number: The number of the episode.
        """

    @abc.abstractmethod
    def query(self, key: Array, context: Int[Array, ""], query: Int[Array, ""]) -> Int[Array, " word"]:
        """The tokens of a query. PAD at any place is left out."""

    @abc.abstractmethod
    def reply(self, key: Array, context: Int[Array, ""], query: Int[Array, ""]) -> Int[Array, " token"]:
        """The answer of a query, with END."""

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, sum(self.levels))

    def parts(self, task: Task) -> tuple[Array, Array, Array]:
        """The number of a task's context, that of its episode, and that of its query."""
        offsets = [sum(self.levels[:slot]) for slot in range(len(self.levels))]
        context, block, episode, query = (task.combination[slot] - offset for slot, offset in enumerate(offsets))
        return context, block * self.levels[2] + episode, query

    def rules(self, number: Int[Array, ""]) -> Array:
        """The key from which the rules of an episode are drawn."""
        return jax.random.fold_in(self.key, number)

    def prompt(self, task: Task) -> Int[Array, " word"]:
        context, number, query = self.parts(task)
        key = self.rules(number)
        shown = jnp.where(context == self.levels[0] - 1, PAD, self.study(key, context, number))
        words = jnp.concatenate([shown, self.query(key, context, query)])
        # Pads go to the end. A scatter compiles sooner than a sort.
        place = jnp.where(words == PAD, len(words), jnp.cumsum(words != PAD) - 1)
        return jnp.full_like(words, PAD).at[place].set(words, mode="drop")

    def answer(self, task: Task) -> Int[Array, " token"]:
        context, number, query = self.parts(task)
        return self.reply(self.rules(number), context, query)


class EpisodeFamily(SequenceFamily, abc.ABC):
    """Episodes with rules of their own. The space says what a prompt shows, the number of the episode, and the query."""

    contexts: ClassVar[tuple[str, ...]]
    """What prompts may show before the query, `alone` last."""

    @property
    @abc.abstractmethod
    def queries(self) -> tuple[str, ...]:
        """The names of the queries that each episode has."""

    def check(self, space: Space) -> None:
        factors = dict(space.factors) if isinstance(space, ProductSpace) else {}
        wanted = {"context": self.contexts, "query": self.queries}
        if tuple(factors) != FACTORS or any(factors[name] != values for name, values in wanted.items()):
            raise BadInput(
                f"The family {self.kind!r} needs the space of its episodes: {', '.join(FACTORS)}, with the contexts "
                f"{', '.join(self.contexts)} and {len(self.queries)} queries. Got {space.title}.",
                fix="leave the space out: it follows from the family",
            )

    def completed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if given.get("space") is not None and given["space"] != type(self).defaults.get("space"):
            return given
        return {**given, "space": episode_space(self.contexts, self.queries)}
