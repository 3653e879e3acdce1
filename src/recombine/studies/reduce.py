"""From a study's tables to one effect for each replicate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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


def at(
    frame: pd.DataFrame, name: str, seeds: Sequence[int], **labels: Any
) -> Float[np.ndarray, " replicate"]:
    """A column in one cell of a study's grid, by replicate: not a number where a run failed or is missing.

    The cell is named by its labels. If they leave more than one run a replicate, the cell is not one.
    """
    chosen = frame
    for label, value in labels.items():
        chosen = chosen[chosen[label] == value]
    values = chosen[["replicate"]].assign(value=column(chosen, name)).set_index("replicate")["value"]
    if values.index.has_duplicates:
        raise ValueError(f"{labels} names several runs of a replicate")
    return values.reindex(list(seeds)).to_numpy(dtype=float)


def jackknife(
    frame: pd.DataFrame, statistic: Callable[[pd.DataFrame], float], seeds: Sequence[int], rows: int
) -> Float[np.ndarray, " replicate"]:
    """One number a replicate from a statistic that takes all replicates together, such as a correlation over them.

    With n replicates these are n * statistic - (n - 1) * (statistic without the replicate), Tukey's pseudo-values. Their
    mean is the statistic (less most of its bias), and they differ by what each replicate does to it, so that a t interval
    over them is one for the statistic. Of a mean they are the values themselves. A replicate that has fewer than `rows`
    rows takes no part and has no number.
    """
    counts = frame["replicate"].value_counts()
    whole = [seed for seed in seeds if counts.get(seed, 0) >= rows]
    kept = frame[frame["replicate"].isin(whole)]
    found = np.full(len(seeds), np.nan)
    if len(whole) < 2:
        return found
    together, count = statistic(kept), len(whole)
    for place, seed in enumerate(seeds):
        if seed in whole:
            found[place] = count * together - (count - 1) * statistic(kept[kept["replicate"] != seed])
    return found


def pooled(combinations: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """R2 and correlation of groups of combinations (a regression family's): from the sums over their tasks."""
    sums = combinations.groupby(by, sort=False)[["error", "spread", "agreement", "power"]].sum().reset_index()
    return sums.assign(
        r2=1 - sums["error"] / sums["spread"],
        correlation=sums["agreement"] / (sums["spread"] * sums["power"].clip(lower=1e-30)) ** 0.5,
    )


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
