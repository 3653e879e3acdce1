"""The words of a sequence family and their numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int
from pydantic import BaseModel, ConfigDict, Field, model_validator

from recombine.errors import BadInput, did_you_mean

PAD, END, BEGIN = 0, 1, 2
"""No word; what closes an answer; what stands before its first word. Words follow them."""
SPECIAL = 3


class Vocabulary(BaseModel):
    """Different words, numbered from 3 on in the order given."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    words: tuple[str, ...] = Field(min_length=1)
    """The words, each once."""

    @model_validator(mode="after")
    def _differ(self) -> Vocabulary:
        twice = sorted({word for word in self.words if self.words.count(word) > 1})
        if twice:
            raise ValueError(f"a vocabulary has each word once, these came twice: {', '.join(twice)}")
        return self

    @property
    def size(self) -> int:
        """How many numbers a token can have, with pad, end and beginning."""
        return SPECIAL + len(self.words)

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, start=SPECIAL)}

    def numbers(self, words: Iterable[str]) -> tuple[int, ...]:
        """The numbers of words. Raises BadInput for one that is not known."""
        found = []
        for word in words:
            if word not in self._numbers:
                raise BadInput(
                    f"{word!r} is not a word of this vocabulary.", fix=did_you_mean(word, self.words)
                )
            found.append(self._numbers[word])
        return tuple(found)

    def spelled(self, numbers: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """The words of an answer, up to its end. Whatever stands there that is no word is shown as `?`."""
        words: list[str] = []
        for number in (int(one) for one in numbers):
            if number in (PAD, END):
                break
            known = SPECIAL <= number < self.size
            words.append(self.words[number - SPECIAL] if known else "?")
        return tuple(words)


def padded(sequences: Sequence[Sequence[int]], length: int) -> Int[np.ndarray, "sequence length"]:
    """Sequences of numbers as rows of equal length, with pads at their ends."""
    longest = max(map(len, sequences), default=0)
    if longest > length:
        raise BadInput(f"A sequence has {longest} tokens, more than the {length} that there is room for.")
    made = np.full((len(sequences), length), PAD, np.int32)
    for row, sequence in zip(made, sequences, strict=True):
        row[: len(sequence)] = sequence
    return made
