"""Compare two audits, combination by combination: two models, or one model before and after new data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from recombine.audit.comparison.findings import Change, ChangedCombination, Comparison, ScoreComparison
from recombine.audit.comparison.scored import Scored, read_scored
from recombine.audit.scales import Scale
from recombine.audit.strata import STRATA
from recombine.audit.wording import counted, decimal, estimate, listed
from recombine.errors import BadInput
from recombine.stats.correction import benjamini_hochberg
from recombine.stats.intervals import LEVEL, Interval, mean_and_error, t_bounds

RATE = 0.1
"""The false discovery rate at which a value is named as worse or better."""
SOLVED_AT = 0.5
"""From this mean of a binary score on, a combination counts as solved."""
FEW_SHARED = 0.5
"""If less than this share of a table's combinations is shared, a note says so."""
DROPS = 10

Values = Float[np.ndarray, " n"]


def compare_tables(old: Any, new: Any, *, solved_at: float | None = None, **columns: Any) -> Comparison:
    """Compare the scores of two models, or of one model before and after, paired by combination.

    Args:
        old: The table of the old scores, or the JSON document that `recombine audit --json` printed.
        new: The new ones.
        solved_at: From this mean score on, a combination counts as solved. By default 0.5 for scores that are only 0
            and 1, and undefined for others.
        columns: What the columns of the tables hold, as in `audit_table`: `factors`, `scores`, `split`, `train`, ...

    Returns:
        Differences by stratum and by value, the combinations that were lost and gained, and what got worse.

    Example:
        ```python
        comparison = compare_tables("old.csv", "new.csv", factors=["colour", "shape"], scores=["success"])
        comparison.scores[0].lost
        ```
    """
    if isinstance(columns.get("scores"), str):
        columns["scores"] = (columns["scores"],)
    return compare(read_scored(old, **columns), read_scored(new, **columns), solved_at=solved_at)


def compare(old: Scored, new: Scored, *, solved_at: float | None = None) -> Comparison:
    """Compare combinations that are already read. Arguments as for `compare_tables`."""
    _check_factors(old, new)
    scores = [name for name in new.scores if name in old.scores]
    if not scores:
        raise BadInput(
            f"{old.title} and {new.title} share no score: {listed(old.scores)} and {listed(new.scores)}.",
            fix="give both the same score columns",
        )
    place = {name: index for index, name in enumerate(old.names)}
    # The slots of both may be in another order.
    order = [new.slots.index(slot) for slot in old.slots]
    names = [tuple(name[slot] for slot in order) for name in new.names]
    pairs = np.array([(place[name], index) for index, name in enumerate(names) if name in place], dtype=np.int64)
    if not len(pairs):
        raise BadInput(
            f"{old.title} and {new.title} have no combination in common, so they are about different tables.",
            fix=f"compare audits of the same combinations; the old one has {' + '.join(old.names[0])}, the new one {' + '.join(names[0])}",
        )
    pairs = pairs.reshape(-1, 2)
    notes = list(_notes(old, new, pairs))
    return Comparison(
        old=old.title,
        new=new.title,
        slots=old.slots,
        shared=len(pairs),
        only_old=len(old.names) - len(pairs),
        only_new=len(new.names) - len(pairs),
        scores=tuple(_score(old, new, pairs, name, solved_at) for name in scores),
        notes=tuple(notes),
    )


def _check_factors(old: Scored, new: Scored) -> None:
    if sorted(old.slots) != sorted(new.slots):
        raise BadInput(
            f"{old.title} has the factors {', '.join(old.slots)}, but {new.title} has {', '.join(new.slots)}.",
            fix="audit both with the same --factors, --roles and --sets",
        )


def _notes(old: Scored, new: Scored, pairs: Int[np.ndarray, "pair 2"]) -> Iterator[str]:
    for table in (old, new):
        if len(pairs) < FEW_SHARED * len(table.names):
            yield f"Only {len(pairs):,} of the {len(table.names):,} combinations of {table.title} are scored in both."
    missing = [name for name in old.scores if name not in new.scores]
    missing += [name for name in new.scores if name not in old.scores]
    if missing:
        yield f"Not compared, because only one of both has it: {listed(missing)}."
    before, after = old.trained, new.trained
    if before is None:
        yield "Strata are unknown: the old audit has no training combinations (--train or --split)."
    elif after is not None:
        since = int((after[pairs[:, 1]] & ~before[pairs[:, 0]]).sum())
        no_more = int((before[pairs[:, 0]] & ~after[pairs[:, 1]]).sum())
        if since or no_more:
            changes = [f"{since:,} combinations were trained on since"] if since else []
            changes += [f"{no_more:,} are no longer trained on"] if no_more else []
            yield f"Strata are those of {old.title}; {' and '.join(changes)}."


def _score(
    old: Scored, new: Scored, pairs: Int[np.ndarray, "pair 2"], name: str, solved_at: float | None
) -> ScoreComparison:
    first, second = old.scores.index(name), new.scores.index(name)
    before, after = old.mean[pairs[:, 0], first], new.mean[pairs[:, 1], second]
    known = np.isfinite(before) & np.isfinite(after)
    pairs, before, after = pairs[known], before[known], after[known]
    if not len(pairs):
        raise BadInput(f"No combination has the score {name!r} in both.", fix="name another score")
    scale = _common_scale(old, new, name, first, second)
    sign, (low, high) = scale.sign, scale.ends
    binary = old.binary[first] and new.binary[second]
    solved_at = low + SOLVED_AT * (high - low) if solved_at is None and binary else solved_at

    def change(label: str, chosen: Any) -> Change:
        then, now = before[chosen], after[chosen]
        interval = paired_difference(now - then, binary=binary, reach=high - low)
        return Change(label, len(then), float(then.mean()), float(now.mean()), interval)

    everything = np.ones(len(pairs), dtype=bool)
    strata: list[Change] = []
    if old.stratum is not None:
        named = np.array(old.stratum)[pairs[:, 0]]
        strata = [change(stratum, named == stratum) for stratum in STRATA if (named == stratum).any()]
        if old.trained is not None and new.trained is not None:
            since = new.trained[pairs[:, 1]] & ~old.trained[pairs[:, 0]]
            strata += [change("trained on since", since)] if since.any() else []
    holders = dict(_by_value(old, pairs))
    q = benjamini_hochberg([paired_p(after[held] - before[held]) for held in holders.values()])
    values = [
        dataclasses.replace(change(label, held), q=float(each))
        for (label, held), each in zip(holders.items(), q, strict=True)
    ]
    values.sort(key=lambda each: (sign * each.estimate, each.name))
    combinations = [
        ChangedCombination(old.names[one], float(then), float(now), int(old.count[one]), int(new.count[two]))
        for (one, two), then, now in zip(pairs.tolist(), before, after, strict=True)
    ]
    by_loss = sorted(combinations, key=lambda each: (sign * (each.after - each.before), -each.rows_after, each.values))

    def solved(value: float) -> bool:
        return solved_at is not None and sign * value >= sign * solved_at

    lost = [each for each in by_loss if solved(each.before) and not solved(each.after)]
    gained = [each for each in reversed(by_loss) if solved(each.after) and not solved(each.before)]
    lost, gained = (lost, gained) if solved_at is not None else ([], [])
    drops = [each for each in by_loss[:DROPS] if sign * (each.after - each.before) < 0]
    clear = [s for s in strata if s.difference is not None and s.difference.low * s.difference.high > 0]
    clear += [value for value in values if value.q is not None and value.q <= RATE]
    overall = change("all", everything)
    worse = tuple(each for each in clear if sign * each.estimate < 0)
    better = tuple(each for each in reversed(clear) if sign * each.estimate > 0)
    flips = len(lost) + len(gained)
    return ScoreComparison(
        score=name,
        overall=overall,
        strata=tuple(strata),
        values=tuple(values),
        solved_at=solved_at,
        lost=tuple(lost),
        gained=tuple(gained),
        flips_p=sign_test(len(lost), len(gained)) if flips else None,
        drops=tuple(drops),
        worse=worse,
        better=better,
        sentence=_sentence(name, overall, worse, len(lost), len(gained), solved_at, sign),
        lower_is_better=scale.lower_is_better,
    )


