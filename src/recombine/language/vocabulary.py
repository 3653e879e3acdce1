"""The words of a sequence family and their numbers."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput, did_you_mean

PAD, END, BEGIN = 0, 1, 2
"""The tokens for padding, for the end of an answer, and before its first word. The words of a vocabulary follow them."""
SPECIAL = 3


@dataclasses.dataclass(frozen=True, repr=False)
class Vocabulary:
    """Distinct words, numbered from 3 in the given order."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        twice = sorted({word for word in self.words if self.words.count(word) > 1})
        if twice:
            raise ValueError(f"a vocabulary has each word once; these occur twice: {', '.join(twice)}")

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

    def spelled(self, numbers: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """The words of an answer, up to its end. A token that is not a word becomes `?`."""
        answer = itertools.takewhile(lambda number: number not in (PAD, END), map(int, numbers))
        return tuple(self.words[number - SPECIAL] if SPECIAL <= number < self.size else "?" for number in answer)


def padded(sequences: Sequence[Sequence[int]], length: int) -> Int[np.ndarray, "sequence length"]:
    """Sequences of tokens as rows of equal length, padded at the end. Raises BadInput for a longer sequence."""
    longest = max(map(len, sequences), default=0)
    if longest > length:
        raise BadInput(f"A sequence has {longest} tokens, but there is room for {length}.")
    rows = np.full((len(sequences), length), PAD, np.int32)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows
