"""Checks of the columns that statistics take: numbers and labels of one length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


def numbers(least: int, **given: npt.ArrayLike) -> tuple[Floats, ...]:
    """Check columns of numbers.

    Args:
        least: The smallest number of values in a column.
        **given: The columns by the names that error messages use.

    Returns:
        Flat arrays of finite numbers, all of one length.
    """
    columns = {name: np.asarray(values, dtype=float) for name, values in given.items()}
    shapes = {name: column.shape for name, column in columns.items()}
    if any(len(shape) != 1 for shape in shapes.values()) or len(set(shapes.values())) != 1:
        raise BadInput(f"Expected flat columns of one length, got the shapes {shapes}.")
    for name, column in columns.items():
        bad = int((~np.isfinite(column)).sum())
        if bad:
            raise BadInput(
                f"{bad} of {len(column)} values of {name!r} are not finite.",
                fix="leave failed runs out, and report how many",
            )
    count = len(next(iter(columns.values())))
    if count < least:
        raise BadInput(f"At least {least} points are needed, got {count}.", fix="give more points")
    return tuple(columns.values())


def codes(labels: npt.ArrayLike, length: int, name: str = "group") -> tuple[Codes, npt.NDArray]:
    """Number the groups of labels.

    Args:
        labels: One label per point.
        length: The number of points.
        name: What error messages call the labels.

    Returns:
        The number of each point's group, from 0, and the groups in sorted order.
    """
    given = np.asarray(labels)
    if given.shape != (length,):
        raise BadInput(
            f"{name!r} has shape {given.shape}, but there are {length} points.",
            fix="give one label per point; join several factors into one label",
        )
    groups, numbered = np.unique(given, return_inverse=True)
    return numbered.reshape(-1), groups


def less_group_means(values: Floats, group: Codes) -> Floats:
    """Subtract from each value the mean of its group."""
    sizes = np.bincount(group)
    return values - (np.bincount(group, weights=values) / np.maximum(sizes, 1))[group]
