"""How the study `decodability` gets its numbers: one for each claim and replicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.stats.rank import partial_rank
from recombine.studies.base import Tables
from recombine.studies.reduce import at, jackknife

if TYPE_CHECKING:
    from recombine.studies.decodability import Decodability

Values = Float[np.ndarray, " replicate"]
"""One number for each replicate."""

FIRST = "hidden 1"
"""The layer that is told the constituents: under the identity encoding what is read there proves nothing."""

LABELS = ["replicate", "family", "width", "number"]


def effects(study: Decodability, tables: Tables) -> dict[str, Values]:
    """The effects by the name of their claim."""
    values = _of_correlation(study, tables) | _of_layers(study, tables)
    return values | _of_use(study, tables) | _of_controls(study, tables)


def _of_correlation(study: Decodability, tables: Tables) -> dict[str, Values]:
    frame = study.points(tables)
    runs = len(study.numbers) + len(study.other_widths) * len(study.other_numbers)

    def over(layer: str, *within: str, covariates: tuple[str, ...] = ()) -> Values:
        return correlations(frame, layer, within, study.seeds, runs, covariates)

    return {
        "within-size": over("deepest", "number"),
        "within-size-and-width": over("deepest", "number", "width"),
        "within-size-at-equal-fit": over("deepest", "number", covariates=("r2_in",)),
        "within-size-and-width-middle": over("middle", "number", "width"),
    }


def _of_layers(study: Decodability, tables: Tables) -> dict[str, Values]:
    few, many = study.numbers[0], study.numbers[-1]

    def read(number: int, site: str, **which: str) -> Values:
        cell = _cell(study, study.base.family, number)
        return at_layer(tables.probes, site, study.seeds, **which, **cell)

    rise = {
        form: read(many, study.deepest, form=form) - read(few, study.deepest, form=form)
        for form in ("transfer", "intrinsic")
    }
    fade = {number: read(number, FIRST) - read(number, study.deepest) for number in (few, many)}
    return {
        "probe-starves": rise["transfer"] - rise["intrinsic"],
        "fades": fade[few],
        "fades-more": fade[few] - fade[many],
        "learned": read(many, study.deepest) - read(many, study.deepest, network="untrained"),
    }


def _of_use(study: Decodability, tables: Tables) -> dict[str, Values]:
    few, many = study.numbers[0], study.numbers[-1]
    erased = tables.others.get("erasure", pd.DataFrame()).reindex(
        columns=[*LABELS, "site", "after", "random", "decodable_after"]
    )

    def swapped(name: str) -> Values:
        return _run_value(study, tables, name, study.base.family, many)

    def erasure(name: str, site: str) -> Values:
        return at(erased, name, study.seeds, site=site, **_cell(study, study.base.family, many))

    def beyond_floors(which: str) -> Values:
        floors = swapped(f"floor_random{which}"), swapped(f"floor_control{which}")
        return swapped(f"efficacy{which}") - np.maximum(*floors)

    def lower(name: str) -> Values:
        families = (study.base.family, study.control)
        return np.min([_run_value(study, tables, name, one, few) for one in families], axis=0)

    return {
        "swap": beyond_floors("_best"),
        "swap-deepest": beyond_floors(""),
        "swap-deepest-helps": swapped("efficacy"),
        "swap-share": swapped("efficacy_best") / swapped("ceiling_shift_best"),
        "erasure-holds": erasure("decodable_after", study.middle),
        "erasure-first": erasure("random", FIRST) - erasure("after", FIRST),
        "erasure-middle": erasure("random", study.middle) - erasure("after", study.middle),
        "theorem-says-something": lower("bound_in"),
        "theorem": lower("slack_in"),
    }


def _of_controls(study: Decodability, tables: Tables) -> dict[str, Values]:
    few, many = study.numbers[0], study.numbers[-1]

    def control(name: str, number: int = few) -> Values:
        return _run_value(study, tables, name, study.control, number)

    def main(name: str, number: int) -> Values:
        return _run_value(study, tables, name, study.base.family, number)

    def excess(family: Family) -> Values:
        readout = tables.others.get("readout", pd.DataFrame())
        cell = _cell(study, family, many)
        return excess_error(readout, tables.combinations, study.ignored.part, study.seeds, **cell)

    return {
        "fits": np.min([main("r2_in", number) for number in study.numbers], axis=0),
        "control-is-learned": control("r2_in"),
        "selectivity": main("selectivity", few) - control("selectivity"),
        "control-stays-at-zero": np.mean(
            [control("correlation_held_out", number) for number in (few, many)], axis=0
        ),
        "control-is-decodable": control("intrinsic") - control("intrinsic_untrained"),
        "control-swap-misses": control("accuracy_best"),
        "control-not-recovered": control("recovered"),
        "ignored-is-learned": _run_value(study, tables, "r2_in", study.ignored, many),
        "ignored-part-fades": excess(study.ignored) - excess(study.base.family),
    }


def _cell(study: Decodability, family: Family, number: int) -> dict[str, Any]:
    """The labels of a cell of the main width."""
    return {"family": family.kind, "width": study.width, "number": number}


def _run_value(study: Decodability, tables: Tables, name: str, family: Family, number: int) -> Values:
    """A number of the runs of one cell."""
    return at(tables.runs, name, study.seeds, **_cell(study, family, number))


def at_layer(
    probes: pd.DataFrame,
    site: str,
    seeds: Sequence[int],
    *,
    form: str = "intrinsic",
    network: str = "trained",
    **labels: Any,
) -> Values:
    """Decodability at one site in one cell, by replicate."""
    frame = probes.reindex(columns=[*LABELS, "site", "form", "network", "strength", "r2"])
    names = {"site": site, "form": form, "network": network, "strength": "chosen"}
    return at(frame, "r2", seeds, **names, **labels)


def points(runs: pd.DataFrame, probes: pd.DataFrame, family: str, middle: str) -> pd.DataFrame:
    """A row for each run of the family: decodability of its deepest and of a middle layer, and its scores."""
    frame = runs[runs["family"] == family].reindex(
        columns=[*LABELS, "run", "intrinsic", "r2_in", "r2_held_out"]
    )
    frame = frame.rename(columns={"intrinsic": "deepest"})
    read = probes.reindex(columns=["run", "site", "form", "network", "strength", "r2"])
    read = read[
        (read["site"] == middle)
        & (read["form"] == "intrinsic")
        & (read["network"] == "trained")
        & (read["strength"] == "chosen")
    ]
    return frame.merge(read[["run", "r2"]].rename(columns={"r2": "middle"}), on="run", how="left")


def correlation(
    frame: pd.DataFrame, layer: str, within: Sequence[str], covariates: Sequence[str] = ()
) -> float:
    """Rank correlation of a layer's decodability with held-out R2 within groups; not a number where there are too few runs."""
    groups = frame.groupby(list(within)).ngroup()
    others = [frame[name] for name in covariates]
    try:
        return partial_rank(frame[layer], frame["r2_held_out"], groups, others).estimate
    except BadInput:
        return float("nan")


