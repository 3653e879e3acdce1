"""Success in generating images: which combinations fail, how their factors fail together, what decodability says of it.

The functions take the tables of one or several arms, each a mapping from names of measurements to frames: `runs`, `scores`
(one row per image), `concepts` (one per combination, factor and probe) and `readout` (one per held-out combination). Each
frame has the columns `arm` and `replicate`, which name a run. Effects are series with one number per replicate.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import pandas as pd
from jaxtyping import Bool

from recombine.errors import BadInput
from recombine.stats.jackknife import jackknife
from recombine.stats.rank import partial_rank

RUN = ["arm", "replicate"]
KEYS = [*RUN, "combination"]
PROBES = {
    "decodability": ("trained", "chosen"),
    "early": ("trained", "early"),
    "text": ("trained", "text"),
    "untrained": ("untrained", "chosen"),
}
"""The probes of each combination: the network, and which of its sites is read."""
COVERAGE = ["rarest_part", "pairs_met", "distance"]
"""What training showed of a combination: columns of `readout`."""
RIVALS = (*COVERAGE, "parts_trained", "text", "untrained", "blind")
"""Other explanations of a relation: what training showed, success of the constituents in trained combinations, decodability
from the text encoder and from an untrained network, rarity among the combinations that probes are fitted on."""


class Frames(Protocol):
    """The tables of an arm by their names."""

    def __getitem__(self, name: str, /) -> pd.DataFrame: ...


def _stacked(tables: Sequence[Frames], name: str) -> pd.DataFrame:
    return pd.concat([own[name] for own in tables], ignore_index=True)


def _images(tables: Sequence[Frames], region: str = "held_out") -> pd.DataFrame:
    """The images of a region's combinations, with the columns `success` (0 or 1) and `seen` (the judge could read it)."""
    scores = _stacked(tables, "scores")
    frame = scores.reindex(
        columns=[*dict.fromkeys([*scores, *KEYS, "region", "constituents", "whole", "seen", "images"])]
    )
    frame = frame[frame["region"] == region]
    if (frame["images"].astype(float) > 1).any():
        raise BadInput("One row has the scores of several images.", fix="measure them with samples=1")
    return frame.assign(success=frame["whole"].astype(float), seen=frame["seen"].astype(float) > 0)


def _factors(frame: pd.DataFrame) -> list[str]:
    return [name.removeprefix("asked_") for name in frame.columns if name.startswith("asked_")]


def success_rates(*tables: Frames) -> pd.DataFrame:
    """The share of right images of each held-out combination of each run.

    Args:
        *tables: The tables of each arm, with `scores`.

    Returns:
        The columns `arm`, `replicate`, `combination`, `success` (every factor right) and `right ...` for each factor.
    """
    frame = _images(tables)
    names = {f"hit_{name}": f"right {name.replace('_', ' ')}" for name in _factors(frame)}
    hits = {
        hit: frame[hit].astype(float).where(frame[hit.replace("hit", "asked", 1)].astype(float) > 0) for hit in names
    }
    means = frame.assign(**hits).groupby(KEYS)[["success", *names]].mean()
    return means.rename(columns=names).reset_index()


def _readings(tables: Sequence[Frames]) -> pd.DataFrame:
    """R2 of each probe, one row per held-out combination and factor of each run."""
    concepts = _stacked(tables, "concepts")
    columns = [*KEYS, "factor", "network", "use", "r2", "blind"]
    frame = concepts.reindex(columns=[*dict.fromkeys([*concepts, *columns])])
    frame = frame[frame["combination"].fillna("") != ""].set_index([*KEYS, "factor"])
    rows = {
        name: frame[(frame["network"] == network) & (frame["use"] == use)] for name, (network, use) in PROBES.items()
    }
    values = {name: own["r2"] for name, own in rows.items()}
    return pd.DataFrame(values | {"blind": rows["decodability"]["blind"].astype(float)}).reset_index()


def combination_table(*tables: Frames) -> pd.DataFrame:
    """Success, decodability (mean over factors) and its rivals, one row per held-out combination of each run.

    Args:
        *tables: The tables of each arm, with `scores`, `concepts` and `readout`.

    Returns:
        The columns `arm`, `replicate`, `combination`, `success`, those of `PROBES` and those of `RIVALS`.
    """
    decoded = _readings(tables).groupby(KEYS)[[*PROBES, "blind"]].mean().reset_index()
    trained = _images(tables, "trained").explode("constituents")
    by_part = trained.groupby([*RUN, "constituents"])["success"].mean().rename("parts_trained").reset_index()
    parts = _images(tables)[[*KEYS, "constituents"]].drop_duplicates(KEYS).explode("constituents")
    parts = _merged(parts, by_part, [*RUN, "constituents"], "left")
    table = success_rates(*tables)[[*KEYS, "success"]]
    for other in (
        decoded,
        _stacked(tables, "readout").reindex(columns=[*KEYS, *COVERAGE]),
        parts.groupby(KEYS)["parts_trained"].mean().reset_index(),
    ):
        table = _merged(table, other, KEYS)
    return table


