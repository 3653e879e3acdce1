"""What score to expect after each part of a plan, by a scaling law fitted to scores that are there."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from recombine.errors import BadInput, did_you_mean
from recombine.stats.scaling_law import Law, fit_law, forecast

NUMBER = ("number", "combinations", "support.number")
SCORE = ("score", "score_held_out", "r2_held_out", "accuracy_held_out")
"""What the columns of a table of scores may be called: also as `recombine sweep --out` calls them."""

SMALLEST = 1e-9
"""A loss of zero has no logarithm."""
PARTS = 4
"""A plan is told in so many parts."""


@dataclasses.dataclass(frozen=True)
class Expected:
    """The score after so many combinations, or why there is no forecast."""

    number: int
    """Combinations in all, with those that were collected before."""
    score: float | None
    low: float | None
    high: float | None
    level: float | None
    declined: str = ""
    """A sentence where the fit does not reach."""


@dataclasses.dataclass(frozen=True)
class Outlook:
    """What to expect of a plan."""

    expected: tuple[Expected, ...]
    notes: tuple[str, ...]


def outlook(table: pd.DataFrame, collected: int, planned: int) -> Outlook:
    """The forecast after each quarter of a plan, from scores by number of combinations as `read_scores` has them."""
    numbers = sorted({collected + math.ceil(planned * part / PARTS) for part in range(1, PARTS + 1)})
    try:
        law = _law(table)
    except BadInput as refusal:
        why = f"No law could be fitted to the scores: {refusal.message}"
        return Outlook(tuple(Expected(number, None, None, None, None, why) for number in numbers), ())
    replicates = int(table.groupby("number").size().median())
    notes = (
        f"Fitted to {law.points} sizes, {law.smallest:.0f} to {law.largest[0]:.0f} combinations"
        + (f", means of {replicates} replicates: the interval is of such a mean." if replicates > 1 else "."),
        "It holds for combinations chosen as those were; planned ones may do better or worse.",
    )
    return Outlook(tuple(_expected(law, number) for number in numbers), notes)


def read_scores(path: Path) -> pd.DataFrame:
    """A table of scores as `number` and `score`: one row a run."""
    if not path.is_file():
        near = [str(one) for ending in ("*.csv", "*.parquet") for one in sorted(path.parent.glob(ending))]
        raise BadInput(f"There is no file {str(path)!r} of scores.", fix=did_you_mean(str(path), near[:20]))
    try:
        table = pd.read_parquet(path) if path.suffix.lower() == ".parquet" else pd.read_csv(path)
    except Exception as error:
        if not isinstance(error, (OSError, ValueError, UnicodeError)) and not type(
            error
        ).__module__.startswith("pyarrow"):
            raise
        raise BadInput(
            f"{path} cannot be read: {str(error)[:200]}.", fix="give a CSV or Parquet file"
        ) from error
    found = {}
    for name, known in (("number", NUMBER), ("score", SCORE)):
        own = next((column for column in known if column in table), None)
        if own is None:
            columns = [str(column) for column in table.columns]
            raise BadInput(
                f"{path} has no column {name!r}, only {', '.join(map(repr, columns[:12]))}.",
                fix=f"name it one of {', '.join(known)}",
            )
        found[name] = _numbers(table[own], own, path)
    made = pd.DataFrame(found)
    if (made["number"] <= 0).any():
        raise BadInput(f"{path}: numbers of combinations must be positive.")
    if (made["score"] > 1).any():
        raise BadInput(
            f"{path}: a score is {made['score'].max():g}; a law is of what is missing to 1.",
            fix="give R2, an accuracy, or another score whose best is 1",
        )
    return made


def _numbers(column: pd.Series, name: str, path: Path) -> np.ndarray:
    values = pd.to_numeric(column, errors="coerce").to_numpy(float)
    bad = np.nonzero(~np.isfinite(values))[0]
    if len(bad):
        shown = str(column.iloc[int(bad[0])])[:40]
        raise BadInput(
            f"{path}: {len(bad)} of {len(values)} values of {name!r} are not numbers, the first is {shown!r} in row {bad[0] + 1}.",
            fix="leave failed runs out",
        )
    return values


def _law(table: pd.DataFrame) -> Law:
    """The law of the mean log loss at each size: replicates of one size are not independent of those of another."""
    logs = np.log((1 - table["score"]).clip(lower=SMALLEST))
    means = logs.groupby(table["number"]).mean()
    return fit_law(np.exp(means.to_numpy()), means.index.to_numpy(float))


def _expected(law: Law, number: int) -> Expected:
    if number < law.smallest:
        why = f"the scores begin at {law.smallest:.0f} combinations"
        return Expected(number, None, None, None, None, f"No forecast for {number} combinations: {why}.")
    try:
        said = forecast(law, number)
    except BadInput as refusal:
        return Expected(number, None, None, None, None, f"No forecast: {refusal.message}")
    return Expected(number, 1 - said.median, 1 - said.high, 1 - said.low, said.level)


def declined(expected: Sequence[Expected]) -> list[str]:
    """Why there is no forecast, each reason once."""
    return list(dict.fromkeys(one.declined for one in expected if one.declined))