def correlations(
    frame: pd.DataFrame,
    layer: str,
    within: Sequence[str],
    seeds: Sequence[int],
    runs: int,
    covariates: Sequence[str] = (),
) -> Values:
    """The correlation as one number a replicate. `runs`: how many a replicate must have to count."""
    needed = [layer, "r2_held_out", *covariates]
    complete = frame.dropna(subset=needed)
    return jackknife(complete, lambda part: correlation(part, layer, within, covariates), seeds, runs)


def excess_error(
    readout: pd.DataFrame, combinations: pd.DataFrame, part: int, seeds: Sequence[int], **labels: Any
) -> Values:
    """How much worse a probe reads the held-out combinations that hold a part than the others, by replicate.

    Errors are shares of the spread of task vectors. How badly the other parts are read is in both means, so the difference
    says how this one is read: it is large where the layer has lost the part.
    """
    read = readout.reindex(columns=[*LABELS, "run", "combination", "error"])
    for label, value in labels.items():
        read = read[read[label] == value]
    if read.empty:
        return np.full(len(seeds), np.nan)
    names = combinations.reindex(columns=["run", "combination", "constituents"])
    names = names[names["run"].isin(set(read["run"]))].drop_duplicates(["run", "combination"])
    frame = read.merge(names, on=["run", "combination"])
    holds = np.array([part in list(one) for one in frame["constituents"]], dtype=bool)
    worse = (
        frame[holds].groupby("replicate")["error"].mean() - frame[~holds].groupby("replicate")["error"].mean()
    )
    return worse.reindex(list(seeds)).to_numpy(dtype=float)
