"""Claims, and verdicts on them from one effect per replicate."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput, did_you_mean
from recombine.stats.correction import benjamini_hochberg, holm
from recombine.stats.intervals import Floats, mean_and_error
from recombine.stats.rule import Direction, Outcome, decide

__all__ = ["ALPHA", "Claim", "Direction", "Outcome", "Role", "Verdict", "judge", "settle"]

_SETTLED = re.compile("^precondition '|alone, but not after correction")
"""The parts of a note that `settle` adds."""

Role = Literal["claim", "control", "precondition"]
"""What a claim is for. A control shows that a method can fail, a precondition that a run can answer the question."""

ALPHA = 0.05
"""The largest adjusted p of a verdict that stands. Outcomes come from the interval at 1 - ALPHA."""


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

    def __post_init__(self) -> None:
        where = f"Claim {self.name!r} of study {self.study!r}"
        for field, options in (("direction", get_args(Direction)), ("role", get_args(Role))):
            value = getattr(self, field)
            if value not in options:
                raise BadInput(f"{where} has the {field} {value!r}.", fix=did_you_mean(str(value), options))
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
    """p after correction for multiple comparisons; None before `settle`."""
    note: str = ""
    alone: Verdict | None = None
    """The verdict before `settle`."""

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
            "verdict": self.verdict,
            "verdict_alone": (self.alone or self).verdict,
            "effect": _finite(self.effect),
            "interval": [_finite(self.low), _finite(self.high)],
            "replicates": self.replicates,
            "p": _finite(self.p),
            "p_adjusted": _finite(self.p_adjusted),
            "note": self.note,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Verdict:
        """Restore a verdict from its `record`, as it was before `settle`."""
        fields = ("study", "statement", "direction", "margin", "primary", "role", "version")
        claim = Claim(record["claim"], needs=tuple(record["needs"]), **{field: record[field] for field in fields})
        effect, low, high = (math.nan if value is None else value for value in (record["effect"], *record["interval"]))
        # `settle` adds its notes again.
        notes = [part for part in record["note"].split("; ") if not _SETTLED.search(part)]
        return cls(
            claim, record["verdict_alone"], effect, low, high, record["replicates"], record["p"], note="; ".join(notes)
        )


def judge(claim: Claim, effects: npt.ArrayLike) -> Verdict:
    """Judge one claim.

    Args:
        claim: The claim, with its direction and margin.
        effects: One effect per replicate. Effects of failed runs (NaN, inf) are left out.

    Returns:
        The verdict. It is inconclusive with fewer than 2 finite effects.
    """
    values = np.asarray(effects, dtype=float)
    if values.ndim != 1:
        raise BadInput(
            f"Claim {claim.name!r} got effects of shape {values.shape}.",
            fix="give one effect per replicate: average within replicates first",
        )
    sample = values[np.isfinite(values)]
    count = len(sample)
    notes = []
    if count < len(values):
        notes.append(f"{len(values) - count} of {len(values)} effects are not finite and were left out")
    if count < 2:
        notes.append(f"{count} of the at least 2 effects that a verdict needs")
        effect = float(sample[0]) if count else math.nan
        return Verdict(claim, "inconclusive", effect, math.nan, math.nan, count, 1.0, note="; ".join(notes))
    mean, error = mean_and_error(sample)
    if error == 0:
        notes.append(f"all {count} effects are equal")
    decision = decide(claim.direction, mean, error, count, claim.margin)
    outcome = cast(Outcome, decision.outcome.item())
    low, high, p = float(decision.low), float(decision.high), float(decision.p)
    return Verdict(claim, outcome, float(mean), low, high, count, p, note="; ".join(notes))


def settle(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Correct verdicts for multiple comparisons, and check their preconditions.

    Primary claims are corrected by Holm's method, all others by Benjamini and Hochberg's. A verdict that does not survive,
    or whose precondition does not hold, becomes inconclusive. Settling twice changes nothing.

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
    settled: list[Verdict] = list(alone)
    families: tuple[tuple[bool, str, Callable[[list[float]], Floats]], ...] = (
        (True, "Holm", holm),
        (False, "Benjamini-Hochberg", benjamini_hochberg),
    )
    for primary, name, correct in families:
        members = [index for index, verdict in enumerate(alone) if verdict.claim.primary == primary]
        adjusted = correct([alone[index].p for index in members])
        for index, p in zip(members, adjusted.tolist(), strict=True):
            settled[index] = replace(alone[index], p_adjusted=p, alone=alone[index])
            if p > ALPHA and alone[index].verdict != "inconclusive":
                reason = f"{alone[index].verdict} alone, but not after correction ({name}: p = {p:.3g})"
                settled[index] = _inconclusive(settled[index], reason)
    return _with_preconditions(settled)


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
