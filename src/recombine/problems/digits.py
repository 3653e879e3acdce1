"""Numbers as text: fixed-point digits, a token each, with separators between numbers.

A number has as many digits as its `Field` says, leading zeros included, and a sign where it can be negative; where
the decimal point stands follows from the field, so there is no token for it: 134.32 is `13432`. Texts of one kind
therefore have one length. Reading takes anything: what is not written like this is not a number (NaN).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput

PAD, END, BEGIN = 0, 1, 2
"""No word; what closes an answer; what stands before its first word. Words follow them, as in sequence families."""
WORDS = (",", "+", "-", *"0123456789")
"""The words of all texts here. The number of the first is 3."""
SEPARATOR, PLUS, MINUS, ZERO = range(3, 7)
SIZE = 3 + len(WORDS)
"""How many numbers a token can have."""

_SHOWN = np.array(["\n", "\n", "?", *WORDS])
"""How each token is shown: a text ends at its first pad or end."""


@dataclass(frozen=True)
class Field:
    """How a number is written."""

    name: str
    whole: int
    """Digits before the point."""
    decimals: int
    """Digits after it."""
    signed: bool = False
    """Whether it can be negative: then a sign comes first, a plus before what is not."""

    @property
    def width(self) -> int:
        """Tokens of the number."""
        return self.signed + self.whole + self.decimals


class Numbers:
    """A text of numbers, each in its own field."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(fields)
        self._scales = np.array([10.0**field.decimals for field in self.fields])
        self._most = np.array([10 ** (field.whole + field.decimals) - 1 for field in self.fields])
        self._signed = np.array([field.signed for field in self.fields])
        self._forms = [
            re.compile(f"{'[+-]' if field.signed else ''}[0-9]{{{field.whole + field.decimals}}}")
            for field in self.fields
        ]

    @property
    def length(self) -> int:
        """Tokens of a text: digits, signs and separators, and the end."""
        return sum(field.width + 1 for field in self.fields)

    def rounded(self, values: Float[np.ndarray, "row field"]) -> Float[np.ndarray, "row field"]:
        """The values as a text holds them."""
        return self._integers(values) / self._scales

    def write(self, values: Float[np.ndarray, "row field"]) -> Int[np.ndarray, "row token"]:
        """The text of each row. Raises BadInput for what has no room in its field."""
        integers = self._integers(values)
        made = np.full((len(integers), self.length), SEPARATOR, dtype=np.int32)
        at = 0
        for field, column in zip(self.fields, integers.T, strict=True):
            if field.signed:
                made[:, at] = np.where(column < 0, MINUS, PLUS)
            places = 10 ** np.arange(field.whole + field.decimals)[::-1]
            made[:, at + field.signed : at + field.width] = ZERO + np.abs(column)[:, None] // places % 10
            at += field.width + 1
        made[:, -1] = END
        return made

    def read(self, tokens: Int[np.ndarray, "row token"]) -> Float[np.ndarray, "row field"]:
        """The numbers of each text, in order; NaN where one is missing or not written as its field says.

        What comes after the end, or after the last field, is not looked at.
        """
        found = np.full((len(tokens), len(self.fields)), np.nan)
        for row, text in zip(found, shown(tokens), strict=True):
            for index, (form, word) in enumerate(zip(self._forms, text.split(","), strict=False)):
                if form.fullmatch(word):
                    row[index] = int(word)
        return found / self._scales

    def _integers(self, values: Float[np.ndarray, "row field"]) -> Int[np.ndarray, "row field"]:
        scaled = np.rint(values * self._scales)
        fits = (np.abs(scaled) <= self._most) & (self._signed | (scaled >= 0))
        if not fits.all():
            row, column = np.argwhere(~fits)[0]
            field = self.fields[column]
            least = -self._most[column] if field.signed else 0
            raise BadInput(
                f"{field.name} is {values[row, column]:g}, but its text goes from {least / self._scales[column]:g} "
                f"to {self._most[column] / self._scales[column]:g}.",
                fix="clip it, or give its field more digits",
            )
        return scaled.astype(np.int64)


def shown(tokens: Int[np.ndarray, "row token"]) -> list[str]:
    """Texts as characters, each up to its end. Whatever is no word is shown as `?`."""
    known = (tokens >= 0) & (tokens < SIZE)
    signs = _SHOWN[np.where(known, tokens, BEGIN)]
    return ["".join(row).split("\n", 1)[0] for row in signs]
