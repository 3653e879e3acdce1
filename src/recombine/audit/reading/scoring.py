"""How the texts of a score column become numbers, and what the numbers mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from recombine.audit.reading.formats import literal
from recombine.audit.reading.tables import FLOATS, MISSING_SCORES, NUMBERS, Column, plain
from recombine.audit.scales import PERCENT, SHARE, Scale
from recombine.errors import BadInput

PASSED = ("true", "pass", "passed", "yes", "correct", "right", "success", "successful", "succeeded", "solved")
FAILED = ("false", "fail", "failed", "no", "incorrect", "wrong", "failure", "unsuccessful", "unsolved")
"""Texts that are read as 1 and as 0, in upper or lower case."""

FEWEST_ROWS = 10
"""A score with other values than 0 and 1 counts as failed and passed only from this number of rows on."""
ROUNDED = 0.0051
"""Shares of trials may be rounded to two decimals."""


@dataclasses.dataclass(frozen=True)
class Meaning:
    """What a user says of the scores of a table; it holds for all of them."""

    scale: tuple[float, float] | None = None
    """The lowest and the highest possible value."""
    lower_is_better: bool = False
    chance: float | None = None
    """The score of guessing."""
    success: tuple[str, ...] = ()
    """Texts that mean success; every other text means failure."""
    trials: str | None = None
    """The column with the number of trials that a row stands for."""
    cluster: str | None = None
    """The column of what rows share, such as the prompt: rows of one prompt count as one."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        given = (None, None) if self.scale is None else self.scale
        Scale(*given, chance=self.chance)
        if self.success and self.scale is not None:
            raise BadInput("A column of successes needs no scale.", fix="leave out --scale or --success")
        if self.trials is not None and self.cluster is not None:
            raise BadInput("Rows that stand for trials have no clusters.", fix="leave out --trials or --cluster")
        if self.trials is not None and self.success:
            raise BadInput("Rows that stand for trials hold numbers.", fix="leave out --trials or --success")


def score_sql(column: Column, success: Sequence[str] = ()) -> str:
    """SQL: the score as a number; NULL if it is missing, infinite if it is not a number."""
    missing = ", ".join(map(literal, ("", *MISSING_SCORES)))
    text = plain(column.text)
    if success:
        named = ", ".join(literal(value.strip().lower()) for value in success)
        absent = f"{column.text} IS NULL OR {text} IN ({missing})"
        return f"CASE WHEN {absent} THEN NULL WHEN {text} IN ({named}) THEN 1.0 ELSE 0.0 END"
    if column.kind.split("(")[0] in NUMBERS:
        value = f"CAST({column.raw} AS DOUBLE)"
        return f"CASE WHEN isnan({value}) THEN NULL ELSE {value} END" if column.kind in FLOATS else value
    # Most texts are numbers, so the other cases are only checked if they are not.
    number = f"TRY_CAST({column.text} AS DOUBLE)"
    percentage = f"TRY_CAST(rtrim({text}, ' %') AS DOUBLE)"
    passed, failed = (", ".join(map(literal, texts)) for texts in (PASSED, FAILED))
    return (
        f"CASE WHEN {number} IS NOT NULL THEN (CASE WHEN isnan({number}) THEN NULL ELSE {number} END) "
        f"WHEN {column.text} IS NULL OR {text} IN ({missing}) THEN NULL WHEN {text} IN ({passed}) THEN 1.0 "
        f"WHEN {text} IN ({failed}) THEN 0.0 "
        f"WHEN right({text}, 1) = '%' AND {percentage} IS NOT NULL THEN {percentage} ELSE CAST('inf' AS DOUBLE) END"
    )


def percent_sql(column: Column) -> str:
    """SQL: whether the score is written as a percentage."""
    if column.kind.split("(")[0] in NUMBERS:
        return "false"
    return f"(right({plain(column.text)}, 1) = '%')"


def scale_of(
    name: str, meaning: Meaning, low: float, high: float, *, two: bool, rows: int, percent: bool
) -> tuple[Scale, bool, list[str]]:
    """The scale of a score, whether it has only the two values at the ends of that scale, and notes.

    Args:
        name: The score.
        meaning: What the user says.
        low: The lowest value of any row.
        high: The highest one.
        two: Whether every row has one of these two.
        rows: The number of rows.
        percent: Whether all values are written as percentages.
    """
    rest = {"lower_is_better": meaning.lower_is_better, "chance": meaning.chance}
    if meaning.scale is not None or percent:
        ends = meaning.scale or PERCENT
        if low < ends[0] or high > ends[1]:
            wrong = low if low < ends[0] else high
            raise BadInput(
                f"Score {name!r} has the value {wrong:g}, which is not on the scale from {ends[0]:g} to {ends[1]:g}.",
                fix="give the lowest and the highest possible score: --scale LOW,HIGH",
            )
        return Scale(*ends, **rest, percent=percent), two and {low, high} <= {*ends}, []
    if two and {low, high} <= {0.0, 1.0}:
        return Scale(SHARE.low, SHARE.high, **rest), True, []
    if two and low < high and rows >= FEWEST_ROWS:
        good, bad = (low, high) if meaning.lower_is_better else (high, low)
        note = f"Score {name} has only the values {low:g} and {high:g}: {bad:g} counts as failed, {good:g} as passed."
        return Scale(low, high, **rest), True, [note]
    if meaning.chance is not None:
        raise BadInput(
            f"Chance is {meaning.chance:g}, but the scale of the score {name!r} is unknown.",
            fix="add the lowest and the highest possible score, for example --scale 0,1",
        )
    return Scale(lower_is_better=meaning.lower_is_better), False, []


def trial_scale(name: str, meaning: Meaning, facts: TrialFacts) -> tuple[tuple[float, float] | None, bool]:
    """The scale of scores of rows that stand for trials, and whether they are numbers of successes."""
    if meaning.scale is not None or facts.percent:
        return meaning.scale or PERCENT, False
    if facts.whole and facts.low >= 0 and facts.high > 1:
        if facts.most_above > 0:
            raise BadInput(
                f"Score {name!r} has {facts.most_above:g} more successes than trials in some row.",
                fix="give shares or numbers of successes, or name another column: --trials COLUMN",
            )
        return (0.0, 1.0), True
    return ((0.0, 1.0), False) if facts.low >= 0 and facts.high <= 1 else (None, False)


@dataclasses.dataclass(frozen=True)
class TrialFacts:
    """What is known of a score of rows that stand for trials."""

    low: float
    high: float
    whole: bool
    """Whether all values are whole numbers."""
    most_above: float
    """The largest difference of value and number of trials."""
    percent: bool
