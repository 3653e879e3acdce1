"""A gate for continuous integration: conditions on an audit, and how far it may fall below a baseline."""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Iterator, Sequence

from recombine.audit.comparison.findings import Comparison
from recombine.audit.findings import Audit, ScoreFinding
from recombine.audit.strata import STRATA
from recombine.audit.wording import decimal, listed
from recombine.errors import BadInput, did_you_mean
from recombine.stats.intervals import Interval

SIGNS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne}
CONDITION = re.compile(r"\s*(?P<name>[^<>=!]+?)\s*(?P<sign><=|>=|==|!=|<|>)\s*(?P<value>[-+]?[\d.]+(?:e[-+]?\d+)?)\s*")
EXAMPLE = 'write NAME < NUMBER, for example --fail-if "all_pairs_met.score < .8"'
NAMED = 5
"""How many combinations the reason of a failure names."""
NEEDS_BASELINE = ("lost", "gained", "change")
GROUPS = (
    "overall",
    *(name.replace(" ", "_") for name in STRATA),
    *("gap", "adjusted_gap", "lowest", "coverage"),
    *NEEDS_BASELINE,
)
"""What a condition can name. An audit need not have all of them."""

Facts = dict[str, dict[str, float]]
"""Numbers by group and field: `facts["all_pairs_met"]["score"]`."""


@dataclasses.dataclass(frozen=True)
class Condition:
    """A comparison of one number of an audit with a limit. The gate fails where it holds."""

    text: str
    score: str | None
    """The score that is meant; None for every score."""
    group: str
    field: str
    sign: str
    value: float


@dataclasses.dataclass(frozen=True)
class Check:
    """One condition of a gate, judged."""

    name: str
    passed: bool
    sentence: str


def parse_condition(text: str) -> Condition:
    """Parse a condition such as `all_pairs_met.score < .8` or `success.overall.low < 0.5`."""
    match = CONDITION.fullmatch(text)
    names = match["name"].rsplit(".", 2) if match is not None else []
    if match is None or len(names) < 2 or not all(names):
        raise BadInput(f"The condition {text!r} cannot be read.", fix=EXAMPLE)
    try:
        value = float(match["value"])
    except ValueError:
        raise BadInput(f"The condition {text!r} ends in {match['value']!r}, not in a number.", fix=EXAMPLE) from None
    if names[-2] not in GROUPS:
        raise BadInput(
            f"The gate {text!r} names {names[-2]!r}, which no audit has.", fix=did_you_mean(names[-2], GROUPS)
        )
    score = names[0] if len(names) == 3 else None
    return Condition(text.strip(), score, names[-2], names[-1], match["sign"], value)


def check_gate(
    audit: Audit, fail_if: Sequence[str] = (), *, comparison: Comparison | None = None, allow_drop: float | None = None
) -> tuple[Check, ...]:
    """Judge the conditions of a gate.

    Args:
        audit: The audit.
        fail_if: Conditions. The gate fails where one of them holds: `all_pairs_met.score < .8`. A group is `overall`,
            `trained`, `all_pairs_met`, `some_pairs_unmet`, `a_part_unseen`, `lowest`, `gap`, `adjusted_gap` or
            `coverage`; with a baseline also `lost`, `gained` and `change`. A score column can be named first.
        comparison: The comparison of a baseline (old) with this audit (new).
        allow_drop: How much worse than the baseline the mean score may be, over all shared combinations and in each
            stratum.

    Returns:
        One check for each condition and score.

    Example:
        ```python
        checks = check_gate(audit, ["all_pairs_met.score < .8"])
        all(check.passed for check in checks)
        ```
    """
    checks: list[Check] = []
    for condition in map(parse_condition, fail_if):
        checks += _judged(condition, audit, comparison)
    if allow_drop is not None:
        if comparison is None:
            raise BadInput("--allow-drop needs a baseline.", fix="add --baseline audit.json")
        if not (math.isfinite(allow_drop) and allow_drop >= 0):
            raise BadInput(f"--allow-drop {allow_drop} is not a number of at least 0.", fix="for example 0.02")
        checks += _drops(comparison, allow_drop)
    return tuple(checks)


