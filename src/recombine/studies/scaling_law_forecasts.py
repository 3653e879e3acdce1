"""Laws of a table of runs: what they forecast for larger runs, and how many combinations they say are needed."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput
from recombine.stats.forecasts import last_value, log_linear
from recombine.stats.scaling_law import REACH, Law, Needed, fit_law, forecast, needed
from recombine.studies.reduce import column
from recombine.training.config import RunConfig
from recombine.training.prepare import first_network

if TYPE_CHECKING:
    import pandas as pd

FITTED, HELD_OUT = "fitted", "held out"
"""Whether the law was fitted on a run (a column `role` of the tables)."""

SMALLEST = 1e-9
"""A loss of zero has no logarithm."""

METHODS = ("law", "last", "line")
"""The law, the last value and the straight line of log loss on log sizes."""


def number_of_weights(config: RunConfig) -> int:
    """How many numbers of a network are trained. Nothing is drawn for it."""
    parts = config.model, config.encoding, config.space, config.family
    shapes = eqx.filter_eval_shape(
        lambda key: first_network(*parts, config.family.draw(config.space, key), key), jax.random.key(0)
    )
    leaves = [leaf for leaf in jax.tree.leaves(shapes) if isinstance(leaf, jax.ShapeDtypeStruct)]
    return sum(leaf.size for leaf in leaves if np.issubdtype(leaf.dtype, np.inexact))


def with_loss(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with what a law is about, `loss` = 1 - R2 on held-out combinations."""
    return runs.assign(loss=(1 - column(runs, "r2_held_out").astype(float)).clip(lower=SMALLEST))


def forecasts(runs: pd.DataFrame, seeds: Sequence[int], cells: int) -> pd.DataFrame:
    """A row for each replicate and each of its larger runs: what came, and what was forecast from its smaller ones.

    `runs` are those of one family, with `role`, `number` and `parameters`. A replicate that lacks one of its `cells`
    has no rows.
    """
    import pandas as pd

    rows = []
    for seed in seeds:
        part = with_loss(runs[runs["replicate"] == seed])
        if len(part) != cells or not np.isfinite(part["loss"]).all():
            continue
        small, large = part[part["role"] == FITTED], part[part["role"] == HELD_OUT]
        sizes = small["loss"], small["number"], small["parameters"]
        law = _law(*(tuple(one.astype(float)) for one in sizes))
        for number, parameters, loss in large[["number", "parameters", "loss"]].to_numpy(float).tolist():
            # The largest lie a little beyond what a user may ask: so all that may be asked was tried.
            said = forecast(law, number, parameters, beyond=True)
            more = number > law.largest[0], parameters > law.largest[1]
            rows.append(
                {
                    "replicate": seed,
                    "number": int(number),
                    "parameters": int(parameters),
                    "larger": "both" if all(more) else "number" if more[0] else "parameters",
                    "loss": loss,
                    "law": said.median,
                    "low": said.low,
                    "high": said.high,
                    "last": last_value(*sizes, at=number, at_parameters=parameters),
                    "line": log_linear(*sizes, at=number, at_parameters=parameters),
                }
            )
    names = ["replicate", "number", "parameters", "larger", "loss", "law", "low", "high", "last", "line"]
    return pd.DataFrame(rows, columns=names)


@functools.lru_cache(maxsize=64)
def _law(loss: tuple[float, ...], number: tuple[float, ...], parameters: tuple[float, ...]) -> Law:
    """Verdicts, overview and figures ask for the same laws."""
    return fit_law(loss, number, parameters)


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """The forecasts with each method's distance from what came, in log loss; how much too high the law was
    (`surplus`); and whether its interval held what came."""
    came = np.log(table["loss"].astype(float))
    distances = {f"{name}_error": np.abs(np.log(table[name].astype(float)) - came) for name in METHODS}
    inside = (table["loss"] >= table["low"]) & (table["loss"] <= table["high"])
    surplus = np.log(table["law"].astype(float)) - came
    return table.assign(**distances, surplus=surplus, inside=inside.astype(float))


def exponents(runs: pd.DataFrame, seeds: Sequence[int], cells: int) -> Float[np.ndarray, " replicate"]:
    """How fast loss falls with combinations in the fitted runs: minus the slope of a line, so it can be negative."""
    found = np.full(len(seeds), np.nan)
    for place, seed in enumerate(seeds):
        part = with_loss(runs[(runs["replicate"] == seed) & (runs["role"] == FITTED)])
        if len(part) != cells or not np.isfinite(part["loss"]).all():
            continue
        logs = np.log(part[["number", "parameters"]].to_numpy(float))
        design = np.concatenate([np.ones((len(part), 1)), logs], axis=1)
        found[place] = -np.linalg.lstsq(design, np.log(part["loss"].to_numpy(float)), rcond=None)[0][1]
    return found


