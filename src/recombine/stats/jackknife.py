"""One number per replicate for a statistic of all replicates together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import pandas as pd


def jackknife(
    frame: pd.DataFrame, statistic: Callable[[pd.DataFrame], float], seeds: Sequence[int], rows: int
) -> Float[np.ndarray, " replicate"]:
    """One number per replicate for a statistic of all replicates together, such as a correlation over them.

    With n replicates these are Tukey's pseudo-values: n * statistic - (n - 1) * (statistic without the replicate). Their
    mean is the statistic less most of its bias. They differ by the influence of each replicate, so a t interval over them
    is one for the statistic. The pseudo-values of a mean are the values themselves.

    Args:
        frame: A table with a column `replicate`.
        statistic: From such a table to one number.
        seeds: The replicates, in the order of the result.
        rows: A replicate with fewer rows than this is left out and has no number.

    Returns:
        One number per seed; NaN for replicates that are left out, or where fewer than two are complete.
    """
    counts = frame["replicate"].value_counts()
    whole = [seed for seed in seeds if counts.get(seed, 0) >= rows]
    kept = frame[frame["replicate"].isin(whole)]
    values = np.full(len(seeds), np.nan)
    if len(whole) < 2:
        return values
    together, count = statistic(kept), len(whole)
    for index, seed in enumerate(seeds):
        if seed in whole:
            values[index] = count * together - (count - 1) * statistic(kept[kept["replicate"] != seed])
    return values
