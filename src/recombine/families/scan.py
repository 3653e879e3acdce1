"""SCAN: commands in words, answered by the actions that they describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
from jaxtyping import Array, Int

from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.language.vocabulary import END, PAD, SPECIAL, Vocabulary
from recombine.spaces.base import Space
from recombine.spaces.scan import ScanSpace, language


class ScanTeacher(SequenceTeacher):
    """The language of SCAN. Nothing is random: all replicates have the same tasks."""

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, language.WIDTH)

    def prompt(self, task: Task) -> Int[Array, " word"]:
        words = jnp.asarray(language.word_numbers(task.combination))
        return jnp.where(words < len(language.WORDS), SPECIAL + words, PAD)

    def answer(self, task: Task) -> Int[Array, " token"]:
        return action_tokens(task.combination)


def action_tokens(row: Int[Array, " slots"]) -> Int[Array, " token"]:
    """The tokens of a command's actions, followed by END."""
    actions = jnp.asarray(language.action_numbers(row))
    real = actions < len(language.ACTIONS)
    tokens = jnp.where(real, SPECIAL + len(language.WORDS) + actions, PAD)
    return jnp.append(tokens, PAD).at[jnp.sum(real)].set(END)


class Scan(SequenceFamily):
    """Commands of one or two phrases, and their actions. For `space=scan`."""

    kind: Literal["scan"] = "scan"
    defaults: ClassVar[Mapping[str, Any]] = {**SequenceFamily.defaults, "space": "scan", "support": "scan-split"}

    def check(self, space: Space) -> None:
        if not isinstance(space, ScanSpace):
            raise BadInput(f"The family 'scan' needs the space of SCAN commands, got {space.title}.", fix="space=scan")

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(words=(*language.WORDS, *language.ACTIONS))

    @property
    def longest_prompt(self) -> int:
        return language.MOST_WORDS

    @property
    def longest_answer(self) -> int:
        return language.MOST_ACTIONS + 1

    def draw(self, space: Space, key: Array) -> ScanTeacher:
        self.check(space)
        return ScanTeacher()
