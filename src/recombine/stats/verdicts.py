"""Claims, and verdicts on them from one effect per replicate."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput, did_you_mean
from recombine.stats.correction import benjamini_hochberg, holm
from recombine.stats.intervals import Floats, mean_and_error, walsh_bounds
from recombine.stats.rule import Direction, Outcome, decide, holds_within, on_every_scale

__all__ = ["ALPHA", "Claim", "Direction", "Outcome", "Role", "ScaleVerdict", "Verdict", "answer", "judge", "settle"]

_SETTLED = re.compile("^precondition '|alone, but not after correction")
"""The parts of a note that `settle` adds."""

Role = Literal["claim", "control", "precondition"]
"""What a claim is for. A control shows that a method can fail, a precondition that a run can answer the question."""

ALPHA = 0.05
"""The largest adjusted p of a verdict that stands. Outcomes come from the interval at 1 - ALPHA."""

ANSWERS: Mapping[Outcome, str] = {
    "supported": "holds",
    "contradicted": "does not hold",
    "equivalent": "too small to matter",
    "inconclusive": "not decided",
    "depends on the scale": "depends on the scale",
}
"""Does the claim hold? The outcome *equivalent* is an answer of its own, except where the claim is equivalence."""


def answer(direction: Direction, outcome: Outcome) -> str:
    """Does the claim hold? One of five answers in words.

    Args:
        direction: The direction of the claim.
        outcome: The outcome of its verdict.

    Returns:
        *holds*, *does not hold*, *too small to matter*, *not decided* or *depends on the scale*.
    """
    return "holds" if direction == outcome == "equivalent" else ANSWERS[outcome]


@dataclass(frozen=True)
class Claim:
    """A statement about an effect, with its direction and margin, written down before the run.

    Example:
        ```python
        claim = Claim(
            name="rises",
            study="data-scaling",
            statement="Held-out R2 rises with the number of training combinations.",
            direction="greater",
            margin=0.05,
            primary=True,
        )
        judge(claim, effects=[0.21, 0.18, 0.25, 0.19])
        ```
    """

    name: str
    study: str
    statement: str
    direction: Direction
    margin: float
    """A distance from no effect; for `above` and `below` the threshold."""
    primary: bool = False
    """Whether the claim is corrected with the primary claims (Holm) or with all others (Benjamini-Hochberg)."""
    role: Role = "claim"
    needs: tuple[str, ...] = ()
    """The names of claims of the same study that must hold for this one to be decided."""
    version: int = 1
    """Raised when the meaning of the claim changes."""
    scales: tuple[tuple[str, float], ...] = ()
    """The scales of the score on which the claim must hold, each with its margin. None: the score as it is."""

    def __post_init__(self) -> None:
        where = f"Claim {self.name!r} of study {self.study!r}"
        for name, options in (("direction", get_args(Direction)), ("role", get_args(Role))):
            value = getattr(self, name)
            if value not in options:
                raise BadInput(f"{where} has the {name} {value!r}.", fix=did_you_mean(str(value), options))
        distance = self.direction not in ("above", "below")
        if not math.isfinite(self.margin) or (distance and self.margin < 0):
            raise BadInput(
                f"{where} has the margin {self.margin}.",
                fix="give a distance from no effect, 0 or more" if distance else "give a finite threshold",
            )
        if self.primary and self.role != "claim":
            raise BadInput(f"{where} is a {self.role} and primary.", fix="only a claim can be primary")

    @property
    def wanted(self) -> Outcome:
        """The outcome in which the claim holds."""
        return "equivalent" if self.direction == "equivalent" else "supported"


@dataclass(frozen=True)
class ScaleVerdict:
    """What the replicates say about a claim on one scale of the score."""

    scale: str
    margin: float
    verdict: Outcome
    effect: float
    low: float
    high: float
    p: float

    def record(self) -> dict[str, Any]:
        """Convert it to plain values for JSON."""
        interval = [_finite(self.low), _finite(self.high)]
        numbers = {"effect": _finite(self.effect), "interval": interval, "p": _finite(self.p)}
        return {"scale": self.scale, "margin": self.margin, "verdict": self.verdict, **numbers}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ScaleVerdict:
        """Restore it from its `record`."""
        effect, low, high = (math.nan if value is None else value for value in (record["effect"], *record["interval"]))
        return cls(record["scale"], record["margin"], record["verdict"], effect, low, high, record["p"])


@dataclass(frozen=True)
class Verdict:
    """What the replicates say about a claim: its outcome, the mean effect, and its interval at 1 - ALPHA."""

    claim: Claim
    verdict: Outcome
    effect: float
    low: float
    high: float
    replicates: int
    """The number of finite effects; others are left out."""
    p: float
    p_adjusted: float | None = None
    """p after correction for the other claims of the study; None before `settle`."""
    p_portfolio: float | None = None
    """p after correction for the claims of all studies. It decides nothing."""
    note: str = ""
    alone: Verdict | None = None
    """The verdict before `settle`."""
    scales: tuple[ScaleVerdict, ...] = ()
    """The verdict on each scale, where the claim has several; the effect and the interval are those of the first."""
    values: tuple[float, ...] = field(default=(), compare=False, repr=False)
    """The effect of each replicate; NaN where its runs failed."""

    @property
    def answer(self) -> str:
        """Does the claim hold? See the function `answer`."""
        return answer(self.claim.direction, self.verdict)

    def record(self) -> dict[str, Any]:
        """Convert the verdict to plain values for JSON. Numbers that are not finite become None."""
        claim = self.claim
        return {
            "claim": claim.name,
            "study": claim.study,
            "statement": claim.statement,
            "role": claim.role,
            "primary": claim.primary,
            "needs": list(claim.needs),
            "version": claim.version,
            "direction": claim.direction,
            "margin": claim.margin,
            "answer": self.answer,
            "verdict": self.verdict,
            "verdict_alone": (self.alone or self).verdict,
            "effect": _finite(self.effect),
            "interval": [_finite(self.low), _finite(self.high)],
            "replicates": self.replicates,
            "p": _finite(self.p),
            "p_adjusted": _finite(self.p_adjusted),
            "p_portfolio": _finite(self.p_portfolio),
            "note": self.note,
            "scales": [scale.record() for scale in self.scales],
            "values": [_finite(value) for value in self.values],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Verdict:
        """Restore a verdict from its `record`, as it was before `settle`."""
        fields = ("study", "statement", "direction", "margin", "primary", "role", "version")
        scales = tuple(map(ScaleVerdict.from_record, record.get("scales", ())))
        claim = Claim(
            record["claim"],
            needs=tuple(record["needs"]),
            scales=tuple((scale.scale, scale.margin) for scale in scales),
            **{name: record[name] for name in fields},
        )
        effect, low, high = (math.nan if value is None else value for value in (record["effect"], *record["interval"]))
        # `settle` adds its notes again.
        notes = [part for part in record["note"].split("; ") if not _SETTLED.search(part)]
        return cls(
            claim,
            record["verdict_alone"],
            effect,
            low,
            high,
            record["replicates"],
            record["p"],
            note="; ".join(notes),
            scales=scales,
            values=tuple(math.nan if value is None else value for value in record.get("values", ())),
        )


def judge(claim: Claim, effects: npt.ArrayLike) -> Verdict:
    """Judge one claim.

    A verdict needs two intervals to agree: the t interval of the mean, and the signed-rank interval, which a single
    replicate hardly moves. A claim with scales holds only where it holds on every scale.

    Args:
        claim: The claim, with its direction and margin.
        effects: One effect per replicate; for a claim with scales, one row of effects per scale. Effects of failed runs
            (NaN, inf) are left out.

    Returns:
        The verdict. It is inconclusive with fewer than 2 finite effects.
    """
    values = np.asarray(effects, dtype=float)
    if values.ndim != (2 if claim.scales else 1) or (claim.scales and len(values) != len(claim.scales)):
        raise BadInput(
            f"Claim {claim.name!r} got effects of shape {values.shape}.",
            fix="give one effect per replicate: average within replicates first"
            + (f"; one row for each of the {len(claim.scales)} scales" if claim.scales else ""),
        )
    if not claim.scales:
        return _judged(claim, values, claim.margin)
    verdicts = [_judged(claim, row, margin) for row, (_, margin) in zip(values, claim.scales, strict=True)]
    scales = tuple(
        ScaleVerdict(name, margin, verdict.verdict, verdict.effect, verdict.low, verdict.high, verdict.p)
        for verdict, (name, margin) in zip(verdicts, claim.scales, strict=True)
    )
    outcome = on_every_scale([verdict.verdict for verdict in verdicts])
    notes = dict.fromkeys(verdict.note for verdict in verdicts if verdict.note)
    # The claim needs every scale, so the weakest of them says how sure it is. That it depends on the scale needs those
    # that are decided.
    needed = [each for each in verdicts if outcome != "depends on the scale" or each.verdict != "inconclusive"]
    p = max(verdict.p for verdict in needed)
    return replace(verdicts[0], verdict=outcome, p=p, note="; ".join(notes), scales=scales)


def _judged(claim: Claim, values: Floats, margin: float) -> Verdict:
    """The verdict on effects of one scale."""
    sample = values[np.isfinite(values)]
    count, notes = len(sample), []
    if count < len(values):
        notes.append(f"{len(values) - count} of {len(values)} effects are not finite and were left out")
    if count < 2:
        notes.append(f"{count} of the at least 2 effects that a verdict needs")
        effect = float(sample[0]) if count else math.nan
        verdict = Verdict(claim, "inconclusive", effect, math.nan, math.nan, count, 1.0, note="; ".join(notes))
        return replace(verdict, values=tuple(values.tolist()))
    mean, error = mean_and_error(sample)
    decision = decide(claim.direction, mean, error, count, margin)
    outcome, p = cast(Outcome, decision.outcome.item()), float(decision.p)
    if error == 0:
        # Without variance a t test is always sure. The sign test is the most that equal effects can say.
        p = max(p, 2.0 ** (1 - count))
        notes.append(f"all {count} effects are equal")
        if p > ALPHA:
            outcome = "inconclusive"
    elif outcome != "inconclusive":
        low, high = (float(end) for end in walsh_bounds(sample))
        if not holds_within(claim.direction, outcome, margin, low, high):
            notes.append(f"{outcome} by the t interval, but not by the signed-rank interval [{low:.3g}, {high:.3g}]")
            outcome = "inconclusive"
    ends = float(decision.low), float(decision.high)
    return Verdict(claim, outcome, float(mean), *ends, count, p, note="; ".join(notes), values=tuple(values.tolist()))


def settle(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Correct verdicts for multiple comparisons, and check their preconditions.

    Each study is a family of its own, so another study changes nothing. Its primary claims are corrected by Holm's method,
    its other claims by Benjamini and Hochberg's. Preconditions and controls are not corrected: a claim needs all of them
    at once. A verdict that does not survive, or whose precondition does not hold, becomes inconclusive. Settling twice
    changes nothing. `p_portfolio` has the same corrections over all studies together, for information.

    Args:
        verdicts: The verdicts on all claims, each claim once.

    Returns:
        The settled verdicts, in the same order.

    Example:
        ```python
        settled = settle([judge(claim, effects) for claim, effects in results])
        ```
    """
    alone = [verdict.alone or verdict for verdict in verdicts]
    _check_names(alone)
    settled = [replace(verdict, p_adjusted=verdict.p, alone=verdict) for verdict in alone]
    for primary, name, correct in ((True, "Holm", holm), (False, "Benjamini-Hochberg", benjamini_hochberg)):
        tested = [
            index
            for index, verdict in enumerate(alone)
            if verdict.claim.role == "claim" and verdict.claim.primary == primary
        ]
        for index, p in _corrected(alone, tested, correct):
            settled[index] = replace(settled[index], p_portfolio=p)
        for study in dict.fromkeys(alone[index].claim.study for index in tested):
            own = [index for index in tested if alone[index].claim.study == study]
            for index, p in _corrected(alone, own, correct):
                settled[index] = replace(settled[index], p_adjusted=p)
                if p > ALPHA and alone[index].verdict != "inconclusive":
                    reason = f"{alone[index].verdict} alone, but not after correction ({name}: p = {p:.3g})"
                    settled[index] = _inconclusive(settled[index], reason)
    return _with_preconditions(settled)


