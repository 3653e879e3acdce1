"""The pairs of a table as combinations: the words of the input, and the number of the pair."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.language.pair_table import Pairs, PairSource
from recombine.spaces.base import Space
from recombine.spaces.rows import membership

NUMBERING = 2
"""The number of constituents that say which pair it is; the others are words."""


class PairSpace(Space):
    """The pairs of the family's table. The family sets it: `family=pairs table=cogs.tsv`.

    The constituents of a pair are the distinct words of its input. Different inputs may have the same words, so two
    more constituents say the number of the pair, in two digits. They are no parts: certificates and strata ignore them.
    """

    kind: Literal["pairs"] = "pairs"
    source: tuple[tuple[str, str], ...] = ()
    """The file, its hash and its columns by name, as the family has them."""

    def meaning(self) -> dict[str, Any]:
        """The configuration without the path of the file: its hash says what is in it."""
        source = [list(item) for item in self.source if item[0] != "table"]
        return super().meaning() | {"source": source}

    @property
    def of(self) -> PairSource:
        """The file and its columns."""
        return PairSource(**dict(self.source))  # pyright: ignore[reportArgumentType]

    @property
    def pairs(self) -> Pairs:
        """The pairs of the table."""
        return self.of.pairs()

    @property
    def _table(self) -> _Table:
        return _table(self.of)

    @property
    def base(self) -> int:
        """How many values a digit of the number has."""
        return self._table.base

    @property
    def first_word(self) -> int:
        """The constituent of the first word."""
        return NUMBERING * self.base

    @property
    def width(self) -> int:
        return self.first_word + len(self.pairs.input_words)

    @property
    def slots(self) -> int:
        return self._table.rows.shape[1]

    @property
    def size(self) -> int:
        return len(self.pairs.inputs)

    def sample(self, key: Array) -> Int[Array, " slots"]:
        return jnp.asarray(self._table.rows)[jax.random.randint(key, (), 0, self.size)]

    def numbers(self, rows: Any) -> Any:
        """The numbers of pairs, from their rows."""
        return rows[..., 0] * self.base + rows[..., 1] - self.base

    def rows_of(self, numbers: Int[np.ndarray, " n"]) -> Int[np.ndarray, "n slots"]:
        """The rows of pairs, from their numbers."""
        return self._table.rows[numbers]

    def contains(self, rows: Int[np.ndarray, "n slots"]) -> np.ndarray:
        rows = np.asarray(rows)
        numbers = np.asarray(self.numbers(rows.astype(np.int64)))
        inside = (numbers >= 0) & (numbers < self.size)
        return inside & (self._table.rows[np.where(inside, numbers, 0)] == rows).all(axis=1)

    def _rows(self) -> Int[np.ndarray, "size slots"]:
        rows = self._table.rows
        parts = (rows < self.width).sum(axis=1)
        return rows[np.lexsort((*rows.T[::-1], parts))]

    def interactions(self, strength: int) -> int:
        return len(_meeting(self.of, strength))

    def list_interactions(self, strength: int) -> Int[np.ndarray, "n strength"]:
        return _meeting(self.of, strength).copy()

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        members = membership(self._table.rows, self.width)
        return (members.T @ members).toarray() / self.size

    @property
    def title(self) -> str:
        return f"{self.size} pairs with {len(self.pairs.input_words)} input words"

    def label(self, constituent: int) -> str:
        if not 0 <= constituent < self.width:
            raise IndexError(f"constituent {constituent} of {self.width}")
        digit, value = divmod(constituent, self.base)
        if constituent < self.first_word:
            return f"{('block', 'place')[digit]}={value}"
        return self.pairs.input_words[constituent - self.first_word]

    def name(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> str:
        return " ".join(self.pairs.inputs[int(self.numbers(np.asarray(row)))])


class _Table:
    """The pairs as rows."""

    def __init__(self, pairs: Pairs) -> None:
        self.base = max(1, math.isqrt(len(pairs.inputs) - 1) + 1)
        first = NUMBERING * self.base
        width = first + len(pairs.input_words)
        numbers = {word: first + index for index, word in enumerate(pairs.input_words)}
        sets = [sorted({numbers[word] for word in words}) for words in pairs.inputs]
        slots = NUMBERING + max(map(len, sets))
        self.rows = np.full((len(sets), slots), width, np.int32)
        for number, (row, parts) in enumerate(zip(self.rows, sets, strict=True)):
            block, place = divmod(number, self.base)
            row[: NUMBERING + len(parts)] = [block, self.base + place, *parts]


@functools.lru_cache(maxsize=4)
def _table(source: PairSource) -> _Table:
    return _Table(source.pairs())


@functools.lru_cache(maxsize=8)
def _meeting(source: PairSource, strength: int) -> Int[np.ndarray, "n strength"]:
    """The sets of `strength` constituents that occur together in some pair."""
    table = _table(source)
    rows, width = table.rows, NUMBERING * table.base + len(source.pairs().input_words)
    if not 1 <= strength <= rows.shape[1]:
        return np.empty((0, max(0, strength)), np.int32)
    found = [np.empty((0, strength), np.int32)]
    for columns in itertools.combinations(range(rows.shape[1]), strength):
        parts = rows[:, columns]
        found.append(np.unique(parts[parts[:, -1] < width], axis=0))
    return np.unique(np.concatenate(found), axis=0).astype(np.int32)
