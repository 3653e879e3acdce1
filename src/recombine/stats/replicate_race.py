"""A race of predictors over replicates: fitted on the runs of some replicates, scored on the runs of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from recombine.errors import BadInput
from recombine.stats.prediction import calibration_error, race


@dataclasses.dataclass(frozen=True, eq=False)
class ReplicateRace:
    """The scores of several predictors. Series and frames are indexed by replicate and hold complete replicates only."""

    base_rate: float
    """The share of failures in the runs that predictors were fitted on."""
    base_loss: pd.Series
    """The log loss of the base rate, mean of the runs."""
    share: pd.Series
    """The share of combinations that fail, mean of the runs."""
    gain: pd.DataFrame
    """The log loss of the base rate minus that of each predictor, mean of the runs."""
    calibration: pd.DataFrame
    """The expected calibration error of each predictor, over all combinations of a replicate."""
    chances: pd.DataFrame
    """One row per scored combination: `replicate`, `fails`, and the probability that each predictor gave."""


def race_by_replicate(
    fit: pd.DataFrame,
    scored: pd.DataFrame,
    predictors: Mapping[str, Sequence[str]],
    *,
    runs: int,
    permuted: bool = False,
) -> ReplicateRace:
    """Fit each predictor of failure on some replicates and score it on others (see `race`).

    Args:
        fit: One row per combination of the replicates to fit on: `run`, `replicate`, `fails` (0 or 1) and the predictors'
            columns.
        scored: The same for the replicates to score.
        predictors: The columns of each predictor.
        runs: The number of runs of a complete replicate. Others are left out.
        permuted: Whether outcomes are permuted within each run first, which leaves nothing to know of a combination.

    Returns:
        The scores; empty where there is nothing to fit on, nothing to score, or all outcomes are the same.
    """
    parts = [part[part.groupby("replicate")["run"].transform("nunique") == runs] for part in (fit, scored)]
    table = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    if permuted:
        table = table.assign(fails=permute_within_runs(table))
    try:
        result = race(
            {name: table[list(columns)].to_numpy(float) for name, columns in predictors.items()},
            table["fails"].to_numpy(float),
            table["run"].to_numpy(str),
            np.unique(parts[0]["run"].to_numpy(str)),
        )
    except BadInput:
        nothing = pd.DataFrame(columns=list(predictors), dtype=float)
        empty = pd.DataFrame(columns=["replicate", "fails", *predictors])
        return ReplicateRace(float("nan"), nothing.sum(axis=1), nothing.sum(axis=1), nothing, nothing, empty)
    rows = table[len(parts[0]) :]
    replicate = rows.drop_duplicates("run").set_index("run")["replicate"].loc[list(result.groups)].to_numpy()
    shares = rows.groupby("run")["fails"].mean().loc[list(result.groups)].to_numpy()
    chances = pd.DataFrame({"replicate": rows["replicate"], "fails": result.outcome} | result.chances)
    errors = {
        number: [calibration_error(part[name], part["fails"]) for name in predictors]
        for number, part in chances.groupby("replicate")
    }
    return ReplicateRace(
        result.base_rate,
        pd.Series(result.base_loss).groupby(replicate).mean(),
        pd.Series(shares).groupby(replicate).mean(),
        pd.DataFrame(result.gain).groupby(replicate).mean(),
        pd.DataFrame.from_dict(errors, orient="index", columns=list(predictors)),
        chances.reset_index(drop=True),
    )


def permute_within_runs(table: pd.DataFrame) -> Float[np.ndarray, " n"]:
    """Permute the column `fails` within each run, in the same way at every call."""
    permuted = table["fails"].to_numpy(float).copy()
    rng = np.random.default_rng(0)
    for rows in table.groupby("run", sort=True).indices.values():
        permuted[rows] = rng.permutation(permuted[rows])
    return permuted
