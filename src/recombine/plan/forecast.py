"""The expected score after each part of a plan, from a scaling law fitted to existing scores."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from recombine.errors import BadInput
from recombine.plan.wording import no_file
from recombine.stats.scaling_law import Law, fit_law, forecast

NUMBER = ("number", "combinations", "support.number")
SCORE = ("score", "score_held_out", "r2_held_out", "accuracy_held_out")
"""The accepted column names of a table of scores, among them those of `recombine sweep --out`."""

SMALLEST = 1e-9
"""A loss of zero has no logarithm."""
PARTS = 4
"""The number of points along a plan with a forecast."""


@dataclasses.dataclass(frozen=True)
class ExpectedScore:
    """The expected score after a number of combinations, or the reason why there is no forecast."""

    number: int
    """The number of combinations, including those collected before."""
    score: float | None
    low: float | None
    high: float | None
    level: float | None
    declined: str = ""
    """The reason why there is no forecast, as a sentence; empty if there is one."""


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The expected scores along a plan."""

    expected: tuple[ExpectedScore, ...]
    notes: tuple[str, ...]


def forecast_scores(table: pd.DataFrame, collected: int, planned: int) -> Forecast:
    """Forecast the score after each quarter of a plan.

    Args:
        table: Scores by number of combinations, as `read_scores` returns them.
        collected: The number of combinations that exist already.
        planned: The number of combinations in the plan.

    Returns:
        Expected scores with intervals. Where no law fits, the reason instead.
    """
    numbers = sorted({collected + math.ceil(planned * part / PARTS) for part in range(1, PARTS + 1)})
    try:
        law = _law(table)
    except BadInput as refusal:
        why = f"No scaling law fits the scores: {refusal.message}"
        return Forecast(tuple(ExpectedScore(number, None, None, None, None, why) for number in numbers), ())
    replicates = int(table.groupby("number").size().median())
    notes = (
        f"Fitted to {law.points} sizes, {law.smallest:.0f} to {law.largest[0]:.0f} combinations"
        + (
            f", with the mean of {replicates} replicates each. The interval is for such a mean."
            if replicates > 1
            else "."
        ),
        "The forecast is for combinations chosen in the same way as those. Planned ones may do better or worse.",
    )
    return Forecast(tuple(_expected(law, number) for number in numbers), notes)


def read_scores(path: Path) -> pd.DataFrame:
    """Read a table of scores.

    Args:
        path: A CSV or Parquet file with one row per run.

    Returns:
        A table with the columns `number` (of combinations) and `score`.
    """
    if not path.is_file():
        raise no_file(path, " of scores", (".csv", ".parquet"))
    try:
        table = pd.read_parquet(path) if path.suffix.lower() == ".parquet" else pd.read_csv(path)
    except Exception as error:
        if not isinstance(error, (OSError, ValueError, UnicodeError)) and not type(error).__module__.startswith(
            "pyarrow"
        ):
            raise
        raise BadInput(f"{path} cannot be read: {str(error)[:200]}.", fix="give a CSV or Parquet file") from error
    columns = {}
    for name, known in (("number", NUMBER), ("score", SCORE)):
        own = next((column for column in known if column in table), None)
        if own is None:
            present = [str(column) for column in table.columns]
            raise BadInput(
                f"{path} has no column {name!r}, only {', '.join(map(repr, present[:12]))}.",
                fix=f"name it one of {', '.join(known)}",
            )
        columns[name] = _numbers(table[own], own, path)
    scores = pd.DataFrame(columns)
    if (scores["number"] <= 0).any():
        raise BadInput(f"{path}: numbers of combinations must be positive.")
    if (scores["score"] > 1).any():
        raise BadInput(
            f"{path}: a score is {scores['score'].max():g}, but the law describes 1 minus the score.",
            fix="give R2, an accuracy, or another score whose best value is 1",
        )
    return scores


def _numbers(column: pd.Series, name: str, path: Path) -> np.ndarray:
    values = pd.to_numeric(column, errors="coerce").to_numpy(float)
    bad = np.nonzero(~np.isfinite(values))[0]
    if len(bad):
        shown = str(column.iloc[int(bad[0])])[:40]
        raise BadInput(
            f"{path}: {len(bad)} of {len(values)} values of {name!r} are not numbers, the first is {shown!r} in row {bad[0] + 1}.",
            fix="remove failed runs",
        )
    return values


def _law(table: pd.DataFrame) -> Law:
    """The law of the mean log loss at each size: runs of one replicate at different sizes are not independent."""
    logs = np.log((1 - table["score"]).clip(lower=SMALLEST))
    means = logs.groupby(table["number"]).mean()
    return fit_law(np.exp(means.to_numpy()), means.index.to_numpy(float))


def _expected(law: Law, number: int) -> ExpectedScore:
    if number < law.smallest:
        why = f"No forecast for {number} combinations: the scores start at {law.smallest:.0f} combinations."
        return ExpectedScore(number, None, None, None, None, why)
    try:
        prediction = forecast(law, number)
    except BadInput as refusal:
        return ExpectedScore(number, None, None, None, None, f"No forecast: {refusal.message}")
    return ExpectedScore(number, 1 - prediction.median, 1 - prediction.high, 1 - prediction.low, prediction.level)


def declined(expected: Sequence[ExpectedScore]) -> list[str]:
    """The reasons why there is no forecast, each once."""
    return list(dict.fromkeys(score.declined for score in expected if score.declined))