def _corrected(
    verdicts: Sequence[Verdict], members: Sequence[int], correct: Callable[[list[float]], Floats]
) -> Iterator[tuple[int, float]]:
    """The members of one family of tests with their adjusted p values."""
    return zip(members, correct([verdicts[index].p for index in members]).tolist(), strict=True)


def _with_preconditions(verdicts: list[Verdict]) -> list[Verdict]:
    """Make verdicts inconclusive whose preconditions do not hold, and then those that need them."""
    current = list(verdicts)
    while True:
        known = {(verdict.claim.study, verdict.claim.name): verdict for verdict in current}
        following = []
        for verdict in verdicts:
            failed = []
            for need in verdict.claim.needs:
                other = known.get((verdict.claim.study, need))
                if other is None:
                    failed.append(f"precondition {need!r} was not judged")
                elif other.verdict != other.claim.wanted:
                    failed.append(f"precondition {need!r} is {other.verdict}")
            following.append(_inconclusive(verdict, "; ".join(failed)) if failed else verdict)
        if following == current:
            return current
        current = following


def _inconclusive(verdict: Verdict, reason: str) -> Verdict:
    note = f"{verdict.note}; {reason}" if verdict.note else reason
    return replace(verdict, verdict="inconclusive", note=note)


def _check_names(verdicts: Sequence[Verdict]) -> None:
    seen: set[tuple[str, str]] = set()
    for verdict in verdicts:
        key = (verdict.claim.study, verdict.claim.name)
        if key in seen:
            raise BadInput(
                f"There are two verdicts on claim {key[1]!r} of study {key[0]!r}.",
                fix="settle each claim once; give claims of one study different names",
            )
        seen.add(key)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
