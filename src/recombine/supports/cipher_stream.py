"""A stream of lines: texts with unequal probabilities, and texts decoded and encoded by shifts, one of them common."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, NonNegativeFloat, PositiveInt

from recombine.errors import BadInput
from recombine.language.drawn import LEVELS, DrawnLanguage, Texts
from recombine.spaces import ProductSpace, Space
from recombine.spaces.rows import Rows, RowSet, row_keys
from recombine.supports import Listed, SupportKind

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEXT, DECODE, ENCODE = "text", "decode", "encode"
ROUNDS = 30
"""The number of rounds in which more lines are drawn while there are too few different ones."""


def line_names(alphabet: int) -> tuple[str, ...]:
    """The kinds of lines: a text, or a text decoded or encoded by a shift of 1 to `alphabet - 1`."""
    ciphers = (f"{way} {shift}" for way in (DECODE, ENCODE) for shift in range(1, alphabet))
    return TEXT, *ciphers


def cipher_space(alphabet: int, length: int) -> ProductSpace:
    """The space of lines with texts of one length: the kind of line, and each letter of the plain text."""
    letters = tuple(LETTERS[:alphabet])
    positions = ((f"letter {position}", letters) for position in range(1, length + 1))
    return ProductSpace(factors=(("line", line_names(alphabet)), *positions))


class StreamSupport(Listed):
    """The lines of a stream, weighted by how often they were drawn, and the language that they come from."""

    language: DrawnLanguage
    graded: Int[np.ndarray, "level text letter"]
    """The held-out texts at each level of probability. No line of the stream contains them."""
    common: int
    """The common shift."""


class CipherStream(SupportKind):
    """Lines drawn one by one: a text with probability `text`, otherwise a decoded or an encoded text, equally often.

    All shifts occur. A line that is drawn again has a larger weight. Held-out texts have three levels of probability with
    the same letters, and occur in no line. They do not depend on the shares of the stream.
    """

    kind: Literal["cipher-stream"] = "cipher-stream"
    words: PositiveInt = 3
    """The number of words in a text. All words have equally many letters."""
    lexicon: PositiveInt = 30
    """The number of words in the language."""
    law: NonNegativeFloat = 1.5
    """How fast the probability of a word falls with its rank after the previous word."""
    made_up: float = Field(default=0.1, gt=0, lt=1)
    """The share of words made of random letters."""
    even_texts: bool = False
    """Whether all texts of the stream are random letters, so that all are equally probable."""
    text: float = Field(default=0.5, gt=0, lt=1)
    """The share of lines that are plain texts."""
    skew: float = Field(default=60.0, ge=1)
    """How many times as often as each other shift the common shift occurs."""
    common: PositiveInt | None = None
    """The common shift. By default it is drawn for each replicate."""
    number: int = Field(default=50_000, ge=1, le=500_000)
    """The number of different lines in the stream."""
    reserve: PositiveInt = 64
    """The number of held-out texts at each level of probability."""

    def obstacle(self, space: Space) -> BadInput | None:
        fits = isinstance(space, ProductSpace) and space.slots > 1 and 3 <= space.levels[1] <= len(LETTERS)
        if not fits or space != cipher_space(space.levels[1], space.slots - 1):  # type: ignore[attr-defined]
            return BadInput(
                f"cipher-stream needs the space of cipher lines, got {space.title}.",
                fix="family=ciphers, which sets its space",
            )
        return None

    def check(self, space: Space) -> None:
        super().check(space)
        assert isinstance(space, ProductSpace)
        alphabet, length = space.levels[1], space.slots - 1
        if length % self.words:
            raise BadInput(
                f"Texts of {length} letters cannot be divided into {self.words} words of equal length.",
                fix=f"words must divide {length}",
            )
        if self.common is not None and self.common >= alphabet:
            raise BadInput(
                f"common={self.common} is not a shift of {alphabet} letters.", fix=f"choose 1 to {alphabet - 1}"
            )
        if 8 * (self.number + self.reserve * len(LEVELS) * len(line_names(alphabet))) > space.size:
            raise BadInput(
                f"Texts of {length} letters have too few combinations for number={self.number} different lines.",
                fix=f"number={space.size // 16} or fewer, or longer texts",
            )

    def length(self, space: Space) -> int:
        return self.number

    def shares(self, alphabet: int, common: int) -> Float[np.ndarray, " line"]:
        """The share of each kind of line."""
        weights = np.ones(alphabet - 1)
        weights[common - 1] = self.skew
        ciphers = (1 - self.text) * np.tile(weights / weights.sum(), 2) / 2
        return np.concatenate([[self.text], ciphers])

    def draw(self, space: Space, seed: int) -> StreamSupport:
        self.check(space)
        assert isinstance(space, ProductSpace)
        alphabet, length = space.levels[1], space.slots - 1
        # Language and held-out texts come first, so that they do not depend on the stream.
        rng = np.random.default_rng([seed, 61])
        language = DrawnLanguage.draw(rng, alphabet, length // self.words, self.lexicon, self.law, self.made_up)
        graded = language.graded(rng, self.reserve, self.words)
        drawn = int(rng.integers(1, alphabet))
        common = drawn if self.common is None else self.common
        held_out = graded.reshape(-1, length)
        kinds = len(line_names(alphabet))
        reserved = rows_of(space, np.repeat(np.arange(kinds), len(held_out)), np.tile(held_out, (kinds, 1)))
        rows, weights = self._lines(space, language, held_out, self.shares(alphabet, common), rng)
        missing = np.setdiff1d(np.arange(kinds), texts_of(space, rows)[0])
        if len(missing):
            raise BadInput(
                f"No line of the stream is of the kind {line_names(alphabet)[missing[0]]!r}, so it would never be trained.",
                fix="choose a larger number, or a smaller skew",
            )
        support = StreamSupport(space, rows, weights, reserved)
        support.language, support.graded, support.common = language, graded, common
        return support

    def _lines(
        self,
        space: ProductSpace,
        language: DrawnLanguage,
        held_out: Texts,
        shares: Float[np.ndarray, " line"],
        rng: np.random.Generator,
    ) -> tuple[Rows, Float[np.ndarray, " n"]]:
        """The stream up to its last new line: its different lines, and how often each was drawn."""
        forbidden = RowSet(held_out)
        rows, first = np.empty((0, space.slots), np.int32), np.empty(0, int)
        for _ in range(ROUNDS):
            number = 2 * self.number
            kinds = rng.choice(len(shares), size=number, p=shares)
            if self.even_texts:
                texts = rng.integers(0, language.alphabet, (number, space.slots - 1))
            else:
                texts = language.texts(rng, number, self.words)
            kept = ~forbidden.contains(texts)
            rows = np.concatenate([rows, rows_of(space, kinds[kept], texts[kept])])
            _, first, inverse = np.unique(row_keys(rows), return_index=True, return_inverse=True)
            if len(first) >= self.number:
                order = np.argsort(first)[: self.number]
                last = int(first[order[-1]])
                counts = np.bincount(inverse.ravel()[: last + 1], minlength=len(first))
                return rows[first[order]], counts[order].astype(float)
        raise BadInput(
            f"A stream of {len(rows)} lines has {len(first)} different ones, fewer than number={self.number}.",
            fix="choose a smaller number, a smaller law or more words",
        )


def rows_of(space: ProductSpace, kinds: Int[np.ndarray, " n"], texts: Texts) -> Rows:
    """The rows of lines of these kinds with these plain texts."""
    values = np.concatenate([kinds[:, None], texts], axis=1)
    return (values + np.array(space.offsets)).astype(np.int32)


def texts_of(space: ProductSpace, rows: Rows) -> tuple[Int[np.ndarray, " n"], Texts]:
    """The kinds of lines, and their plain texts."""
    values = np.asarray(rows) - np.array(space.offsets)
    return values[:, 0], values[:, 1:].astype(np.int64)