def _merged(
    frame: pd.DataFrame, other: pd.DataFrame, keys: list[str], how: Literal["inner", "left"] = "inner"
) -> pd.DataFrame:
    # The columns of an empty table have no type, and pandas would refuse to compare them.
    types = dict.fromkeys(keys, object)
    return frame.astype(types).merge(other.astype(types), on=keys, how=how)


def factor_table(*tables: Frames) -> pd.DataFrame:
    """Which factor of a combination fails, and which is decoded badly.

    Success and decodability are ranks among the combinations of a factor, minus the mean over the factors of the combination.
    What is left does not depend on differences between combinations or between factors.

    Args:
        *tables: The tables of each arm, with `scores` and `concepts`.

    Returns:
        One row per held-out combination and factor of each run: `success`, `decodability` and the other probes.
    """
    rates = success_rates(*tables)
    rights = [name for name in rates.columns if name.startswith("right ")]
    table = rates.drop(columns="success").melt(KEYS, rights, var_name="factor", value_name="success").dropna()
    table["factor"] = table["factor"].astype(str).str.removeprefix("right ")
    table = _merged(table, _readings(tables), [*KEYS, "factor"])
    for name in ("success", "decodability"):
        table[name] = table.groupby([*RUN, "factor"])[name].rank(pct=True)
        table[name] -= table.groupby(KEYS)[name].transform("mean")
    return table


def rank_within_runs(
    table: pd.DataFrame, arms: int, by: str = "decodability", covariates: Sequence[str] = ()
) -> pd.Series:
    """The rank correlation of success and another column within each run, averaged over the arms of a replicate.

    A covariate that does not vary in a run is left out there. A run in which nothing varies (every combination succeeds, or
    none) is left out of the mean.

    Args:
        table: One row per combination of each run, as of `combination_table` or `factor_table`.
        arms: The number of arms. A replicate that lacks one has no number.
        by: The column that is related to success.
        covariates: Columns to partial out.
    """
    values = {}
    for replicate, rows in table.groupby("replicate"):
        runs = [run for _, run in rows.groupby("arm")]
        each = [_rank(run, by, "success", [name for name in covariates if run[name].nunique() > 1]) for run in runs]
        known = len(runs) == arms and np.isfinite(each).any()
        values[replicate] = np.nanmean(each) if known else np.nan
    return pd.Series(values, dtype=float)


def _rank(frame: pd.DataFrame, x: str, y: str, covariates: Sequence[str], group: str | None = None) -> float:
    """The partial rank correlation of two columns within groups; NaN where nothing varies."""
    groups = np.zeros(len(frame)) if group is None else frame[group]
    others = [frame[name].to_numpy(float) for name in covariates]
    try:
        return partial_rank(frame[x].to_numpy(float), frame[y].to_numpy(float), groups, others).estimate
    except BadInput:
        return float("nan")


def decodability_relation(*tables: Frames, by: str = "decodability", covariates: Sequence[str] = ()) -> pd.Series:
    """The relation of decodability and success over the held-out combinations of a run (see `rank_within_runs`)."""
    return rank_within_runs(combination_table(*tables), len(tables), by, covariates)


def factor_relation(*tables: Frames) -> pd.Series:
    """The relation of decodability and success over the factors of combinations (see `factor_table`)."""
    return rank_within_runs(factor_table(*tables), len(tables))


def rank_over_runs(*tables: Frames, covariates: Sequence[str] = ()) -> pd.Series:
    """The rank correlation of decodability and held-out success over the runs of each arm.

    It takes all replicates together, so the numbers are pseudo-values (see `jackknife`).

    Args:
        *tables: The tables of each arm, with `runs`.
        covariates: Columns of runs to partial out.
    """
    x, y = "concepts_r2", "success_held_out"
    frame = _stacked(tables, "runs").reindex(columns=[*RUN, x, y, *covariates]).dropna()
    seeds = sorted(frame["replicate"].unique())
    values = jackknife(frame, lambda some: _rank(some, x, y, covariates, "arm"), seeds, rows=len(tables))
    return pd.Series(values, index=seeds, dtype=float)


