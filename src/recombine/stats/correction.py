"""Adjusting p values for how many were looked at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput

Floats = npt.NDArray[np.float64]


def holm(p: npt.ArrayLike) -> Floats:
    """Adjusted p values that control the chance of even one false finding (Holm's step-down)."""
    sorted_p, order = _sorted(p)
    count = len(sorted_p)
    return _restored(np.maximum.accumulate(sorted_p * np.arange(count, 0, -1)), order)


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Adjusted p values that control the expected share of false findings (Benjamini and Hochberg's step-up)."""
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
