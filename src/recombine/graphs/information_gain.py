"""Relative information gain: how much inputs reveal of an output, computed exactly over a table."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput


def relative_information_gain(inputs: Int[np.ndarray, "row input"], output: Int[np.ndarray, " row"]) -> float:
    """Compute (H(Y) - H(Y | X)) / H(Y), where each row of the table is equally likely.

    Args:
        inputs: X, small integers from 0 on, such as digits. All columns are taken together.
        output: Y, small integers from 0 on.

    Returns:
        0 if X reveals nothing of Y, 1 if it determines Y.
    """
    y = output[:, None]
    unknown = entropy(y)
    if unknown == 0:
        raise BadInput(
            "The output is the same in every row, so it has no information to gain.", fix="choose an output that varies"
        )
    left = entropy(np.concatenate([inputs, y], axis=1)) - entropy(inputs)
    return (unknown - left) / unknown


def entropy(rows: Int[np.ndarray, "row column"]) -> float:
    """The entropy in bits of a random row."""
    spans = tuple((rows.max(axis=0).astype(np.int64) + 1).tolist())
    counts = np.bincount(np.ravel_multi_index(tuple(rows.T), spans))
    shares = counts[counts > 0] / len(rows)
    return float(-(shares * np.log2(shares)).sum()) + 0.0
