"""How success in drawing held-out combinations goes with what can be read off the network: within runs and over them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from recombine.errors import BadInput
from recombine.stats.rank import partial_rank
from recombine.studies.base import Tables
from recombine.studies.reduce import column, jackknife

if TYPE_CHECKING:
    import pandas as pd

RIVALS = ("rarest_part", "pairs_met", "distance", "parts_trained", "text", "untrained", "blind")
"""What else may be behind a relation: what training showed, how well the parts are drawn in trained combinations, what is
read off the text encoder and an untrained network, and how rare the parts are among the combinations that probes are fitted on."""
OVER_RUNS = ("text_r2", "concepts_untrained_r2", "success_in")
"""The rivals of a relation over runs."""
NETWORKS = {
    "decodability": ("trained", "chosen"),
    "early": ("trained", "early"),
    "text": ("trained", "text"),
    "untrained": ("untrained", "chosen"),
}
"""What is read of each combination: of which network, and which of its sites."""

RUN = ["arm", "replicate"]
KEYS = [*RUN, "combination"]
Sizes = Mapping[str, Mapping[str, int]]
"""By arm: the labels of its runs."""


def of_size(frame: pd.DataFrame, sizes: Sizes, columns: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of each arm's runs of its size. A table of nothing has the columns too, and no rows."""
    frame = frame.reindex(columns=list(dict.fromkeys([*frame.columns, *RUN, *columns])))
    if not len(frame):
        return frame
    fits = np.zeros(len(frame), bool)
    for arm, size in sizes.items():
        own = frame["arm"] == arm
        for name, value in size.items():
            own = own & (frame[name] == value)
        fits |= own.to_numpy(bool)
    return frame[fits]


def images(tables: Tables, sizes: Sizes, region: str = "held_out") -> pd.DataFrame:
    """A row for each image of a region's combinations: whether it is readable, and right in each factor and as a whole."""
    columns = ["region", "combination", "constituents", "whole", "seen", "images"]
    frame = of_size(tables.others["scores"], sizes, columns)
    frame = frame[frame["region"] == region]
    if (frame["images"].astype(float) > 1).any():
        raise BadInput("Scores of several images are in one row.", fix="measure them with samples=1")
    return frame.assign(success=frame["whole"].astype(float), seen=frame["seen"].astype(float) > 0)


def factors_of(frame: pd.DataFrame) -> list[str]:
    """The factors of scenes that columns tell of."""
    return [name.removeprefix("asked_") for name in frame.columns if name.startswith("asked_")]


def successes(tables: Tables, sizes: Sizes, region: str = "held_out") -> pd.DataFrame:
    """A row for each combination of each run: the share of its images that is right, as a whole and by factor."""
    frame = images(tables, sizes, region)
    names = {f"hit_{name}": f"right {name.replace('_', ' ')}" for name in factors_of(frame)}
    asked = {f"hit_{name}": frame[f"asked_{name}"].astype(float) > 0 for name in factors_of(frame)}
    hits = frame.assign(**{hit: frame[hit].astype(float).where(asked[hit]) for hit in names})
    return hits.groupby(KEYS)[["success", *names]].mean().rename(columns=names).reset_index()


def readings(tables: Tables, sizes: Sizes) -> pd.DataFrame:
    """A row for each held-out combination and factor of each run: R2 at the chosen site, at the early one, and of rivals."""
    import pandas as pd

    columns = ["combination", "factor", "network", "use", "r2", "blind"]
    frame = of_size(tables.others["concepts"], sizes, columns)
    frame = frame[frame["combination"].fillna("") != ""]
    parts = {
        name: frame[(frame["network"] == network) & (frame["use"] == use)].set_index([*KEYS, "factor"])["r2"]
        for name, (network, use) in NETWORKS.items()
    }
    known = frame[(frame["network"] == "trained") & (frame["use"] == "chosen")]
    parts["blind"] = known.set_index([*KEYS, "factor"])["blind"].astype(float)
    return pd.DataFrame(parts).reset_index()


