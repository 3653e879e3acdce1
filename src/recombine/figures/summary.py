"""Means and intervals over replicates, computed in the same way for every figure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from recombine.errors import BadInput
from recombine.figures.wording import count_of
from recombine.stats.intervals import t_interval


def require(frame: pd.DataFrame, columns: Iterable[str], what: str) -> None:
    """Raise `BadInput` if a table lacks a column that a figure reads. `what` names the table."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise BadInput(
            f"The table of {what} has no column {', '.join(map(repr, missing))}; "
            f"it has {', '.join(map(repr, frame.columns)) or 'none'}.",
            fix=f"pass the {what} table of the store, unchanged",
        )


def summarise(frame: pd.DataFrame, by: list[str], value: str) -> pd.DataFrame:
    """The mean of a column for each group, with a t interval over replicates.

    Rows of one replicate are averaged first. Values that are not finite are left out.

    Args:
        frame: One row per measurement, with a column `replicate`.
        by: The columns that define the groups.
        value: The column to average.

    Returns:
        One row per group: the columns `by`, then `mean`, `low`, `high`, `replicates`. With one replicate, `low` and
        `high` are NaN.
    """
    kept = frame[np.isfinite(frame[value].astype(float))]
    rows = []
    if len(kept):
        units = kept.groupby([*by, "replicate"], observed=True)[value].mean().reset_index()
        for key, group in units.groupby(by, observed=True):
            sample = group[value].to_numpy(float)
            interval = t_interval(sample) if len(sample) > 1 else None
            ends = (np.nan, np.nan) if interval is None else (interval.low, interval.high)
            rows.append((*key, float(sample.mean()), *ends, len(sample)))
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "replicates"])


def replicates_in_words(summary: pd.DataFrame) -> str:
    """The sentence of a caption that explains the interval bars."""
    counts = sorted(set(summary["replicates"].astype(int)))
    if not counts or counts[-1] < 2:
        return "There is only one replicate, so there are no intervals."
    most = count_of(counts[-1], "replicate")
    range_of_counts = most if counts[0] == counts[-1] else f"{counts[0]} to {most}"
    return f"Bars are 95 % t intervals over {range_of_counts}."
