"""Checks of whole numbers from users: they are accepted unchanged or refused, never truncated."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from jaxtyping import Integer

from recombine.errors import BadInput

LIMITS = np.iinfo(np.int64)


def whole(value: Any, what: str) -> int:
    """Check a 64-bit integer. `what` names it in the error message."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not LIMITS.min <= number <= LIMITS.max:
        raise BadInput(f"{what} must be a 64-bit integer, got {value!r}.", fix="round or scale it first")
    return number


def whole_array(values: Any, what: str) -> Integer[np.ndarray, "*shape"]:
    """Check an array of integers; lists become arrays, and integer types are kept."""
    try:
        array = np.asarray(values)
    except ValueError:  # Rows of different lengths.
        raise BadInput(f"{what} are not an array: their rows differ in length.") from None
    if array.dtype == bool or not array.size:
        return array.astype(np.int64)
    # Mixing unsigned and signed 64-bit integers would give floats.
    if array.dtype == np.uint64 and array.max() <= LIMITS.max:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise BadInput(
            f"{what} must be 64-bit integers, got an array of {array.dtype}.", fix="round or scale them first"
        )
    return array
