"""Texts, and texts that are decoded or encoded by a shift of their letters (Caesar ciphers), letter by letter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.language.vocabulary import END, PAD, SPECIAL, Vocabulary
from recombine.spaces.base import Space
from recombine.supports.cipher_stream import DECODE, ENCODE, LETTERS, TEXT, cipher_space, line_names

ALPHABET, LENGTH = 10, 9


class CiphersTeacher(SequenceTeacher):
    """Shifts letters. Nothing is random: the support decides which texts occur, and how often."""

    alphabet: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, self.width)

    def _line(self, task: Task) -> tuple[Int[Array, ""], Int[Array, " letter"], Int[Array, " letter"]]:
        """The kind of the line, its plain text, and that text shifted by the line's shift (by zero where the line is a text)."""
        kind, lines = task.combination[0], len(line_names(self.alphabet))
        positions = jnp.arange(len(task.combination) - 1)
        plain = task.combination[1:] - lines - self.alphabet * positions
        shift = jnp.where(kind > 0, (kind - 1) % (self.alphabet - 1) + 1, 0)
        return kind, plain, (plain + shift) % self.alphabet

    def prompt(self, task: Task) -> Int[Array, " word"]:
        kind, plain, shifted = self._line(task)
        shifts = self.alphabet - 1
        words = SPECIAL + self.alphabet + shifts
        decodes = kind <= shifts
        given = SPECIAL + jnp.where(decodes, shifted, plain)
        shift = SPECIAL + self.alphabet + (kind - 1) % shifts
        cipher = jnp.concatenate([jnp.stack([shift, jnp.where(decodes, words + 1, words + 2)]), given])
        alone = jnp.full(len(cipher), PAD).at[0].set(words)
        return jnp.where(kind > 0, cipher, alone)

    def answer(self, task: Task) -> Int[Array, " token"]:
        kind, plain, shifted = self._line(task)
        letters = jnp.where(kind < self.alphabet, plain, shifted)
        return jnp.concatenate([SPECIAL + letters, jnp.array([END])])


class Ciphers(SequenceFamily):
    """Lines "text: plain", "k decode: cipher > plain" and "k encode: plain > cipher". A cipher has each letter of the plain
    text k places later in the alphabet, modulo its length.

    A text is predicted without a prompt, so its letters can be predicted only as well as the language is known.
    """

    kind: Literal["ciphers"] = "ciphers"
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": cipher_space(ALPHABET, LENGTH).model_dump(mode="json"),
        "support": "cipher-stream",
        "model": "decoder",
    }
    alphabet: int = Field(default=ALPHABET, ge=3, le=len(LETTERS))
    """Letters of the alphabet."""
    length: PositiveInt = LENGTH
    """Letters of each text."""

    def check(self, space: Space) -> None:
        wanted = cipher_space(self.alphabet, self.length)
        if space != wanted:
            raise BadInput(
                f"The family 'ciphers' needs lines of {self.length} letters out of {self.alphabet} ({wanted.title}), but the "
                f"space has {space.title}.",
                fix="leave the space out, or set family.alphabet and family.length to its numbers",
            )

    @property
    def vocabulary(self) -> Vocabulary:
        shifts = (str(shift) for shift in range(1, self.alphabet))
        return Vocabulary(words=(*LETTERS[: self.alphabet], *shifts, TEXT, DECODE, ENCODE))

    @property
    def longest_prompt(self) -> int:
        return 2 + self.length

    @property
    def longest_answer(self) -> int:
        return self.length + 1

    def draw(self, space: Space, key: Array) -> CiphersTeacher:
        self.check(space)
        return CiphersTeacher(self.alphabet, space.width)
