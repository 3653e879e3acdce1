"""From tables of a study to one number per replicate: what custom statistics share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput
from recombine.stats.jackknife import jackknife as jackknife
from recombine.stats.threshold import censored_slope, power_law, reached

if TYPE_CHECKING:
    import pandas as pd

    from recombine.design.tables import Tables


def rows_with(tables: Tables, table: str, **values: Any) -> pd.DataFrame:
    """The rows of a table in which some columns have given values.

    Args:
        tables: The tables of an arm.
        table: The name of the table: `runs`, `combinations`, `curves`, or a kind of measurement.
        **values: The value of each column.

    Returns:
        The rows; none where the table lacks one of the columns, for instance because every run failed.
    """
    frame = tables[table]
    for column, value in values.items():
        frame = frame[frame[column] == value] if column in frame else frame.iloc[:0]
    return frame


def one_per_run(tables: Tables, table: str, **values: Any) -> pd.DataFrame:
    """The one row of each run in which some columns have given values, for instance the row of one layer.

    Use it with `Arm.table`: `main.table(one_per_run, table="erasure", site="hidden 1")["after"]`.

    Args:
        tables: The tables of an arm.
        table: The name of the table, as in `rows_with`.
        **values: The value of each column. Together they leave at most one row per run.
    """
    frame = rows_with(tables, table, **values)
    if frame.duplicated(list(tables.labels.columns)).any():
        raise BadInput(
            f"Several rows of a run have {values} in the table {table!r}.", fix="give the value of another column too"
        )
    return frame


def rank_correlation(
    frame: pd.DataFrame, x: str, y: str, within: Sequence[str], covariates: Sequence[str] = ()
) -> float:
    """Spearman's correlation of two columns within groups, with covariates partialled out (see `partial_rank`).

    Args:
        frame: A table with one row per point.
        x: The first column.
        y: The second column.
        within: The columns that name a group.
        covariates: Columns to partial out.

    Returns:
        The correlation; NaN where there are too few points or nothing varies within groups.
    """
    from recombine.stats.rank import partial_rank

    groups = frame.groupby(list(within)).ngroup()
    try:
        return partial_rank(frame[x], frame[y], groups, [frame[name] for name in covariates]).estimate
    except BadInput:
        return float("nan")


def rank_correlations(
    frame: pd.DataFrame,
    x: str,
    y: str,
    within: Sequence[str],
    seeds: Sequence[int],
    rows: int,
    covariates: Sequence[str] = (),
) -> Float[np.ndarray, " replicate"]:
    """`rank_correlation` over all replicates, as one pseudo-value per replicate (see `jackknife`).

    Args:
        frame: A table with a column `replicate`. Rows that lack a number are left out.
        x: The first column.
        y: The second column.
        within: The columns that name a group.
        seeds: The replicates, in the order of the result.
        rows: The number of rows of a whole replicate.
        covariates: Columns to partial out.
    """
    complete = frame.dropna(subset=[x, y, *covariates])
    return jackknife(complete, lambda part: rank_correlation(part, x, y, within, covariates), seeds, rows)


def needed_sizes(
    frame: pd.DataFrame, by: Sequence[str], *, size: str, score: str, threshold: float, points: int
) -> pd.DataFrame:
    """Find the size at which a score reaches a threshold in each group, interpolated, or the end of the curve.

    Args:
        frame: One row per group and size.
        by: The columns that name a group.
        size: The column of sizes.
        score: The column of scores.
        threshold: The score to reach.
        points: The number of sizes of a whole curve; groups with fewer scores are left out.

    Returns:
        One row per group, with the columns `needed` and `censored` (`no`, or on which side of the curve it lies).
    """
    import pandas as pd

    rows = []
    known = frame.dropna(subset=[score]).sort_values(size)
    for group, curve in known.groupby(list(by), sort=False):
        if len(curve) == points:
            found = reached(curve[size].to_numpy(dtype=float), curve[score].to_numpy(dtype=float), threshold)
            rows.append((*group, found.size, found.censored))
    return pd.DataFrame(rows, columns=[*by, "needed", "censored"])


def growth_exponents(needed: pd.DataFrame, x: str, seeds: Sequence[int], rows: int) -> Float[np.ndarray, " replicate"]:
    """The exponent with which the sizes needed grow in x, as one pseudo-value per replicate (see `jackknife`).

    Args:
        needed: A table of `needed_sizes`, with the columns `replicate` and x.
        x: The column in which the sizes grow.
        seeds: The replicates.
        rows: The number of rows of a whole replicate.
    """

    def exponent(frame: pd.DataFrame) -> float:
        line = power_law(frame[x], frame["needed"], frame["censored"].tolist())
        return np.nan if line is None else line.slope.estimate

    return jackknife(needed, exponent, seeds, rows)


def slopes_by_replicate(needed: pd.DataFrame, x: str, y: str, *, rows: int, least: int = 3) -> pd.Series:
    """The slope of log y on log x in each replicate; values beyond those tried are censored, not dropped.

    Args:
        needed: A table of `needed_sizes`, with the columns `replicate`, x, y and `censored`.
        x: The column of the predictor.
        y: The column of the sizes needed.
        rows: The number of rows of a complete replicate; others have no slope.
        least: The fewest uncensored values that a slope needs.

    Returns:
        One slope per replicate that has one, indexed by replicate.
    """
    import pandas as pd

    slopes = {}
    for replicate, curve in needed.groupby("replicate"):
        if len(curve) == rows and (curve["censored"] == "no").sum() >= least:
            logs = np.log(curve[x].astype(float)), np.log(curve[y])
            slopes[replicate] = censored_slope(*logs, curve["censored"].tolist()).slope.estimate
    return pd.Series(slopes, dtype=float)
