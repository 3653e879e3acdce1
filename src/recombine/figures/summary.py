"""Means and intervals over replicates, the same for every figure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from recombine.errors import BadInput
from recombine.figures.wording import count_of
from recombine.stats.intervals import LEVEL, mean_and_error, t_bounds


def require(frame: pd.DataFrame, columns: Iterable[str], what: str) -> None:
    """Complain when a table lacks a column that a figure reads."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise BadInput(
            f"The table of {what} has no column {', '.join(map(repr, missing))}; "
            f"it has {', '.join(map(repr, frame.columns)) or 'none'}.",
            fix=f"pass the {what} table of the store, unchanged",
        )


def summarise(frame: pd.DataFrame, by: list[str], value: str, level: float = LEVEL) -> pd.DataFrame:
    """The mean of a column with its t interval over replicates, a row for each group.

    Columns: those of `by`, then `mean`, `low`, `high`, `replicates`. Rows of one replicate are averaged
    first; values that are not finite are left out. One replicate has no interval: `low`, `high` are NaN.
    """
    kept = frame[np.isfinite(frame[value].astype(float))]
    rows = []
    if len(kept):
        units = kept.groupby([*by, "replicate"], observed=True)[value].mean().reset_index()
        for key, group in units.groupby(by, observed=True):
            sample = group[value].to_numpy(float)
            mean, low, high = float(sample.mean()), np.nan, np.nan
            if len(sample) > 1:
                centre, error = mean_and_error(sample)
                low, high = (float(end) for end in t_bounds(centre, error, len(sample), level))
            rows.append((*key, mean, low, high, len(sample)))
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "replicates"])


def replicates_in_words(summary: pd.DataFrame) -> str:
    """What the bars of a figure are, for its caption."""
    counts = sorted(set(summary["replicates"].astype(int)))
    if not counts or counts[-1] < 2:
        return "There is one replicate, so there are no intervals."
    most = count_of(counts[-1], "replicate")
    spread = most if counts[0] == counts[-1] else f"{counts[0]} to {most}"
    return f"Bars are 95 % t intervals over {spread}."