def parts_trained(tables: Tables, sizes: Sizes) -> pd.DataFrame:
    """How often images of *trained* combinations with a part are right as a whole: a row for each part of each run."""
    frame = images(tables, sizes, "trained")[[*RUN, "constituents", "success"]].explode("constituents")
    means = frame.groupby([*RUN, "constituents"])["success"].mean()
    return means.rename("parts_trained").reset_index()


def by_combination(tables: Tables, sizes: Sizes) -> pd.DataFrame:
    """A row for each held-out combination of each run: success, decodability (mean over factors), and the rivals."""
    read = readings(tables, sizes).groupby(KEYS)[[*NETWORKS, "blind"]].mean().reset_index()
    known = ["rarest_part", "pairs_met", "distance"]
    before = of_size(tables.others["readout"], sizes, ["combination", *known])[[*KEYS, *known]]
    asked = images(tables, sizes)[[*KEYS, "constituents"]].drop_duplicates(KEYS).explode("constituents")
    parts = _merged(asked, parts_trained(tables, sizes), [*RUN, "constituents"], "left")
    easy = parts.groupby(KEYS)["parts_trained"].mean().reset_index()
    found = successes(tables, sizes)[[*KEYS, "success"]]
    for other in (read, before, easy):
        found = _merged(found, other, KEYS)
    return found


def _merged(
    frame: pd.DataFrame, other: pd.DataFrame, keys: list[str], how: Literal["inner", "left"] = "inner"
) -> pd.DataFrame:
    """Two tables side by side. Columns of a table of nothing have no type, which pandas would not compare."""
    return frame.astype(dict.fromkeys(keys, object)).merge(
        other.astype(dict.fromkeys(keys, object)), on=keys, how=how
    )


def by_factor(tables: Tables, sizes: Sizes) -> pd.DataFrame:
    """A row for each held-out combination and factor of each run: how often the factor is right, and how it is read.

    Both as ranks among the combinations of a factor, less their mean over the factors of the combination: what is left is
    which factor of a combination goes wrong, and not that combinations or factors differ.
    """
    found = successes(tables, sizes)
    rights = [name for name in found.columns if name.startswith("right ")]
    long = found.drop(columns="success").melt(KEYS, rights, var_name="factor", value_name="success").dropna()
    long["factor"] = long["factor"].astype(str).str.removeprefix("right ")
    long = _merged(long, readings(tables, sizes), [*KEYS, "factor"])
    for name in ("success", "decodability"):
        long[name] = long.groupby([*RUN, "factor"])[name].rank(pct=True)
        long[name] -= long.groupby(KEYS)[name].transform("mean")
    return long


def related(
    cases: pd.DataFrame,
    seeds: Sequence[int],
    arms: Sequence[str],
    by: str = "decodability",
    rivals: Sequence[str] = (),
) -> Float[np.ndarray, " replicate"]:
    """The rank correlation of success and decodability within each arm's run, rivals taken out; mean over arms.

    A replicate that lacks an arm has no number: the others must not stand in for it. An arm in which nothing varies (all is
    right, or all wrong) has no relation to speak of and is left out of the mean.
    """
    found = np.full(len(seeds), np.nan)
    for place, seed in enumerate(seeds):
        runs = [cases[(cases["replicate"] == seed) & (cases["arm"] == arm)] for arm in arms]
        if all(len(run) for run in runs):
            each = [_within(run, by, rivals) for run in runs]
            found[place] = np.nanmean(each) if np.isfinite(each).any() else np.nan
    return found


def _within(run: pd.DataFrame, by: str, rivals: Sequence[str]) -> float:
    # What does not vary in a run explains nothing there.
    covariates = [run[name].to_numpy(float) for name in rivals if run[name].nunique() > 1]
    try:
        return partial_rank(
            run[by].to_numpy(float), run["success"].to_numpy(float), np.zeros(len(run)), covariates
        ).estimate
    except BadInput:
        return float("nan")


