"""Numbers as text: fixed-point digits, two per token, without separators between numbers.

The `Field` of a number fixes its digits (with leading zeros), its decimal point, for which there is no token, and whether
it has a sign: 134.32 is `1 34 32`. Texts of one kind therefore have one length, and a number is found by its position.
Reading accepts any tokens: what does not follow the format is not a number (NaN).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput
from recombine.problems.checking import Values

PAD, END, BEGIN = 0, 1, 2
"""Special tokens: padding, the end of an answer, and its start. Words follow them, as in sequence families."""
WORDS = (",", "+", "-", *"0123456789", *(f"{number:02d}" for number in range(100)))
"""The token of the first word is 3. The comma is not used."""
PLUS, MINUS, ZERO = 4, 5, 6
FIRST_PAIR = 16


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
    def sizes(self) -> tuple[int, ...]:
        """The number of digits of each token. With an odd number of digits the first is alone."""
        pairs, odd = divmod(self.whole + self.decimals, 2)
        return (1,) * odd + (2,) * pairs


class Numbers:
    """The format of a text of numbers, one field per number. `write` and `read` convert."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(fields)
        self._scales = np.array([10.0**field.decimals for field in self.fields])
        self._most = np.array([10 ** (field.whole + field.decimals) - 1 for field in self.fields])
        self._signed = np.array([field.signed for field in self.fields])

    @property
    def units(self) -> Float[np.ndarray, " field"]:
        """The unit of the last digit of each number."""
        return 1 / self._scales

    @property
    def length(self) -> int:
        """The number of tokens of a text: digits, signs and the end."""
        return sum(field.signed + len(field.sizes) for field in self.fields) + 1

    def rounded(self, values: Float[np.ndarray, "row field"]) -> Float[np.ndarray, "row field"]:
        """Round values as their text does."""
        return self._integers(values) / self._scales

    def write(self, values: Float[np.ndarray, "row field"]) -> Int[np.ndarray, "row token"]:
        """Write each row as tokens. Raises BadInput for a number that does not fit its field."""
        columns = []
        for field, column in zip(self.fields, self._integers(values).T, strict=True):
            if field.signed:
                columns.append(np.where(column < 0, MINUS, PLUS))
            following = np.cumsum(field.sizes[::-1])[::-1] - field.sizes
            for size, after in zip(field.sizes, following, strict=True):
                columns.append(_first(size) + np.abs(column) // 10**after % 10**size)
        return np.stack([*columns, np.full(len(values), END)], axis=1).astype(np.int32)

    def read(self, tokens: Int[Values, "row token"], xp: ModuleType = np) -> Float[Values, "row field"]:
        """Read the numbers of each text; NaN where one is missing or does not follow its format.

        Tokens after the end, or after the last field, are ignored. `xp` may be `jax.numpy`.
        """
        tokens = xp.pad(tokens, ((0, 0), (0, max(0, self.length - tokens.shape[1]))))
        before_end = xp.cumsum((tokens == PAD) | (tokens == END), axis=1) == 0
        numbers, start = [], 0
        for field, scale in zip(self.fields, self._scales, strict=True):
            valid, value = True, 0
            if field.signed:
                valid = (tokens[:, start] == PLUS) | (tokens[:, start] == MINUS)
            sign = xp.where(tokens[:, start] == MINUS, -1, 1) if field.signed else 1
            for position, size in enumerate(field.sizes, start=start + field.signed):
                digits = tokens[:, position] - _first(size)
                valid = valid & (digits >= 0) & (digits < 10**size)
                value = value * 10**size + digits
            start += field.signed + len(field.sizes)
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


def _first(size: int) -> int:
    """The first token with `size` digits."""
    return ZERO if size == 1 else FIRST_PAIR
