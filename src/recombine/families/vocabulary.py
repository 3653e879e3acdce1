"""The words of a sequence family and their numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int
from pydantic import BaseModel, ConfigDict, Field, model_validator

from recombine.errors import BadInput, did_you_mean

PAD, END, BEGIN = 0, 1, 2
"""The tokens for padding, for the end of an answer, and before its first word. The words of a vocabulary follow them."""
SPECIAL = 3


class Vocabulary(BaseModel):
    """Distinct words, numbered from 3 in the given order."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    words: tuple[str, ...] = Field(min_length=1)
    """The words. Each occurs once."""

    @model_validator(mode="after")
    def _differ(self) -> Vocabulary:
        twice = sorted({word for word in self.words if self.words.count(word) > 1})
        if twice:
            raise ValueError(f"a vocabulary has each word once; these occur twice: {', '.join(twice)}")
        return self

    @property
    def size(self) -> int:
        """Different tokens: the words, padding, end and beginning."""
        return SPECIAL + len(self.words)

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, start=SPECIAL)}

    def numbers(self, words: Iterable[str]) -> tuple[int, ...]:
        """The token numbers of words. Raises BadInput for an unknown word."""
        words = tuple(words)
        for word in words:
            if word not in self._numbers:
                raise BadInput(f"{word!r} is not a word of this vocabulary.", fix=did_you_mean(word, self.words))
        return tuple(self._numbers[word] for word in words)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.words[:8])) + (", ..." if len(self.words) > 8 else "")
        return f"Vocabulary({len(self.words)} words: {shown})"

    __str__ = __repr__

    def spelled(self, numbers: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """The words of an answer, up to its end. A token that is not a word becomes `?`."""
        words: list[str] = []
        for number in map(int, numbers):
            if number in (PAD, END):
                break
            known = SPECIAL <= number < self.size
            words.append(self.words[number - SPECIAL] if known else "?")
        return tuple(words)


def padded(sequences: Sequence[Sequence[int]], length: int) -> Int[np.ndarray, "sequence length"]:
    """Sequences of tokens as rows of equal length, padded at the end. Raises BadInput for a longer sequence."""
    longest = max(map(len, sequences), default=0)
    if longest > length:
        raise BadInput(f"A sequence has {longest} tokens, but there is room for {length}.")
    rows = np.full((len(sequences), length), PAD, np.int32)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows
