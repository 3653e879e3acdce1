"""The scores of a table in queries: clusters, rows that stand for trials, and what the values mean."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from recombine.audit.reading.scoring import ROUNDED, TrialFacts, scale_of, trial_scale
from recombine.audit.scales import Scale
from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.audit.reading.query import Query


@dataclasses.dataclass(frozen=True)
class ScoreForm:
    """How a score of a row becomes a value."""

    value: str
    """SQL of the value."""
    ends: tuple[float, float] | None = None
    """The scale that follows from the values."""
    binomial: bool = False
    """Whether the value is a share of successes in the row's trials."""
    percent: bool = False


def meant(query: Query, n: int, form: ScoreForm, joined: dict[str, np.ndarray]) -> tuple[Scale, bool, list[str]]:
    """The scale of a score, whether it has only two values, and notes."""
    count, mean, variance = joined["n"], joined[f"m{n}"], joined[f"q{n}"]
    seen = count > 0
    if not seen.any():
        return Scale(lower_is_better=query.columns.meaning.lower_is_better), False, []
    written = int(joined[f"h{n}"].sum())
    rows = int(joined["rows"].sum() - joined[f"g{n}"].sum())
    if 0 < written < int(count.sum()) and form.ends is None and query.columns.meaning.cluster is None:
        raise BadInput(
            f"Score {query.columns.scores[n]!r} is written as a percentage in {written:,} of {rows:,} rows only.",
            fix="write all scores in one unit",
        )
    low, high = float(joined[f"l{n}"][seen].min()), float(joined[f"u{n}"][seen].max())
    # Of values between two ends, the mean product of the distances to the ends is 0 only if all are at an end.
    with np.errstate(over="ignore", invalid="ignore"):
        inside = (mean[seen] - low) * (high - mean[seen]) - variance[seen]
        two = bool((inside <= 1e-9 * (high - low) ** 2).all())
    meaning = query.columns.meaning
    if form.ends is not None:
        meaning = dataclasses.replace(meaning, scale=form.ends)
    if form.binomial:
        two, (low, high) = True, form.ends or (low, high)
    percent = written > 0 or form.percent
    return scale_of(query.columns.scores[n], meaning, low, high, two=two, rows=int(count.sum()), percent=percent)


def scored_rows(query: Query) -> tuple[str, list[ScoreForm]]:
    """SQL of the rows with their scores, clusters put together, and the form of each score."""
    scores, meaning = range(len(query.columns.scores)), query.columns.meaning
    if meaning.trials is not None:
        return query.kept(), [_trials(query, n) for n in scores]
    plain_forms = [ScoreForm(f"s{n}") for n in scores]
    if meaning.cluster is None:
        return query.kept(), plain_forms
    factors = ", ".join(f"f{n}" for n in range(len(query.columns.factor_columns)))
    means = [f"avg(s{n}) AS s{n}, bool_or(h{n}) AS h{n}, any_value(w{n}) AS w{n}" for n in scores]
    split = ["p"] if query.columns.split is not None else []
    kept = f"SELECT {', '.join([factors, *split, *means])} FROM ({query.kept()})"
    return f"{kept} GROUP BY {', '.join([factors, *split, 'c'])}", plain_forms


def _trials(query: Query, n: int) -> ScoreForm:
    """The form of a score of rows that stand for trials."""
    name, column = query.columns.scores[n], query.columns.meaning.trials
    seen = f"FROM ({query.kept()}) WHERE isfinite(s{n})"
    low, high, whole, above, least, integer, lacking, percent = query.table.fetch(
        f"SELECT min(s{n}), max(s{n}), bool_and(s{n} = trunc(s{n})), max(s{n} - t), min(t), "
        f"bool_and(t = trunc(t)), count(*) FILTER (t IS NULL OR isinf(t)), bool_and(h{n}) {seen}",
        query.columns.where,
    )[0]
    if low is None:
        return ScoreForm(f"s{n}")
    if lacking or least < 1 or not integer:
        raise BadInput(
            f"Column {column!r} must hold the number of trials of each row, a whole number of at least 1.",
            fix="leave out --trials if each row is one trial",
        )
    ends, counts = trial_scale(name, query.columns.meaning, TrialFacts(low, high, whole, above, percent))
    if counts or ends is None:
        return ScoreForm(f"s{n} / t" if counts else f"s{n}", ends, binomial=counts)
    number = f"(s{n} - {ends[0]!r}) / {ends[1] - ends[0]!r} * t"
    (broken,) = query.table.fetch(
        f"SELECT count(*) FILTER (abs({number} - round({number})) > {ROUNDED} * t + 1e-9) {seen}", query.columns.where
    )[0]
    return ScoreForm(f"s{n}", ends, binomial=not broken, percent=bool(percent))


def about_rows(query: Query, binomial: bool) -> list[str]:
    """Notes about rows that stand for trials, about clusters, and about a score without any success."""
    meaning = query.columns.meaning
    if meaning.success and meaning.cluster is None:
        return _never_passed(query)
    if meaning.trials is not None:
        what = "its number of trials" if binomial else "one row, weighted by its number of trials"
        return [f"Each row counts as {what} ({meaning.trials})."]
    if meaning.cluster is None:
        return []
    factors = ", ".join(f"f{n}" for n in range(len(query.columns.factor_columns)))
    inside = f"SELECT {factors}, c, count(*) AS number FROM ({query.kept()}) GROUP BY {factors}, c"
    rows, groups, clusters = query.table.fetch(
        f"SELECT sum(number), count(*), count(DISTINCT c) FROM ({inside})", query.columns.where
    )[0]
    notes = [
        f"Rows with the same {meaning.cluster} in one combination count as one, with their mean score: "
        f"{rows:,} rows became {groups:,}."
    ]
    if clusters < groups:
        notes.append(
            f"Some values of {meaning.cluster} occur in several combinations. "
            "The intervals do not contain what such combinations have in common."
        )
    return notes


def _never_passed(query: Query, shown: int = 5) -> list[str]:
    """Notes about columns in which no row has a text that means success."""
    notes = []
    for n, name in enumerate(query.columns.scores):
        held = query.table.fetch(
            f"SELECT w{n}, max(s{n}) FROM ({query.kept()}) WHERE s{n} IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1 "
            f"LIMIT {shown}",
            query.columns.where,
        )
        if held and max(row[1] for row in held) == 0 and len(held) < shown:
            words = " or ".join(map(repr, query.columns.meaning.success))
            notes.append(f"No row has {words} in column {name}; it holds {', '.join(repr(row[0]) for row in held)}.")
    return notes