def _judged(condition: Condition, audit: Audit, comparison: Comparison | None) -> Iterator[Check]:
    names = [score.score for score in audit.scores]
    if condition.score is not None and condition.score not in names:
        raise BadInput(
            f"The gate {condition.text!r} names the score {condition.score!r}, which the audit does not have.",
            fix=did_you_mean(condition.score, names),
        )
    for score in audit.scores:
        if condition.score not in (None, score.score):
            continue
        value = _value(condition, facts(audit, score, comparison))
        failed = SIGNS[condition.sign](value, condition.value)
        name = f"{condition.group}.{condition.field}"
        relation = f"{condition.sign} {condition.value:g}"
        sentence = f"{score.score}: {name} is {_shown(value)}" + (f", which is {relation}" if failed else "")
        if failed and condition.group in ("lost", "gained"):
            sentence += f": {listed(_flipped(condition.group, score.score, comparison), NAMED)}"
        yield Check(f"{score.score}: {condition.text}", not failed, sentence)
        if condition.group == "coverage":
            return  # The same for every score.


def _flipped(group: str, score: str, comparison: Comparison | None) -> list[str]:
    """The names of the combinations that were lost or gained."""
    scores = () if comparison is None else comparison.scores
    return [each.name for one in scores if one.score == score for each in (one.lost if group == "lost" else one.gained)]


def _value(condition: Condition, known: Facts) -> float:
    if condition.group not in known:
        why = ""
        if condition.group in NEEDS_BASELINE:
            why = " It needs a baseline (--baseline)."
        elif condition.group in (*map(_underscored, STRATA), "gap", "coverage"):
            why = " No evaluated combination is in it, or the training combinations are unknown (--train or --split)."
        raise BadInput(
            f"The gate {condition.text!r} names {condition.group!r}, which the audit does not have.{why}",
            fix=did_you_mean(condition.group, known),
        )
    fields = known[condition.group]
    if condition.field not in fields:
        raise BadInput(
            f"The gate {condition.text!r} names {condition.field!r}, but {condition.group!r} has {', '.join(fields)}.",
            fix=did_you_mean(condition.field, fields),
        )
    value = fields[condition.field]
    if math.isnan(value):
        raise BadInput(
            f"The gate {condition.text!r} cannot be judged: {condition.group}.{condition.field} is unknown, "
            "because it rests on fewer than two combinations.",
            fix="evaluate more combinations, or remove the condition",
        )
    return value


def facts(audit: Audit, score: ScoreFinding, comparison: Comparison | None = None) -> Facts:
    """All numbers that a condition can name."""
    known: Facts = {"overall": _ends(score.overall) | {"rows": score.rows, "combinations": audit.combinations}}
    for stratum in () if score.gap is None else score.gap.strata:
        sizes: dict[str, float] = {"rows": stratum.rows, "combinations": stratum.combinations}
        known[_underscored(stratum.name)] = _ends(stratum.score) | sizes
    if score.gap is not None:
        known |= {"gap": _ends(score.gap.raw), "adjusted_gap": _ends(score.gap.adjusted)}
    if score.lowest:
        known["lowest"] = {"score": score.lowest[0].score, "rows": score.lowest[0].rows}
    if (support := audit.support) is not None:
        counts: dict[str, float] = {
            "unmet": support.unmet_count,
            "unseen": len(support.unseen),
            "combinations": support.size,
        }
        known["coverage"] = {"pairs": support.pair_coverage, "groups": len(support.groups), **counts}
    for changed in () if comparison is None else comparison.scores:
        if changed.score == score.score:
            known["change"] = _ends(changed.overall.difference) | {"combinations": changed.overall.combinations}
            if changed.solved_at is not None:
                known["lost"] = {"combinations": len(changed.lost)}
                known["gained"] = {"combinations": len(changed.gained)}
    return known


def _ends(interval: Interval | None) -> dict[str, float]:
    if interval is None:
        return dict.fromkeys(("score", "low", "high"), math.nan)
    return {"score": interval.estimate, "low": interval.low, "high": interval.high}


def _drops(comparison: Comparison, allowed: float) -> Iterator[Check]:
    for score in comparison.scores:
        sign = -1.0 if score.lower_is_better else 1.0
        for change in (score.overall, *score.strata):
            # A drop of exactly the allowed size passes, also after rounding.
            failed = sign * change.estimate < -allowed - 1e-9
            what = f"{score.score}, {change.name}"
            sentence = (
                f"{what}: {decimal(change.before)} to {decimal(change.after)} on {change.combinations:,} combinations"
            )
            if failed:
                sentence += f", a drop of {_shown(-sign * change.estimate)} where {allowed:g} is allowed"
            yield Check(f"{what}: drop > {allowed:g}", not failed, sentence)


def _underscored(name: str) -> str:
    return name.replace(" ", "_")


def _shown(value: float) -> str:
    return f"{value:.4g}"
