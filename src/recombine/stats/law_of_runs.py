"""Scaling laws of a table of runs: forecasts of larger runs, and the number of combinations that a score needs.

A table has the columns `replicate`, `role` (fitted or held out), `number` (training combinations), `parameters` (weights of
the network) and `r2_held_out`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput
from recombine.stats.forecasts import last_value, log_linear
from recombine.stats.scaling_law import REACH, Law, Needed, fit_law, forecast, needed
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
    """Count the weights of a network that are trained. Nothing is drawn."""
    parts = config.model, config.encoding, config.space, config.family
    shapes = eqx.filter_eval_shape(
        lambda key: first_network(*parts, config.family.draw(config.space, key), key), jax.random.key(0)
    )
    leaves = [leaf for leaf in jax.tree.leaves(shapes) if isinstance(leaf, jax.ShapeDtypeStruct)]
    return sum(leaf.size for leaf in leaves if np.issubdtype(leaf.dtype, np.inexact))


def with_loss(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with a column `loss`: 1 - R2 on held-out combinations."""
    return runs.assign(
        loss=(1 - runs.reindex(columns=["r2_held_out"])["r2_held_out"].astype(float)).clip(lower=SMALLEST)
    )


def forecasts(runs: pd.DataFrame, seeds: Sequence[int], cells: int) -> pd.DataFrame:
    """Forecast the larger runs of each replicate from its smaller ones.

    Args:
        runs: The runs of one family.
        seeds: The replicates.
        cells: The number of runs of a complete replicate; others have no rows.

    Returns:
        One row per replicate and larger run: its loss, and the forecasts of the law (with an interval) and of two rules.
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
            # The largest runs are a little beyond what a user may ask, so everything that may be asked was tried.
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
    """The forecasts with the absolute error of each method in log loss, by how much the law was too high (`surplus`),
    and whether its interval holds the true loss (`inside`)."""
    true = np.log(table["loss"].astype(float))
    distances = {f"{name}_error": np.abs(np.log(table[name].astype(float)) - true) for name in METHODS}
    inside = (table["loss"] >= table["low"]) & (table["loss"] <= table["high"])
    surplus = np.log(table["law"].astype(float)) - true
    return table.assign(**distances, surplus=surplus, inside=inside.astype(float))


def exponents(runs: pd.DataFrame, seeds: Sequence[int], cells: int) -> Float[np.ndarray, " replicate"]:
    """How fast loss falls with combinations in the fitted runs: minus the slope of a line, so it can be negative."""
    values = np.full(len(seeds), np.nan)
    for index, seed in enumerate(seeds):
        part = with_loss(runs[(runs["replicate"] == seed) & (runs["role"] == FITTED)])
        if len(part) != cells or not np.isfinite(part["loss"]).all():
            continue
        logs = np.log(part[["number", "parameters"]].to_numpy(float))
        design = np.concatenate([np.ones((len(part), 1)), logs], axis=1)
        values[index] = -np.linalg.lstsq(design, np.log(part["loss"].to_numpy(float)), rcond=None)[0][1]
    return values


def forecast_r2(
    runs: pd.DataFrame, seeds: Sequence[int], numbers: Sequence[int], asked: int
) -> Float[np.ndarray, " replicate"]:
    """The R2 that a law in combinations alone forecasts at a larger number, for each replicate."""
    values = np.full(len(seeds), np.nan)
    for index, seed in enumerate(seeds):
        part = with_loss(runs[(runs["replicate"] == seed) & runs["number"].isin(numbers)])
        if len(part) == len(numbers) and np.isfinite(part["loss"]).all():
            law = fit_law(part["loss"], part["number"])
            values[index] = 1 - forecast(law, asked, beyond=True).median
    return values


def mean_law(runs: pd.DataFrame, role: str | None = None) -> Law:
    """The law of the means over replicates (of log loss): of all runs of a family, or of the fitted ones alone."""
    part = with_loss(runs if role is None else runs[runs["role"] == role])
    part = part[np.isfinite(part["loss"])]
    means = part.assign(log=np.log(part["loss"])).groupby(["number", "parameters"])["log"].mean().reset_index()
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
        answer = needed(law, 1 - target, parameters)
    except BadInput as refusal:
        return f"no answer: {refusal.message}"
    return _in_words(answer, law, parameters, space_size)


def _in_words(answer: Needed, law: Law, parameters: float, space_size: int) -> str:
    level = f"{answer.level * 100:.0f} % interval"
    furthest = REACH * law.largest[0]
    high = "beyond" if math.isinf(answer.high) else "to"
    ends = f"{answer.low:.0f} {high} {min(answer.high, furthest):.0f}"
    if answer.status == "below the floor":
        assert law.size is not None
        most = 1 - law.floor - law.size[0] * parameters ** -law.size[1]
        text = f"no number of combinations: trained like this, the network ends near R2 {most:.3f}"
        return text if answer.low >= furthest else f"{text} (but the {level} begins at {answer.low:.0f})"
    if answer.status == "already reached":
        return f"{law.smallest:.0f} or fewer"
    text = f"about {answer.number:.0f} ({level} {ends})"
    return text if answer.number <= space_size else f"{text}: more than the {space_size} in the space"


def combinations_needed(
    runs: pd.DataFrame, target: float = 0.95, *, parameters: float | None = None, beyond: bool = False
) -> Needed:
    """How many combinations a held-out R2 needs, with an interval, by the law of all runs of a family.

    Args:
        runs: The runs.
        target: The held-out R2.
        parameters: The weights of the network; by default those of the largest that was trained.
        beyond: Answer also where more than four times the largest number of combinations is needed.

    Returns:
        The number, with the interval of the mean over replicates.
    """
    if not target < 1:
        raise BadInput(f"R2 is below 1, but the target is {target:g}.", fix="0.95 is usual")
    law = mean_law(runs)
    return needed(law, 1 - target, law.largest[1] if parameters is None else parameters, beyond=beyond)


def curves(means: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The law of the fitted means along the combinations, for each width, and the two rules that it must beat.

    Args:
        means: The columns `width`, `parameters`, `number`, `x` (the number again), `y` (mean loss) and `fitted`.

    Returns:
        The law's curve (`width`, `x`, `predicted`, `low`, `high`) and those of the rules (`width`, `name`, `x`,
        `predicted`); both are empty where too few runs are done.
    """
    import pandas as pd

    small, curve, rules = means[means["fitted"]], [], []
    try:
        law = mean_law(small.assign(r2_held_out=1 - small["y"]))
    except BadInput:
        law = None  # Too few runs are done.
    if law is not None:
        sizes = small["y"], small["number"], small["parameters"]
        for width, parameters in means[["width", "parameters"]].drop_duplicates().to_numpy(int).tolist():
            for x in np.geomspace(means["x"].min(), means["x"].max(), 25):
                expected, point = forecast(law, x, parameters, beyond=True), {"width": width, "x": x}
                curve.append(point | {"predicted": expected.median, "low": expected.low, "high": expected.high})
                if x >= small["number"].max() or parameters > small["parameters"].max():
                    for name, rule in (("last value", last_value), ("straight line", log_linear)):
                        rules.append(point | {"name": name, "predicted": rule(*sizes, at=x, at_parameters=parameters)})
    return (
        pd.DataFrame(curve, columns=["width", "x", "predicted", "low", "high"]),
        pd.DataFrame(rules, columns=["width", "name", "x", "predicted"]),
    )
