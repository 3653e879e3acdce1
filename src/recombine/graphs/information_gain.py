"""Relative information gain: how much inputs reveal of an output, computed exactly over a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Integer

from recombine.errors import BadInput
from recombine.graphs.numbers import whole_array

MAX_COUNTED = 2**20
"""The largest number of possible rows that are counted without sorting."""


def relative_information_gain(
    inputs: Integer[np.ndarray, "row ..."] | Sequence[Any], output: Integer[np.ndarray, "row2 ..."] | Sequence[Any]
) -> float:
    """Compute (H(Y) - H(Y | X)) / H(Y), where each row of the table is equally likely.

    Args:
        inputs: X; several columns are taken together.
        output: Y; several columns are taken together.

    Returns:
        0 if X reveals nothing of Y, 1 if it determines Y.
    """
    inputs, output = whole_array(inputs, "Inputs"), whole_array(output, "Outputs")
    if not len(inputs) or len(inputs) != len(output):
        raise BadInput(
            f"Inputs have {len(inputs)} rows and outputs {len(output)}.", fix="give the same rows of both, at least one"
        )
    x, y = (columns.reshape(len(columns), -1) for columns in (inputs, output))
    unknown = entropy(_counts(y))
    if unknown == 0:
        raise BadInput(
            "The output is the same in every row, so it has no information to gain.", fix="choose an output that varies"
        )
    left = entropy(_counts(np.concatenate([x, y], axis=1))) - entropy(_counts(x))
    return (unknown - left) / unknown


def entropy(counts: Integer[np.ndarray, " value"]) -> float:
    """The entropy in bits of values with these counts."""
    shares: Float[np.ndarray, " value"] = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def _counts(rows: Integer[np.ndarray, "row column"]) -> Integer[np.ndarray, " different"]:
    least = rows.min(axis=0)
    # As Python integers, because differences may overflow small integer types.
    ends = zip(least.tolist(), rows.max(axis=0).tolist(), strict=True)
    spans = tuple(high - low + 1 for low, high in ends)
    if math.prod(spans) > MAX_COUNTED:
        return np.unique(rows, axis=0, return_counts=True)[1]
    if max(spans) > np.iinfo(rows.dtype).max:
        rows = rows.astype(np.int64)
    counts = np.bincount(np.ravel_multi_index(tuple((rows - least).T), spans))
    return counts[counts > 0]
