"""Groups of runs: the mean of each number with its 95 % interval over replicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from recombine import stats
from recombine.errors import BadInput
from recombine.store.index.query import Query, full_name

if TYPE_CHECKING:
    import pandas as pd

HEADLINES = ("score_in", "score_held_out")
"""The numbers of groups if none are named."""

SEEDS = "seeds."
"""How the columns begin that make a replicate."""

COUNT = "runs"
"""The column with the number of runs of a group."""


def grouped(
    table: pa.Table, by: Sequence[str], columns: Sequence[str] | None, where: str | None, sort: Sequence[str]
) -> pd.DataFrame:
    """One row per group of runs.

    Args:
        table: One row per run.
        by: The columns whose values make groups.
        columns: The numbers to average; None for the headline scores.
        where: One SQL expression over the columns of runs, or None.
        sort: Columns of the result; with a minus before its name, from the largest value down. By default groups are
            sorted by their values.

    Returns:
        The values of the group, `runs`, and for each number its mean under its own name, `..._low`, `..._high`, `..._n`.
    """
    query, names = Query(table), table.column_names
    keys = list(dict.fromkeys(full_name(names, name) for name in by))
    if columns is None:
        numbers = [name for name in HEADLINES if name in names]
    else:
        numbers = list(dict.fromkeys(full_name(names, name) for name in columns))
    numbers = [name for name in numbers if name not in keys]
    for name in numbers:
        kind = table.schema.field(name).type
        if not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or kind == pa.null()
        ):
            raise BadInput(f"{name!r} holds text, which has no mean.", fix="name numbers, or group by it")
    frame = _aggregated(query, keys, numbers, where)
    for name in numbers:
        _with_interval(frame, name)
    if not sort:
        return frame
    order = [full_name(list(frame.columns), key.removeprefix("-")) for key in sort]
    frame = frame.sort_values(order, ascending=[not key.startswith("-") for key in sort], kind="stable")
    return frame.reset_index(drop=True)


def _aggregated(query: Query, keys: Sequence[str], numbers: Sequence[str], where: str | None) -> pd.DataFrame:
    """Count, mean, spread and range of each number in each group. Runs of one replicate are averaged first."""
    condition = None if where is None else query.condition(where)
    kept = "" if condition is None else f" WHERE (\n{condition}\n)"
    own = [query.name(key) for key in keys]
    seeds = [query.name(name) for name in query.table.column_names if name.startswith(SEEDS)]
    inner, outer, names = ["count(*) AS n"], ["CAST(sum(n) AS BIGINT)"], [*keys, COUNT]
    for number, name in enumerate(numbers):
        value = f"CAST({query.name(name)} AS DOUBLE)"
        inner.append(f"avg(CASE WHEN isfinite({value}) THEN {value} END) AS v{number}")
        v = f"v{number}"
        outer += [f"avg({v})", f"stddev_samp({v})", f"max({v}) - min({v})", f"count({v})"]
        names += [name + ending for ending in ("", "_low", "_high", "_n")]
    by = ", ".join(own)
    sort = ", ".join(f"{key} NULLS LAST" for key in own)
    alone = ", ".join(dict.fromkeys([*own, *seeds]))

    def sql(runs: str) -> str:
        replicates = f"SELECT {alone}, {', '.join(inner)} FROM {runs}{kept} GROUP BY {alone}"
        return f"SELECT {by}, {', '.join(outer)} FROM ({replicates}) GROUP BY {by} ORDER BY {sort}"

    answer = query.run(sql, where)
    return answer.rename_columns(names).to_pandas()


def _with_interval(frame: pd.DataFrame, name: str) -> None:
    """Put the ends of the interval where the spread and the range were."""
    mean, spread, width = (frame[column].to_numpy(float) for column in (name, f"{name}_low", f"{name}_high"))
    count = frame[f"{name}_n"].to_numpy(float)
    # Rounding in the mean of equal values would give a tiny spread other than 0.
    error = np.where(width == 0, 0.0, spread) / np.sqrt(np.maximum(count, 1))
    low, high = stats.t_bounds(mean, error, np.maximum(count, 2))
    frame[f"{name}_low"], frame[f"{name}_high"] = np.where(count > 1, low, np.nan), np.where(count > 1, high, np.nan)
