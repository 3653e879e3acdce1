"""Numbers as text: fixed-point digits, one or two per token, with or without separators between numbers.

The `Field` of a number fixes its digits (with leading zeros), its decimal point, for which there is no token, and whether
it has a sign: 134.32 is `13432`. Texts of one kind therefore have one length. Reading accepts any tokens: what does not
follow the format is not a number (NaN).

With separators, numbers are found by them; without, by position. Two digits per token make a text about half as long:
134.32 is then `1 34 32`.
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
"""Special tokens: padding, the end of an answer, and its start. Words follow them, as in sequence families."""
WORDS = (",", "+", "-", *"0123456789")
"""The words of texts with one digit per token. The token of the first is 3."""
PAIRS = (*WORDS, *(f"{number:02d}" for number in range(100)))
"""The words of texts with two digits per token."""
SEPARATOR, PLUS, MINUS, ZERO = range(3, 7)
SIZE = 3 + len(WORDS)
"""The size of the vocabulary with one digit per token, which is the token of the first pair."""

_SHOWN = np.array(["\n", "\n", "?", *PAIRS])
"""The characters of each token. A text ends at its first padding or end token."""


@dataclass(frozen=True)
class Field:
    """The format of one number."""

    name: str
    whole: int
    """The number of digits before the decimal point."""
    decimals: int
    """The number of digits after it."""
    signed: bool = False
    """Whether it has a sign (+ or -) in front."""

    @property
    def width(self) -> int:
        """The number of tokens with one digit per token."""
        return self.signed + self.whole + self.decimals


class Numbers:
    """The format of a text of numbers, one field per number. `write` and `read` convert."""

    def __init__(self, fields: Sequence[Field], group: Literal[1, 2] = 1, separated: bool = True) -> None:
        """Define a format.

        Args:
            fields: The format of each number.
            group: The largest number of digits per token. If a number has an odd number of digits, the first is alone.
            separated: Whether a comma separates numbers.
        """
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
        """The number of digits of each token of a number."""
        first = digits % self.group
        return (first,) * (first > 0) + (self.group,) * (digits // self.group)

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary, without special tokens."""
        return WORDS if self.group == 1 else PAIRS

    @property
    def units(self) -> Float[np.ndarray, " field"]:
        """The unit of the last digit of each number."""
        return 1 / self._scales

    @property
    def length(self) -> int:
        """The number of tokens of a text: digits, signs, separators and the end."""
        tokens = sum(field.signed + len(sizes) for field, sizes in zip(self.fields, self._sizes, strict=True))
        return tokens + (len(self.fields) - 1) * self.separated + 1

    def rounded(self, values: Float[np.ndarray, "row field"]) -> Float[np.ndarray, "row field"]:
        """Round values as their text does."""
        return self._integers(values) / self._scales

    def write(self, values: Float[np.ndarray, "row field"]) -> Int[np.ndarray, "row token"]:
        """Write each row as tokens. Raises BadInput for a number that does not fit its field."""
        integers = self._integers(values)
        tokens = np.full((len(integers), self.length), SEPARATOR, dtype=np.int32)
        start = 0
        for field, sizes, column in zip(self.fields, self._sizes, integers.T, strict=True):
            if field.signed:
                tokens[:, start] = np.where(column < 0, MINUS, PLUS)
            following = np.cumsum(sizes[::-1])[::-1] - sizes
            digits = enumerate(zip(sizes, following, strict=True), start=start + field.signed)
            for position, (size, after) in digits:
                tokens[:, position] = _first(size) + np.abs(column) // 10**after % 10**size
            start += field.signed + len(sizes) + self.separated
        tokens[:, -1] = END
        return tokens

    def read(self, tokens: Int[np.ndarray, "row token"]) -> Float[np.ndarray, "row field"]:
        """Read the numbers of each text; NaN where one is missing or does not follow its format.

        Tokens after the end, or after the last field, are ignored.
        """
        tokens = np.where(tokens < 3 + len(self.words), tokens, BEGIN)
        if not self.separated:
            missing = max(0, self.length - tokens.shape[1])
            return np.asarray(self.read_positions(np.pad(tokens, ((0, 0), (0, missing)))))
        numbers = np.full((len(tokens), len(self.fields)), np.nan)
        for row, text in zip(numbers, as_strings(tokens), strict=True):
            for index, (form, word) in enumerate(zip(self._forms, text.split(","), strict=False)):
                if form.fullmatch(word):
                    row[index] = int(word)
        return numbers / self._scales

    def read_positions(self, tokens: Int[Values, "row token"], xp: ModuleType = np) -> Float[Values, "row field"]:
        """Read texts without separators, by the position of tokens. `xp` may be `jax.numpy`."""
        before_end = xp.cumsum((tokens == PAD) | (tokens == END), axis=1) == 0
        numbers, start = [], 0
        for field, sizes, scale in zip(self.fields, self._sizes, self._scales, strict=True):
            valid, value = True, 0
            if field.signed:
                valid = (tokens[:, start] == PLUS) | (tokens[:, start] == MINUS)
            sign = xp.where(tokens[:, start] == MINUS, -1, 1) if field.signed else 1
            for position, size in enumerate(sizes, start=start + field.signed):
                digits = tokens[:, position] - _first(size)
                valid = valid & (digits >= 0) & (digits < 10**size)
                value = value * 10**size + digits
            start += field.signed + len(sizes)
            # If the last token of a number is before the end, so are the others.
            numbers.append(xp.where(valid & before_end[:, start - 1], sign * value / scale, xp.nan))
        return xp.stack(numbers, axis=1)

    def _integers(self, values: Float[np.ndarray, "row field"]) -> Int[np.ndarray, "row field"]:
        scaled = np.rint(values * self._scales)
        fits = (np.abs(scaled) <= self._most) & (self._signed | (scaled >= 0))
        if not fits.all():
            row, column = np.argwhere(~fits)[0]
            field = self.fields[column]
            least = -self._most[column] if field.signed else 0
            raise BadInput(
                f"{field.name} is {values[row, column]:g}, but its field goes from {least / self._scales[column]:g} "
                f"to {self._most[column] / self._scales[column]:g}.",
                fix="clip it, or give its field more digits",
            )
        return scaled.astype(np.int64)


def as_strings(tokens: Int[np.ndarray, "row token"]) -> list[str]:
    """Convert tokens to characters, up to the end of each text. A token that is not a word becomes `?`."""
    known = (tokens >= 0) & (tokens < len(_SHOWN))
    signs = _SHOWN[np.where(known, tokens, BEGIN)]
    return ["".join(row).split("\n", 1)[0] for row in signs]


def _first(size: int) -> int:
    """The first token with `size` digits."""
    return ZERO if size == 1 else SIZE
