"""Statistics of the table of `graph-steps`: slips by depth, and digits of products by what digits of the factors tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recombine.graphs.multiplication import digit_gains

if TYPE_CHECKING:
    import pandas as pd


def slips_by_depth(steps: pd.DataFrame) -> pd.Series:
    """The share of slips of the deeper half of steps minus that of the shallower half, beyond training, by replicate.

    `steps` are these rows of the table, with a column `replicate`. Steps are compared within operations, numbers of
    parents and sizes: a step with more parents has more to get wrong, and lies deeper.
    """
    frame = steps[steps["beyond"].astype(bool)]
    alike = ["replicate", "size", "step", "parents"]
    cells = frame.groupby(alike)["place"]
    deep = frame["place"] > (cells.transform("min") + cells.transform("max")) / 2
    sums = frame.assign(deep=deep).groupby([*alike, "deep"])[["slips", "sound"]].sum()
    rates = (sums["slips"] / sums["sound"].where(sums["sound"] > 0)).unstack("deep")
    rates = rates.reindex(columns=[False, True])
    return (rates[True] - rates[False]).groupby("replicate").mean()


def digit_table(results: pd.DataFrame) -> pd.DataFrame:
    """Digits of products (the rows `result` of a multiplication family) with their accuracy, gain and skill.

    `gain`: relative information gain of the best pair of digits of the factors. `skill`: accuracy beyond always writing
    the most frequent digit, as a share of what is left.
    """
    sizes, places = results["size"].astype(int), results["place"].astype(int) - 1
    gains = {size: digit_gains(*divmod(size, 10)) for size in dict.fromkeys(sizes)}
    cells = list(zip(sizes, places, strict=True))
    common = np.array([gains[size].common[place] for size, place in cells], dtype=float)
    accuracy = (results["right"] / results["number"]).astype(float)
    gain = [gains[size].gain[place] for size, place in cells]
    return results.assign(accuracy=accuracy, gain=gain, skill=(accuracy - common) / (1 - common))


def predictable_digits(results: pd.DataFrame) -> pd.Series:
    """The skill at the half of the digits with the highest gain minus that at the lowest half, by replicate.

    Mean over sizes beyond training in which both factors have several digits. `results` are these rows of the table,
    with a column `replicate`.
    """
    frame = digit_table(results)
    frame = frame[frame["beyond"].astype(bool) & (frame["size"] % 10 > 1) & (frame["size"] // 10 > 1)]
    cells = frame.groupby(["replicate", "size"])["gain"]
    rank, half = cells.rank(method="first"), cells.transform("size") // 2
    most, least = rank > cells.transform("size") - half, rank <= half
    means = [frame[chosen].groupby(["replicate", "size"])["skill"].mean() for chosen in (most, least)]
    return (means[0] - means[1]).groupby("replicate").mean()


def digit_skill(results: pd.DataFrame) -> pd.Series:
    """The mean skill at digits of products of trained sizes, by replicate."""
    frame = digit_table(results)
    return frame[~frame["beyond"].astype(bool)].groupby("replicate")["skill"].mean()
