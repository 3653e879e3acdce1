"""Numbers as text: fixed-point digits, one or two a token, with or without separators between numbers.

A number has as many digits as its `Field` says, leading zeros included, and a sign where it can be negative; where
the decimal point stands follows from the field, so there is no token for it: 134.32 is `13432`. Texts of one kind
therefore have one length. Reading takes anything: what is not written like this is not a number (NaN).

With separators numbers are found by them, without by their places. Two digits a token make a text about half as
long: 134.32 is then `1 34 32`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput
from recombine.problems.checking import Values

PAD, END, BEGIN = 0, 1, 2
"""No word; what closes an answer; what stands before its first word. Words follow them, as in sequence families."""
WORDS = (",", "+", "-", *"0123456789")
"""The words of texts of single digits. The number of the first is 3."""
PAIRS = (*WORDS, *(f"{number:02d}" for number in range(100)))
"""The same with pairs of digits behind them."""
SEPARATOR, PLUS, MINUS, ZERO = range(3, 7)
SIZE = 3 + len(WORDS)
"""How many numbers a token can have where digits are single. The number of the first pair."""

_SHOWN = np.array(["\n", "\n", "?", *PAIRS])
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

    def __init__(self, fields: Sequence[Field], group: Literal[1, 2] = 1, separated: bool = True) -> None:
        """`group` digits are a token at most; where a number of them is odd, the first is by itself."""
        self.fields = tuple(fields)
        self.group, self.separated = group, separated
        self._scales = np.array([10.0**field.decimals for field in self.fields])
        self._most = np.array([10 ** (field.whole + field.decimals) - 1 for field in self.fields])
        self._signed = np.array([field.signed for field in self.fields])
        self._forms = [
            re.compile(f"{'[+-]' if field.signed else ''}[0-9]{{{field.whole + field.decimals}}}")
            for field in self.fields
        ]
        self._sizes = [self._cut(field.whole + field.decimals) for field in self.fields]

    def _cut(self, digits: int) -> tuple[int, ...]:
        """How many digits each token of a number has."""
        first = digits % self.group
        return (first,) * (first > 0) + (self.group,) * (digits // self.group)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of such texts."""
        return WORDS if self.group == 1 else PAIRS

    @property
    def units(self) -> Float[np.ndarray, " field"]:
        """What the last digit of each number counts."""
        return 1 / self._scales

    @property
    def length(self) -> int:
        """Tokens of a text: digits, signs and separators, and the end."""
        tokens = sum(field.signed + len(sizes) for field, sizes in zip(self.fields, self._sizes, strict=True))
        return tokens + (len(self.fields) - 1) * self.separated + 1

    def rounded(self, values: Float[np.ndarray, "row field"]) -> Float[np.ndarray, "row field"]:
        """The values as a text holds them."""
        return self._integers(values) / self._scales

    def write(self, values: Float[np.ndarray, "row field"]) -> Int[np.ndarray, "row token"]:
        """The text of each row. Raises BadInput for what has no room in its field."""
        integers = self._integers(values)
        made = np.full((len(integers), self.length), SEPARATOR, dtype=np.int32)
        at = 0
        for field, sizes, column in zip(self.fields, self._sizes, integers.T, strict=True):
            if field.signed:
                made[:, at] = np.where(column < 0, MINUS, PLUS)
            behind = np.cumsum(sizes[::-1])[::-1] - sizes
            for place, (size, less) in enumerate(zip(sizes, behind, strict=True), start=at + field.signed):
                made[:, place] = _first(size) + np.abs(column) // 10**less % 10**size
            at += field.signed + len(sizes) + self.separated
        made[:, -1] = END
        return made

    def read(self, tokens: Int[np.ndarray, "row token"]) -> Float[np.ndarray, "row field"]:
        """The numbers of each text, in order; NaN where one is missing or not written as its field says.

        What comes after the end, or after the last field, is not looked at.
        """
        tokens = np.where(tokens < 3 + len(self.words), tokens, BEGIN)
        if not self.separated:
            missing = max(0, self.length - tokens.shape[1])
            return np.asarray(self.read_places(np.pad(tokens, ((0, 0), (0, missing)))))
        found = np.full((len(tokens), len(self.fields)), np.nan)
        for row, text in zip(found, shown(tokens), strict=True):
            for index, (form, word) in enumerate(zip(self._forms, text.split(","), strict=False)):
                if form.fullmatch(word):
                    row[index] = int(word)
        return found / self._scales

    def read_places(
        self, tokens: Int[Values, "row token"], xp: ModuleType = np
    ) -> Float[Values, "row field"]:
        """The same by the places of tokens, for texts without separators; `xp` may be `jax.numpy`."""
        going = xp.cumsum((tokens == PAD) | (tokens == END), axis=1) == 0
        numbers, at = [], 0
        for field, sizes, scale in zip(self.fields, self._sizes, self._scales, strict=True):
            good, value = True, 0
            if field.signed:
                good = (tokens[:, at] == PLUS) | (tokens[:, at] == MINUS)
            sign = xp.where(tokens[:, at] == MINUS, -1, 1) if field.signed else 1
            for place, size in enumerate(sizes, start=at + field.signed):
                part = tokens[:, place] - _first(size)
                good = good & (part >= 0) & (part < 10**size)
                value = value * 10**size + part
            at += field.signed + len(sizes)
            # All of a number stands before the end if its last token does.
            numbers.append(xp.where(good & going[:, at - 1], sign * value / scale, xp.nan))
        return xp.stack(numbers, axis=1)

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
    known = (tokens >= 0) & (tokens < len(_SHOWN))
    signs = _SHOWN[np.where(known, tokens, BEGIN)]
    return ["".join(row).split("\n", 1)[0] for row in signs]


def _first(size: int) -> int:
    """The number of the first token of so many digits."""
    return ZERO if size == 1 else SIZE
