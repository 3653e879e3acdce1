"""How success in drawing held-out combinations goes with what can be read off the network: within runs and over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput
from recombine.probes.concepts import READING
from recombine.stats.rank import partial_rank
from recombine.studies.base import Tables
from recombine.studies.reduce import column, jackknife

if TYPE_CHECKING:
    import pandas as pd

RIVALS = ("rarest_part", "pairs_met", "text", "untrained")
"""What else may be behind a relation: known before training, from the text encoder, from an untrained network."""

RUN = ["arm", "replicate"]


def chosen(frame: pd.DataFrame, size: Mapping[str, int]) -> pd.DataFrame:
    """The rows of runs of one size."""
    for name, value in size.items():
        frame = frame[frame[name] == value]
    return frame


def successes(tables: Tables, size: Mapping[str, int]) -> pd.DataFrame:
    """A row for each held-out combination of each run: the share of its images that is right, whole and by factor."""
    import pandas as pd

    frame = chosen(tables.combinations, size)
    frame = frame[frame["region"] == "held_out"]
    factors = factors_of(frame)
    counts = ["whole", "images", *(f"{what}_{name}" for name in factors for what in ("hit", "asked"))]
    sums = frame.groupby([*RUN, "combination"])[counts].sum(min_count=1).reset_index()
    shares = {
        f"right {name.replace('_', ' ')}": sums[f"hit_{name}"] / sums[f"asked_{name}"].where(lambda n: n > 0)
        for name in factors
    }
    return pd.concat([sums.assign(success=sums["whole"] / sums["images"]), pd.DataFrame(shares)], axis=1)


def factors_of(frame: pd.DataFrame) -> list[str]:
    """The factors of scenes that columns tell of."""
    return [name.removeprefix("asked_") for name in frame.columns if name.startswith("asked_")]


def readings(tables: Tables, size: Mapping[str, int]) -> pd.DataFrame:
    """A row for each held-out combination and factor of each run: R2 at the chosen block, in the text, and untrained."""
    import pandas as pd

    frame = chosen(tables.others["concepts"], size)
    frame = frame[frame["combination"] != ""]
    kinds = {
        "decodability": frame["chosen"].astype(bool) & (frame["network"] == "trained"),
        "text": (frame["site"] == READING) & (frame["network"] == "trained"),
        "untrained": frame["chosen"].astype(bool) & (frame["network"] == "untrained"),
    }
    keys = [*RUN, "combination", "factor"]
    parts = {name: frame[mask].set_index(keys)["r2"] for name, mask in kinds.items()}
    return pd.DataFrame(parts).reset_index()


def by_combination(tables: Tables, size: Mapping[str, int]) -> pd.DataFrame:
    """A row for each held-out combination of each run: success, decodability (mean over factors), and the rivals."""
    keys = [*RUN, "combination"]
    read = readings(tables, size).groupby(keys)[["decodability", "text", "untrained"]].mean().reset_index()
    before = chosen(tables.others["readout"], size)[[*keys, "rarest_part", "pairs_met", "distance"]]
    return successes(tables, size)[[*keys, "success"]].merge(read, on=keys).merge(before, on=keys)


def by_factor(tables: Tables, size: Mapping[str, int]) -> pd.DataFrame:
    """A row for each held-out combination and factor of each run: whether the factor is drawn right, and read."""
    found = successes(tables, size)
    rights = [name for name in found.columns if name.startswith("right ")]
    long = (
        found.drop(columns="success")
        .melt([*RUN, "combination"], rights, var_name="factor", value_name="success")
        .dropna()
    )
    long["factor"] = long["factor"].str.removeprefix("right ")
    return long.merge(readings(tables, size), on=[*RUN, "combination", "factor"])


def related(
    cases: pd.DataFrame,
    seeds: Sequence[int],
    rivals: bool = False,
    exchanged: bool = False,
    group: Sequence[str] = ("arm",),
) -> Float[np.ndarray, " replicate"]:
    """The rank correlation of success and decodability within groups, by replicate; a replicate without any has none.

    With `exchanged`, success is dealt out anew among the combinations of each group.
    """
    found = np.full(len(seeds), np.nan)
    for place, seed in enumerate(seeds):
        own = cases[cases["replicate"] == seed]
        labels = own[list(group)].astype(str).agg(" | ".join, axis=1).to_numpy() if len(own) else np.array([])
        success = own["success"].to_numpy(float, copy=True)
        if exchanged:
            rng = np.random.default_rng([seed, 41])
            for label in np.unique(labels):
                success[labels == label] = rng.permutation(success[labels == label])
        covariates: list[Any] = [own[name].to_numpy(float) for name in RIVALS] if rivals else []
        try:
            found[place] = partial_rank(
                own["decodability"].to_numpy(float), success, labels, covariates
            ).estimate
        except BadInput:
            # Nothing varies (all right, or all wrong): there is no relation to speak of.
            continue
    return found


def over_runs(
    tables: Tables, size: Mapping[str, int], seeds: Sequence[int]
) -> Float[np.ndarray, " replicate"]:
    """The rank correlation over runs that are trained on the same (pseudo-values: it takes all replicates together)."""
    frame = chosen(tables.runs, size)
    table = frame[RUN].assign(
        success=column(frame, "success_held_out"), decodability=column(frame, "concepts_r2")
    )
    table = table.dropna()

    def statistic(some: pd.DataFrame) -> float:
        try:
            return partial_rank(some["decodability"], some["success"], some["arm"]).estimate
        except BadInput:
            return float("nan")

    return jackknife(table, statistic, seeds, rows=table["arm"].nunique())


def independence(
    tables: Tables, size: Mapping[str, int], seeds: Sequence[int]
) -> Float[np.ndarray, " replicate"]:
    """Joint success less the product of the factors', within held-out combinations; mean over combinations and arms.

    If factors went right independently of each other the difference would be zero on average, however few the images.
    """
    found = successes(tables, size)
    rights = [name for name in found.columns if name.startswith("right ")]
    # A factor that a space does not have is no part of the product.
    product = found[rights].fillna(1.0).prod(axis=1)
    means = (
        found.assign(gap=found["success"] - product).groupby(RUN)["gap"].mean().groupby("replicate").mean()
    )
    return means.reindex(list(seeds)).to_numpy(dtype=float)