def rank_over_models_and_concepts(*tables: Frames) -> pd.Series:
    """The rank correlation of decodability and success over models and concepts: the analysis of the literature.

    A model is a run, and a concept is a factor. Each pair of them has the mean R2 of the probe of this factor and the share of
    images with this factor right, over held-out combinations. Differences between models and between factors both count. It
    takes all replicates together, so the numbers are pseudo-values (see `jackknife`).

    Args:
        *tables: The tables of each arm, with `scores` and `concepts`.
    """
    keys = [*RUN, "factor"]
    rates = success_rates(*tables)
    rights = [name for name in rates.columns if name.startswith("right ")]
    table = rates.drop(columns="success").melt(RUN, rights, var_name="factor", value_name="success").dropna()
    table["factor"] = table["factor"].astype(str).str.removeprefix("right ")
    right = table.groupby(keys)["success"].mean().reset_index()
    decoded = _readings(tables).groupby(keys)["decodability"].mean().reset_index()
    points = _merged(right, decoded, keys).dropna()
    seeds = sorted(points["replicate"].unique())
    rows = len(points[["arm", "factor"]].drop_duplicates())
    values = jackknife(points, lambda some: _rank(some, "decodability", "success", ()), seeds, rows=rows)
    return pd.Series(values, index=seeds, dtype=float)


def near_minus_far(*tables: Frames) -> pd.Series:
    """Success on held-out combinations one step from the training combinations minus that farther away."""
    table = combination_table(*tables)
    means = table.groupby(["replicate", table["distance"] <= 1])["success"].mean().unstack()
    means = means.reindex(columns=[True, False])
    return means[True] - means[False]


def joint_success(*tables: Frames) -> pd.Series:
    """Joint success of the factors minus the product of their successes, within held-out combinations.

    Only images that the judge can read count: of the others it says nothing, which would tie all factors together.
    Combinations with fewer such images than factors are left out.

    Args:
        *tables: The tables of each arm, with `scores`. A replicate that lacks an arm has no number.

    Returns:
        The mean over combinations, then over arms.
    """
    frame = _images(tables)
    frame = frame[frame["seen"]]
    factors, rows = _factors(frame), []
    for (arm, replicate, _), group in frame.groupby(KEYS):
        asked = [f"hit_{name}" for name in factors if (group[f"asked_{name}"] > 0).all()]
        right = group[asked].to_numpy(float) > 0
        if len(right) >= right.shape[1]:
            rows.append((arm, replicate, right.all(1).mean() - independent_success(right)))
    gaps = pd.DataFrame(rows, columns=[*RUN, "gap"]).groupby(RUN)["gap"].mean().reset_index()
    by_replicate = gaps.astype({"gap": float}).groupby("replicate")["gap"]
    return by_replicate.mean().where(by_replicate.size() == len(tables))


def independent_success(right: Bool[np.ndarray, "image factor"]) -> float:
    """The share of images that independent factors would get right, without bias however few the images.

    Each factor is taken from another image; the result is the mean over all such choices.

    Args:
        right: Whether each factor is right in each image; at least as many images as factors.
    """
    number, factors = right.shape
    chosen = np.array(list(itertools.permutations(range(number), factors)))
    return float(np.all(right[chosen, np.arange(factors)], axis=1).mean())


def exchanged_colours(*tables: Frames) -> pd.Series:
    """Of held-out images with both shapes right and both colours wrong, the share with the colours exchanged.

    Args:
        *tables: The tables of each arm, with `scores` of images of two things, a left one and a right one.
    """
    frame = _images(tables)
    hits = [f"hit_{side}_{what}" for what in ("shape", "colour") for side in ("left", "right")]
    frame = frame.reindex(columns=[*dict.fromkeys([*frame, "exchanged", "exchangeable", *hits])])
    shapes, colours = (frame[hits[:2]] > 0).all(axis=1), (frame[hits[2:]] > 0).any(axis=1)
    wrong = frame[frame["seen"] & (frame["exchangeable"] > 0) & shapes & ~colours]
    return (wrong["exchanged"].astype(float) > 0).groupby(wrong["replicate"]).mean()


def loss_of_unmet_pairs(complete: Frames, missing: Frames) -> pd.Series:
    """The success that runs with unmet pairs lose on combinations with such a pair, minus what they lose on the others.

    Both losses are on the same combinations in both arms, so combinations that are hard in both do not count.

    Args:
        complete: The tables of runs in which every pair of constituents met.
        missing: The tables of runs in which some pairs never met.
    """
    keys = ["replicate", "combination"]
    left, right = combination_table(complete), combination_table(missing)
    table = left[[*keys, "success"]].merge(right[[*keys, "success", "pairs_met"]], on=keys)
    loss = table["success_x"] - table["success_y"]
    unmet = np.where(table["pairs_met"] < 1, "unmet", "met")
    means = loss.groupby([table["replicate"], unmet]).mean().unstack().reindex(columns=["unmet", "met"])
    return means["unmet"] - means["met"]
