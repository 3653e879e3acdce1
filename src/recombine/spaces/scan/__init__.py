"""The commands of SCAN, with words in the roles of one or two phrases as constituents.

`language` has the grammar: words, actions and the numbering of commands.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Literal

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.spaces.base import Space
from recombine.spaces.rows import membership
from recombine.spaces.scan import language


class ScanSpace(Space):
    """All 20,910 commands. Constituents are conjunctions, words of the first phrase and words of the last.

    A direction and a manner are separate constituents, so "around right" is a pair that can be covered or not. A single
    phrase is both the first and the last: see `recombine.spaces.scan.language`.
    """

    kind: Literal["scan"] = "scan"

    @property
    def width(self) -> int:
        return language.WIDTH

    @property
    def slots(self) -> int:
        return language.MOST_WORDS

    @property
    def size(self) -> int:
        return language.SIZE

    def sample(self, key: Array) -> Int[Array, " slots"]:
        row = language.rows_of(jax.random.randint(key, (), 0, self.size))
        assert isinstance(row, jax.Array)
        return row

    def contains(self, rows: Int[np.ndarray, "n slots"]) -> np.ndarray:
        rows = np.asarray(rows)
        ordered = np.all((rows[:, 1:] > rows[:, :-1]) | (rows[:, 1:] == self.width), axis=1)
        possible = ordered & np.all((rows >= 0) & (rows <= self.width), axis=1)
        return np.asarray(language.numbers(np.where(possible[:, None], rows, self.width)) >= 0)

    def _rows(self) -> Int[np.ndarray, "size slots"]:
        return _every().copy()

    def interactions(self, strength: int) -> int:
        return len(_meeting(strength))

    def list_interactions(self, strength: int) -> Int[np.ndarray, "n strength"]:
        return _meeting(strength).copy()

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        return _moment().copy()

    @property
    def title(self) -> str:
        return f"{self.size} commands of SCAN"

    def label(self, constituent: int) -> str:
        joining, words = len(language.CONJUNCTIONS), language.PHRASE_WORDS
        if not 0 <= constituent < self.width:
            raise IndexError(f"constituent {constituent} of {self.width}")
        if constituent < joining:
            return language.CONJUNCTIONS[constituent]
        role, word = divmod(constituent - joining, len(words))
        return f"{('first', 'last')[role]}={words[word]}"

    def name(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> str:
        return " ".join(language.command(row))


@functools.cache
def _every() -> Int[np.ndarray, "size slots"]:
    """All commands, those with fewer constituents first."""
    rows = np.asarray(language.rows_of(np.arange(language.SIZE)))
    parts = (rows < language.WIDTH).sum(axis=1)
    return rows[np.lexsort((*rows.T[::-1], parts))]


@functools.cache
def _meeting(strength: int) -> Int[np.ndarray, "n strength"]:
    """All sets of `strength` constituents that occur together in some command."""
    if not 1 <= strength <= language.MOST_WORDS:
        return np.empty((0, max(0, strength)), np.int32)
    base = language.WIDTH + 1
    powers = base ** np.arange(strength)[::-1]
    codes = [np.empty(0, np.int64)]
    for columns in itertools.combinations(range(language.MOST_WORDS), strength):
        parts = _every()[:, columns]
        # The pad is at the end, so a set is complete if its last constituent is one.
        codes.append(np.unique(parts[parts[:, -1] < language.WIDTH] @ powers))
    numbers = np.unique(np.concatenate(codes))
    return (numbers[:, None] // powers % base).astype(np.int32)


@functools.cache
def _moment() -> Float[np.ndarray, "width width"]:
    """E[z z'] over all commands."""
    members = membership(_every(), language.WIDTH)
    return (members.T @ members).toarray() / language.SIZE
