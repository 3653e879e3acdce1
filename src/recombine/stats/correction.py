"""p values adjusted for multiple comparisons."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput
from recombine.stats.columns import Floats


def holm(p: npt.ArrayLike) -> Floats:
    """Adjust p values to control the probability of any false positive (Holm's step-down method).

    Args:
        p: The p values of one family of tests.

    Returns:
        The adjusted p values, in the given order.
    """
    sorted_p, order = _sorted(p)
    count = len(sorted_p)
    return _restored(np.maximum.accumulate(sorted_p * np.arange(count, 0, -1)), order)


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Adjust p values to control the false discovery rate (Benjamini and Hochberg's step-up method).

    Args:
        p: The p values of one family of tests.

    Returns:
        The adjusted p values, in the given order.
    """
    sorted_p, order = _sorted(p)
    count = len(sorted_p)
    scaled = sorted_p * (count / np.arange(1, count + 1))
    return _restored(np.minimum.accumulate(scaled[::-1])[::-1], order)


def _sorted(p: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.intp]]:
    given = np.asarray(p, dtype=float)
    if given.ndim != 1 or not np.all((given >= 0) & (given <= 1)):  # also catches NaN
        raise BadInput(f"p values must be a flat list of numbers from 0 to 1, got {p!r}.")
    order = np.argsort(given, kind="stable")
    return given[order], order


def _restored(adjusted: Floats, order: npt.NDArray[np.intp]) -> Floats:
    restored = np.empty_like(adjusted)
    restored[order] = np.minimum(adjusted, 1)
    return restored
