"""From a study's tables to one effect for each replicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import pandas as pd

Reduce = Callable[[Float[np.ndarray, "replicate size"]], Float[np.ndarray, " replicate"]]
"""From scores by replicate and size of support to one number for each replicate."""


def column(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column; empty where there is none, as when every run failed."""
    return frame.reindex(columns=[name])[name]


def per_replicate(
    frame: pd.DataFrame, name: str, reduce: Reduce, sizes: dict[str, list[int]], seeds: list[int]
) -> Float[np.ndarray, " replicate"]:
    """One number a replicate: a column reduced over the sizes of support in each space, then the mean over spaces.

    A replicate in which a run that counts failed or is missing has none: another size must not stand in for it.
    """
    values = frame[["replicate", "space", "number"]].assign(value=column(frame, name))
    by_space = []
    for space, numbers in sizes.items():
        wide = values[values["space"] == space].pivot(index="replicate", columns="number", values="value")
        by_space.append(reduce(wide.reindex(index=seeds, columns=numbers).to_numpy(dtype=float)))
    return np.mean(by_space, axis=0)


# Over sizes of support, fewest first, for each replicate. What is not a number stays so.


def lowest(values: Float[np.ndarray, "replicate size"]) -> Float[np.ndarray, " replicate"]:
    return values.min(axis=1)


def highest(values: Float[np.ndarray, "replicate size"]) -> Float[np.ndarray, " replicate"]:
    return values.max(axis=1)


def at_fewest(values: Float[np.ndarray, "replicate size"]) -> Float[np.ndarray, " replicate"]:
    return values[:, 0]


def at_most(values: Float[np.ndarray, "replicate size"]) -> Float[np.ndarray, " replicate"]:
    return values[:, -1]


def rise(values: Float[np.ndarray, "replicate size"]) -> Float[np.ndarray, " replicate"]:
    return values[:, -1] - values[:, 0]