def forecast_r2(
    runs: pd.DataFrame, seeds: Sequence[int], numbers: Sequence[int], asked: int
) -> Float[np.ndarray, " replicate"]:
    """The R2 that a law in combinations alone forecasts at a larger number, for each replicate."""
    found = np.full(len(seeds), np.nan)
    for place, seed in enumerate(seeds):
        part = with_loss(runs[(runs["replicate"] == seed) & runs["number"].isin(numbers)])
        if len(part) == len(numbers) and np.isfinite(part["loss"]).all():
            law = fit_law(part["loss"], part["number"])
            found[place] = 1 - forecast(law, asked, beyond=True).median
    return found


def mean_law(runs: pd.DataFrame, role: str | None = None) -> Law:
    """The law of the means over replicates (of log loss): of all runs of a family, or of the fitted ones alone."""
    part = with_loss(runs if role is None else runs[runs["role"] == role])
    part = part[np.isfinite(part["loss"])]
    means = (
        part.assign(log=np.log(part["loss"])).groupby(["number", "parameters"])["log"].mean().reset_index()
    )
    if means.empty:
        raise BadInput("There is no finished run to fit a law to.", fix="run the study first")
    return fit_law(np.exp(means["log"]), means["number"], means["parameters"])


def answers(runs: pd.DataFrame, targets: Sequence[float], space_size: int) -> dict[float, str]:
    """For each R2 how many combinations it takes with the largest network, by the law of all runs, in words."""
    try:
        law = mean_law(runs)
    except BadInput as refusal:
        return dict.fromkeys(targets, f"no answer: {refusal.message}")
    return {target: needed_in_words(law, target, law.largest[1], space_size) for target in targets}


def needed_in_words(law: Law, target: float, parameters: float, space_size: int) -> str:
    """How many combinations R2 = `target` takes, or why there is no answer."""
    try:
        found = needed(law, 1 - target, parameters)
    except BadInput as refusal:
        return f"no answer: {refusal.message}"
    return _said(found, law, parameters, space_size)


def _said(found: Needed, law: Law, parameters: float, space_size: int) -> str:
    level = f"{found.level * 100:.0f} % interval"
    furthest = REACH * law.largest[0]
    high = "beyond" if math.isinf(found.high) else "to"
    ends = f"{found.low:.0f} {high} {min(found.high, furthest):.0f}"
    if found.status == "below the floor":
        assert law.size is not None
        most = 1 - law.floor - law.size[0] * parameters ** -law.size[1]
        text = f"no number of combinations: as it is trained, this network ends near R2 {most:.3f}"
        return text if found.low >= furthest else f"{text} (but the {level} begins at {found.low:.0f})"
    if found.status == "already reached":
        return f"{law.smallest:.0f} or fewer"
    text = f"about {found.number:.0f} ({level} {ends})"
    return text if found.number <= space_size else f"{text}: more than the {space_size} that there are"


def overview(
    runs: pd.DataFrame, table: pd.DataFrame, answers: Mapping[float, str], asked: Mapping[str, Any]
) -> pd.DataFrame:
    """Means over replicates in each cell, the forecasts there, then a row a target: the combinations it takes.

    `asked` holds the labels (family, width) of the cell that the answers are about.
    """
    import pandas as pd

    by, scores = ["family", "role", "width", "number"], ["r2_in", "r2_held_out"]
    grouped = runs.reindex(columns=[*by, "parameters", *scores]).groupby([*by, "parameters"], sort=False)
    cells = grouped[scores].mean()
    cells.insert(2, "n", grouped["r2_held_out"].count())
    said = table.assign(role=HELD_OUT, forecast=1 - table["law"].astype(float))
    told = said.groupby(["role", "number", "parameters"])[["forecast", "inside"]].mean().reset_index()
    frame = cells.reset_index().merge(told, how="left", on=["role", "number", "parameters"])
    ends = [{"role": f"for R2 {target:g}", "answer": words, **asked} for target, words in answers.items()]
    frame = pd.concat([frame, pd.DataFrame(ends)], ignore_index=True)
    names = [*by, "n", *scores, "forecast", "inside", "answer"]
    frame = frame.reindex(columns=names)
    for name in ("width", "number", "n"):  # A row of an answer has none of some of them.
        frame[name] = pd.Series(
            [int(value) if value == value else None for value in frame[name]], dtype=object
        )
    return frame