def over_runs(
    tables: Tables, sizes: Sizes, seeds: Sequence[int], rivals: Sequence[str] = ()
) -> Float[np.ndarray, " replicate"]:
    """The rank correlation over runs that are trained on the same (pseudo-values: it takes all replicates together)."""
    frame = of_size(tables.runs, sizes)
    names = {"success": "success_held_out", "decodability": "concepts_r2"} | {name: name for name in rivals}
    table = frame[RUN].assign(**{name: column(frame, source) for name, source in names.items()}).dropna()

    def statistic(some: pd.DataFrame) -> float:
        try:
            covariates = [some[name] for name in rivals]
            return partial_rank(some["decodability"], some["success"], some["arm"], covariates).estimate
        except BadInput:
            return float("nan")

    return jackknife(table, statistic, seeds, rows=len(sizes))


def independence(tables: Tables, sizes: Sizes, seeds: Sequence[int]) -> Float[np.ndarray, " replicate"]:
    """Joint success less the product of the factors', within held-out combinations; mean over these, then over arms.

    Of readable images alone: of the others the checker says nothing, which would tie all factors together. In the product
    each factor is taken from another image (the mean over all such choices), so that it is what independent factors would
    give, however few the images; combinations with fewer readable images than factors have none.
    """
    frame = images(tables, sizes)
    frame = frame[frame["seen"]]
    hits = [f"hit_{name}" for name in factors_of(frame)]
    gaps: dict[tuple[Any, Any], list[float]] = {}
    for (arm, replicate, _), group in frame.groupby(KEYS):
        own = [place for place, hit in enumerate(hits) if (group[hit.replace("hit", "asked")] > 0).all()]
        right = group[[hits[place] for place in own]].to_numpy(float) > 0
        if len(right) >= right.shape[1]:
            gaps.setdefault((arm, replicate), []).append(right.all(1).mean() - product(right))
    found = np.full(len(seeds), np.nan)
    for place, seed in enumerate(seeds):
        own = [gaps.get((arm, seed)) for arm in sizes]
        if all(own):
            found[place] = np.mean([np.mean(some) for some in own if some])
    return found


def product(right: Bool[np.ndarray, "image factor"]) -> float:
    """The mean over all ways to take each factor from another image of the product of what is right."""
    number, factors = right.shape
    chosen = np.array(list(itertools.permutations(range(number), factors)))
    return float(np.all(right[chosen, np.arange(factors)], axis=1).mean())


def exchanges(
    tables: Tables, sizes: Sizes, arm: str, seeds: Sequence[int]
) -> Float[np.ndarray, " replicate"]:
    """Of held-out images with both shapes right and both colours wrong: the share in which the colours are exchanged."""
    frame = images(tables, {arm: sizes[arm]})
    needed = [
        "exchanged",
        "exchangeable",
        *(f"hit_{side}_{what}" for side in ("left", "right") for what in ("shape", "colour")),
    ]
    frame = frame.reindex(columns=[*frame.columns, *(name for name in needed if name not in frame.columns)])
    shapes = (frame["hit_left_shape"] > 0) & (frame["hit_right_shape"] > 0)
    colours = (frame["hit_left_colour"] > 0) | (frame["hit_right_colour"] > 0)
    wrong = frame[frame["seen"] & (frame["exchangeable"] > 0) & shapes & ~colours]
    shares = (wrong["exchanged"].astype(float) > 0).groupby(wrong["replicate"]).mean()
    return shares.reindex(list(seeds)).to_numpy(dtype=float)


def lost(
    tables: Tables, sizes: Sizes, arms: tuple[str, str], seeds: Sequence[int]
) -> Float[np.ndarray, " replicate"]:
    """What an arm loses against another on the same held-out combinations: where a pair never met, less where all did.

    Combinations that are hard whatever is trained on are hard in both arms, and drop out.
    """
    cases = by_combination(tables, sizes)
    both = [cases[cases["arm"] == arm].set_index(["replicate", "combination"]) for arm in arms]
    loss = (both[0]["success"] - both[1]["success"]).dropna().rename("loss").reset_index()
    unmet = (both[1]["pairs_met"] < 1).rename("unmet").reset_index()
    means = (
        loss.merge(unmet, on=["replicate", "combination"])
        .groupby(["replicate", "unmet"])["loss"]
        .mean()
        .unstack()
    )
    gaps = means.reindex(columns=[True, False])
    return (gaps[True] - gaps[False]).reindex(list(seeds)).to_numpy(dtype=float)
