"""Held-out combinations with what was known of each, and a race of predictors of failure on them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput
from recombine.stats.prediction import brier, calibration_error, race
from recombine.studies.base import Tables

if TYPE_CHECKING:
    import pandas as pd

DECIDE, FIT, CONTROL = "decide", "fit", "control"
"""What a replicate is for (a column `role` of the tables)."""

CERTIFICATE = ("log_size", "pairs_covered", "triples_covered", "smallest_eigenvalue")
PAIRS = ("pairs_met", "pairs_unmet", "log_rarest_pair")
FREQUENCY = ("log_rarest_part", "unseen")
COVERAGE = ("parts", *PAIRS, *FREQUENCY, "distance", *CERTIFICATE)

PREDICTORS: dict[str, tuple[str, ...]] = {
    "pairs": PAIRS,
    "frequency": FREQUENCY,
    "distance": ("distance",),
    "certificate": CERTIFICATE,
    "coverage": COVERAGE,
    "decodability": ("log_error",),
    "both": (*COVERAGE, "log_error"),
}
"""The columns of each predictor. All but the last two are known before training."""

COUNTS = ("size", "rarest_pair", "rarest_part")
"""Columns of which the logarithm (of one more) is taken: from 0 to 1 is more than from 100 to 101."""


def cases(tables: Tables, threshold: float) -> pd.DataFrame:
    """A row for each held-out combination of each run: labels, score, `fails` (0 or 1) and the predictors' columns.

    Runs that failed, or were not measured, have no rows.
    """
    import pandas as pd

    labels = ["run", "family", "role", "support", "number", "replicate"]
    known = tables.others.get("readout")
    scores = tables.combinations
    columns = [*labels, "combination", "score", "fails", *PREDICTORS["both"]]
    if known is None or known.empty or scores.empty or "region" not in scores:
        return pd.DataFrame(columns=columns)
    scores = scores.loc[scores["region"] == "held_out", ["run", "combination", "score"]]
    table = known.merge(scores, on=["run", "combination"])
    table = table.assign(
        fails=(table["score"] < threshold).astype(float),
        log_error=np.log(table["error"].clip(lower=1e-9)),
        **{f"log_{name}": np.log1p(table[name].astype(float)) for name in COUNTS},
    )
    # A score that is not a number is no answer: the network's outputs overflowed. Its run counts as failed.
    sound = np.isfinite(table[["score", *PREDICTORS["both"]]].to_numpy(float)).all(axis=1)
    broken = table["run"][np.flatnonzero(~sound)].unique()
    return table.loc[~table["run"].isin(broken), columns].reset_index(drop=True)


@dataclasses.dataclass(frozen=True, eq=False)
class Raced:
    """How the predictors did. Each array has a value for each deciding replicate: not a number where a run is missing."""

    base_rate: float
    """The share of failures in the runs that predictors were fitted on."""
    base_loss: Float[np.ndarray, " replicate"]
    """The log-loss of always saying the base rate."""
    share: Float[np.ndarray, " replicate"]
    """The share of combinations that fail, mean of the runs."""
    gain: dict[str, Float[np.ndarray, " replicate"]]
    """How much smaller than the base rate's a predictor's log-loss is, mean of the runs."""
    calibration: dict[str, Float[np.ndarray, " replicate"]]
    """The expected calibration error, over all combinations of a replicate."""
    chances: pd.DataFrame
    """A row for each combination of the deciding replicates: `replicate`, `fails`, and the chance each predictor gave."""

    def overview(self) -> pd.DataFrame:
        """A row for each predictor, the base rate first: scores on unseen runs, means over replicates.

        `known`: before training or only after it; `calibration` is the expected calibration error.
        """
        import pandas as pd

        loss = _mean(self.base_loss)
        rows = [{"predictor": "base rate", "known": "before", "log_loss": loss, "gain": 0.0}]
        for name in PREDICTORS:
            after = "log_error" in PREDICTORS[name]
            gain = _mean(self.gain[name])
            row = {"predictor": name, "known": "after" if after else "before"}
            row |= {"log_loss": loss - gain, "gain": gain, "calibration": _mean(self.calibration[name])}
            if len(self.chances):
                row["brier"] = brier(self.chances[name], self.chances["fails"])
            rows.append(row)
        counted = int(np.isfinite(self.base_loss).sum())
        names = ["predictor", "known", "n", "log_loss", "gain", "brier", "calibration"]
        return pd.DataFrame(rows).assign(n=counted).reindex(columns=names)


def raced(table: pd.DataFrame, cells: int, seeds: list[int], permuted: bool = False) -> Raced:
    """Fit every predictor on the complete replicates that are for it, and judge it on the complete ones that decide.

    A replicate is complete if all of its `cells` are there. `permuted`: outcomes are exchanged within each run first.
    """
    import pandas as pd

    nothing = np.full(len(seeds), np.nan)
    empty = pd.DataFrame(columns=["replicate", "fails", *PREDICTORS])
    none = Raced(
        float("nan"),
        nothing,
        nothing,
        dict.fromkeys(PREDICTORS, nothing),
        dict.fromkeys(PREDICTORS, nothing),
        empty,
    )
    runs = table.groupby(["role", "replicate"])["run"].nunique()
    complete = runs.index[runs == cells]
    table = table[pd.MultiIndex.from_frame(table[["role", "replicate"]]).isin(complete)]
    fit, judged = table[table["role"] == FIT], table[table["role"] == DECIDE]
    judged = judged[judged["replicate"].isin(seeds)]
    table = pd.concat([fit, judged], ignore_index=True)
    if permuted:
        table = table.assign(fails=exchanged(table))
    try:
        found = race(
            {name: table[list(columns)].to_numpy(float) for name, columns in PREDICTORS.items()},
            table["fails"].to_numpy(float),
            table["run"].to_numpy(str),
            np.unique(fit["run"].to_numpy(str)),
        )
    except BadInput:
        return none  # Nothing to fit on, nothing to judge, or all outcomes alike.
    rows = table[table["role"] == DECIDE]
    of_run = rows.drop_duplicates("run").set_index("run")["replicate"]
    replicate = of_run.loc[list(found.groups)].to_numpy()

    def by_replicate(values: Float[np.ndarray, " run"]) -> Float[np.ndarray, " replicate"]:
        return pd.Series(values).groupby(replicate).mean().reindex(seeds).to_numpy(dtype=float)

    chances = pd.DataFrame({"replicate": rows["replicate"], "fails": found.outcome} | found.chances)
    return Raced(
        found.base_rate,
        by_replicate(found.base_loss),
        by_replicate(rows.groupby("run")["fails"].mean().loc[list(found.groups)].to_numpy()),
        {name: by_replicate(gain) for name, gain in found.gain.items()},
        {name: _calibrations(chances, name, seeds) for name in PREDICTORS},
        chances.reset_index(drop=True),
    )


def exchanged(table: pd.DataFrame) -> Float[np.ndarray, " n"]:
    """The outcomes, exchanged at random within each run: always in the same way."""
    made = table["fails"].to_numpy(float).copy()
    rng = np.random.default_rng(0)
    for places in table.groupby("run", sort=True).indices.values():
        made[places] = rng.permutation(made[places])
    return made


def _calibrations(chances: pd.DataFrame, name: str, seeds: list[int]) -> Float[np.ndarray, " replicate"]:
    found = np.full(len(seeds), np.nan)
    for place, seed in enumerate(seeds):
        part = chances[chances["replicate"] == seed]
        if len(part):
            found[place] = calibration_error(part[name], part["fails"])
    return found


def _mean(values: Float[np.ndarray, " replicate"]) -> float:
    """Of those that are there."""
    sample = values[np.isfinite(values)]
    return float(sample.mean()) if len(sample) else float("nan")
