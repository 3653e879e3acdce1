"""The answer of an audit in one plain sentence, from the rules that spoke and the numbers they saw."""

from __future__ import annotations

from typing import Literal, NamedTuple

from recombine.audit.evidence import LOW
from recombine.audit.findings import Advice, ScoreFinding, Stratum
from recombine.audit.strata import MET, TRAINED, UNMET
from recombine.audit.wording import counted, listed
from recombine.figures.wording import number, signed
from recombine.stats.intervals import Interval

Tone = Literal["supported", "contradicted", "inconclusive"]


class Answer(NamedTuple):
    """A sentence, and whether it is good news, bad news or none."""

    sentence: str
    tone: Tone


def with_ends(interval: Interval | None, *, sign: bool = False) -> str:
    """An estimate with its interval."""
    if interval is None:
        return "no interval"
    say = signed if sign else number
    return f"{say(interval.estimate)} [{say(interval.low)}, {say(interval.high)}]"


def answer(finding: ScoreFinding) -> Answer:
    """Does it recombine? What the first rule that settles it says; else what is known and what is missing."""
    rules = {one.rule: one for one in finding.advice}
    mean = {one.name: one.score.estimate for one in _strata(finding) if one.score is not None}
    trained, met, unmet = (number(mean.get(name)) for name in (TRAINED, MET, UNMET))
    if "memorises" in rules:
        return Answer(
            f"It memorises: {trained} on trained combinations, {met} on held-out ones, although training had all their "
            "values and all their pairs.",
            "contradicted",
        )
    if "collect-pairs" in rules:
        return Answer(_pairs("composes" in rules, MET in mean, trained, met, unmet), "contradicted")
    if "coverage-fine-model-limit" in rules:
        return Answer(_limit(finding, trained, met), "contradicted")
    if "composes" in rules:
        return Answer(rules["composes"].sentence, "supported")  # It says where.
    if "undecided" in rules and finding.gap is not None:
        gap = finding.gap.adjusted or finding.gap.raw
        still = " with the parts held still" if finding.gap.adjusted is not None else ""
        return Answer(
            f"Whether it recombines is not decided: trained combinations less held-out ones is {with_ends(gap, sign=True)}"
            f"{still}.",
            "inconclusive",
        )
    return _without_training(finding, rules)


def _strata(finding: ScoreFinding) -> tuple[Stratum, ...]:
    return () if finding.gap is None else finding.gap.strata


def _pairs(composes: bool, met_some: bool, trained: str, met: str, unmet: str) -> str:
    if composes and met_some:
        return (
            f"It recombines what it has met ({met} where all pairs of values met in training, {trained} on trained "
            f"combinations) and fails where two values never met ({unmet})."
        )
    other = f"{met} where all pairs met" if met_some else f"{trained} on trained combinations"
    return f"It fails where two values never met in training: {unmet} there, {other}."


def _limit(finding: ScoreFinding, trained: str, met: str) -> str:
    known = next((one.score for one in _strata(finding) if one.name == TRAINED), None)
    if known is not None and known.high < LOW and finding.overall is not None and finding.overall.high < LOW:
        return (
            f"It fails on what it was trained on too ({trained}; {number(finding.overall.estimate)} over all "
            "combinations): the model is the limit, not the combinations it was given."
        )
    return f"It recombines in part: {trained} on trained combinations, {met} on held-out ones whose pairs all met in training."


def _without_training(finding: ScoreFinding, rules: dict[str, Advice]) -> Answer:
    """Nobody said what was trained on, or only one side was scored."""
    known = (
        f"The mean is {with_ends(finding.overall)} over {counted(finding.overall.replicates, 'combination')}"
        if finding.overall is not None
        else "A single combination was scored"
    )
    missing = (
        "whether it recombines or remembers cannot be told, as nobody said what was trained on"
        if finding.gap is None
        else "whether it recombines or remembers cannot be told, as only one side of training was scored"
        if "one-side-only" in rules
        else "no rule settles whether it recombines"
    )
    if "solved" in rules:
        return Answer(f"It solves them all: {known[0].lower()}{known[1:]}; {missing}.", "supported")
    tone: Tone = "contradicted" if {"low-everywhere", "part-not-learned"} & set(rules) else "inconclusive"
    return Answer(f"{known}; {_of_parts(finding, rules)}; {missing}.", tone)


def _of_parts(finding: ScoreFinding, rules: dict[str, Advice]) -> str:
    parts = finding.parts
    if "part-not-learned" in rules:
        return "some values are not learned in any company"
    if not parts.identification.identified:
        return "parts and combination cannot be told apart from this table"
    if parts.interaction:
        named = [one.name for one in parts.hardest_pairs]
        return "some combinations are harder than their parts" + (f" ({listed(named, 2)})" if named else "")
    return "combinations are as hard as their parts say"
