"""Whole numbers from outside: taken as they are or refused, never cut."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from jaxtyping import Integer

from recombine.errors import BadInput

LIMITS = np.iinfo(np.int64)


def whole(value: Any, what: str) -> int:
    """A whole number of 64 bits. `what` is what it is called."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not LIMITS.min <= number <= LIMITS.max:
        raise BadInput(
            f"{what} is a whole number of 64 bits, got {value!r}.", fix="round it, or scale it, first"
        )
    return number


def whole_array(values: Any, what: str) -> Integer[np.ndarray, "*shape"]:
    """An array of whole numbers, of the type that they have; lists become arrays."""
    try:
        found = np.asarray(values)
    except ValueError:  # Rows of different lengths.
        raise BadInput(f"{what} are not an array: their rows differ in length.") from None
    if found.dtype == bool or not found.size:
        return found.astype(np.int64)
    # Types with and without sign, put together, would become decimals.
    if found.dtype == np.uint64 and found.max() <= LIMITS.max:
        return found.astype(np.int64)
    if found.dtype.kind not in "iu" or found.dtype == np.uint64:
        raise BadInput(
            f"{what} are whole numbers of 64 bits, got an array of {found.dtype}.",
            fix="round them, or scale them, first",
        )
    return found
