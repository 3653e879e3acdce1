"""Texts, and texts decoded or encoded by a shift of their letters: lines of one stream, said letter by letter."""

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
from recombine.families.vocabulary import END, PAD, SPECIAL, Vocabulary
from recombine.spaces.base import Space
from recombine.supports.cipher_stream import DECODE, ENCODE, LETTERS, TEXT, cipher_space, line_names

ALPHABET, LENGTH = 10, 9


class CiphersTeacher(SequenceTeacher):
    """Moves letters on. Nothing is drawn: which texts there are, and how often, is the support's."""

    alphabet: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task(row, jnp.ones(len(row)), jnp.zeros(self.width).at[row].set(1.0))

    def _line(self, task: Task) -> tuple[Int[Array, ""], Int[Array, " letter"], Int[Array, " letter"]]:
        """What the line is, its plain text, and that text moved on by the line's shift (a text's by none)."""
        kind, lines = task.combination[0], len(line_names(self.alphabet))
        places = jnp.arange(len(task.combination) - 1)
        plain = task.combination[1:] - lines - self.alphabet * places
        shift = jnp.where(kind > 0, (kind - 1) % (self.alphabet - 1) + 1, 0)
        return kind, plain, (plain + shift) % self.alphabet

    def prompt(self, task: Task) -> Int[Array, " word"]:
        kind, plain, moved = self._line(task)
        shifts = self.alphabet - 1
        ways = SPECIAL + self.alphabet + shifts
        decodes = kind <= shifts
        given = SPECIAL + jnp.where(decodes, moved, plain)
        shift = SPECIAL + self.alphabet + (kind - 1) % shifts
        cipher = jnp.concatenate([jnp.stack([shift, jnp.where(decodes, ways + 1, ways + 2)]), given])
        alone = jnp.full(len(cipher), PAD).at[0].set(ways)
        return jnp.where(kind > 0, cipher, alone)

    def answer(self, task: Task) -> Int[Array, " token"]:
        kind, plain, moved = self._line(task)
        said = jnp.where(kind < self.alphabet, plain, moved)
        return jnp.concatenate([SPECIAL + said, jnp.array([END])])


class Ciphers(SequenceFamily):
    """Lines "text: plain", "k decode: cipher > plain" and "k encode: plain > cipher", where a cipher has each letter of the
    plain text k places further on, round the end of the alphabet.

    Of a text nothing is given, so that its letters can be told only as well as one knows the language.
    """

    kind: Literal["ciphers"] = "ciphers"
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": cipher_space(ALPHABET, LENGTH).model_dump(mode="json"),
        "support": "cipher-stream",
        "model": "decoder",
    }
    alphabet: int = Field(default=ALPHABET, ge=3, le=len(LETTERS))
    """How many letters there are."""
    length: PositiveInt = LENGTH
    """The letters of a text."""

    def check(self, space: Space) -> None:
        wanted = cipher_space(self.alphabet, self.length)
        if space != wanted:
            raise BadInput(
                f"The family 'ciphers' has lines of {self.length} letters out of {self.alphabet} ({wanted.title}), the space "
                f"has {space.title}.",
                fix="leave the space out, or give family.alphabet and family.length its numbers",
            )

    @property
    def vocabulary(self) -> Vocabulary:
        shifts = (str(shift) for shift in range(1, self.alphabet))
        return Vocabulary(words=(*LETTERS[: self.alphabet], *shifts, TEXT, DECODE, ENCODE))

    @property
    def longest_prompt(self) -> int:
        return 2 + self.length

    @property
    def longest(self) -> int:
        return self.length + 1

    def draw(self, space: Space, key: Array) -> CiphersTeacher:
        self.check(space)
        return CiphersTeacher(self.alphabet, space.width)