def _common_scale(old: Scored, new: Scored, name: str, first: int, second: int) -> Scale:
    """The scale of a score in both tables."""
    before, after = old.scales[first], new.scales[second]
    if before.lower_is_better != after.lower_is_better:
        raise BadInput(
            f"Of the score {name!r}, lower values are better in one of {old.title} and {new.title}, but not in the other.",
            fix="audit both with --lower-is-better, or neither",
        )
    if before.known and after.known and before.ends != after.ends:
        ends = [f"{scale.low:g} to {scale.high:g}" for scale in (before, after)]
        raise BadInput(
            f"The score {name!r} is on a scale from {ends[0]} in {old.title}, but from {ends[1]} in {new.title}.",
            fix="write both in one unit, or give the scale of both: --scale LOW,HIGH",
        )
    return after if after.known else before


def _by_value(old: Scored, pairs: Int[np.ndarray, "pair 2"]) -> Iterator[tuple[str, Any]]:
    """Each value of each slot with the pairs that hold it. A set is held by each of its members."""
    for slot, place in enumerate(old.slots):
        holders: dict[str, list[int]] = {}
        for index, (one, _) in enumerate(pairs.tolist()):
            for value in old.names[one][slot].split("; "):
                holders.setdefault(value, []).append(index)
        yield from ((f"{place}={value}", np.array(held)) for value, held in holders.items() if value)


def paired_difference(differences: Values, *, binary: bool, reach: float = 1.0) -> Interval | None:
    """The mean difference with its t interval over combinations; None for a single combination.

    If every combination of a binary score changes alike (all stay, all are won, all are lost), the t interval would have
    no width; then Wilson's bound on the share of other combinations is used. `reach` is the difference of the two values
    of a binary score.
    """
    count = len(differences)
    if count < 2:
        return None
    mean, error = (float(value) for value in mean_and_error(differences))
    if binary and error == 0 and mean in (-reach, 0.0, reach):
        z = float(special.ndtri((1 + LEVEL) / 2))
        half = reach * z**2 / (count + z**2)
        ends = max(-reach, mean - half), min(reach, mean + half)
        return Interval(mean, *ends, count, LEVEL, "Wilson over combinations")
    low, high = (float(end) for end in t_bounds(mean, error, count))
    return Interval(mean, low, high, count, LEVEL, "paired t over combinations")


def paired_p(differences: Values) -> float:
    """The p value of no difference by the paired t test. Equal differences are no surer than a sign test."""
    count = len(differences)
    if count < 2:
        return 1.0
    mean, error = (float(value) for value in mean_and_error(differences))
    if error == 0:
        return min(1.0, 2.0 * 0.5**count) if mean else 1.0
    return float(2 * special.stdtr(count - 1, -abs(mean / error)))


def sign_test(first: int, second: int) -> float:
    """The two-sided p value of equal chances for both counts."""
    return min(1.0, 2 * float(special.bdtr(min(first, second), first + second, 0.5)))


def _sentence(
    name: str, overall: Change, worse: Sequence[Change], lost: int, gained: int, solved_at: float | None, sign: float
) -> str:
    """What changed, in one or two sentences."""
    interval = overall.difference
    clear = interval is not None and interval.low * interval.high > 0
    verb = ("rose" if overall.estimate > 0 else "fell") if clear else "did not change clearly"
    shown = f" ({estimate(interval)})" if interval is not None else ""
    text = f"{name} {verb}: {decimal(overall.before)} to {decimal(overall.after)}{shown}."
    if solved_at is not None:
        text += f" {counted(lost, 'combination')} lost, {gained:,} gained."
    if worse:
        bad = "fall" if sign > 0 else "rise"
        although = f"Although the mean did not {bad}, worse" if sign * overall.estimate >= 0 else "Worse"
        parts = [f"{each.name} ({decimal(each.before)} to {decimal(each.after)})" for each in worse[:3]]
        more = f" and {len(worse) - 3:,} more" if len(worse) > 3 else ""
        text += f" {although}: {', '.join(parts)}{more}."
    return text
