"""The answer of an audit in one sentence, from the rules that applied and their numbers."""

from __future__ import annotations

from typing import Literal, NamedTuple

from recombine.audit.findings import Advice, ScoreFinding, Stratum
from recombine.audit.strata import MET, TRAINED, UNMET
from recombine.audit.wording import counted, listed
from recombine.figures.wording import number, signed
from recombine.stats.intervals import Interval

Tone = Literal["supported", "contradicted", "inconclusive"]


DECISIVE = (
    "memorises",
    "collect-pairs",
    "collect-pairs-or-values",
    "coverage-fine-model-limit",
    "composes",
    "undecided",
)
"""The first of these rules that an audit gives decides its answer."""


class Answer(NamedTuple):
    """A sentence, and whether it is good news, bad news or neither."""

    sentence: str
    tone: Tone


def with_ends(interval: Interval | None, *, sign: bool = False, digits: int = 2) -> str:
    """An estimate with its interval: 0.90 [0.85, 0.94]."""
    if interval is None:
        return "no interval"
    form = signed if sign else number
    return f"{form(interval.estimate, digits)} [{form(interval.low, digits)}, {form(interval.high, digits)}]"


def answer(finding: ScoreFinding) -> Answer:
    """Does the model recombine? The sentence of the first rule that decides it, or what is known and what is missing."""
    rules = {advice.rule: advice for advice in finding.advice}
    strata = () if finding.gap is None else finding.gap.strata
    mean = {stratum.name: stratum.score.estimate for stratum in strata if stratum.score is not None}
    trained, met, unmet = (number(mean.get(name)) for name in (TRAINED, MET, UNMET))
    if "constant-score" in rules:
        said = rules["constant-score"]
        return Answer(said.sentence, "supported" if "nothing to fix" in said.sentence else "inconclusive")
    decisive = next((advice.rule for advice in finding.advice if advice.rule in DECISIVE), "")
    if decisive == "memorises":
        return Answer(
            f"It memorises: {trained} on trained combinations but {met} on held-out ones, although training had all their "
            "values and all their pairs.",
            "contradicted",
        )
    if decisive == "collect-pairs":
        return Answer(_pairs("composes" in rules, MET in mean, trained, met, unmet), "contradicted")
    if decisive == "collect-pairs-or-values":
        return Answer(
            f"It fails where two values never met in training ({unmet}, elsewhere {met if MET in mean else trained}), but "
            "the table cannot tell whether the missing pairs or the values themselves are the reason.",
            "contradicted",
        )
    if decisive == "coverage-fine-model-limit":
        return Answer(_limit(finding, strata, trained, met), "contradicted")
    if decisive == "composes":
        return Answer(rules["composes"].sentence, "supported")
    if decisive == "undecided" and finding.gap is not None:
        gap = finding.gap.adjusted or finding.gap.raw
        adjusted = " with parts held constant" if finding.gap.adjusted is not None else ""
        return Answer(
            "The data do not decide whether it recombines: the mean of trained combinations minus that of held-out ones "
            f"is {with_ends(gap, sign=True)}{adjusted}.",
            "inconclusive",
        )
    return _without_training(finding, rules)


def _pairs(composes: bool, met_some: bool, trained: str, met: str, unmet: str) -> str:
    if composes and met_some:
        return (
            f"It recombines pairs that met in training ({met} if all pairs of values met, {trained} on trained "
            f"combinations), but fails if two values never met ({unmet})."
        )
    other = f"{met} if all pairs met" if met_some else f"{trained} on trained combinations"
    return f"It fails if two values never met in training: {unmet}, compared with {other}."


def _limit(finding: ScoreFinding, strata: tuple[Stratum, ...], trained: str, met: str) -> str:
    known = next((stratum.score for stratum in strata if stratum.name == TRAINED), None)
    limit = next(advice for advice in finding.advice if advice.rule == "coverage-fine-model-limit")
    if known is not None and finding.overall is not None and "low everywhere" in limit.sentence:
        return (
            f"It fails even on trained combinations ({trained}; {number(finding.overall.estimate)} over all "
            "combinations): the limit is the model, not the choice of combinations."
        )
    return f"It recombines partly: {trained} on trained combinations, {met} on held-out ones whose pairs all met in training."


def _without_training(finding: ScoreFinding, rules: dict[str, Advice]) -> Answer:
    """The answer if the training combinations are unknown, or only one side was scored."""
    known = (
        f"The mean is {with_ends(finding.overall)} over {counted(finding.overall.replicates, 'combination')}"
        if finding.overall is not None
        else "A single combination was scored"
    )
    missing = "no rule decides whether it recombines"
    if finding.gap is None or "one-side-only" in rules:
        sides = "trained and held-out combinations were not both scored"
        reason = "no training combinations were given" if finding.gap is None else sides
        missing = f"whether it recombines or memorises is unknown, because {reason}"
    if "solved" in rules:
        return Answer(f"It solves all combinations: {known[0].lower()}{known[1:]}; {missing}.", "supported")
    tone: Tone = "contradicted" if {"low-everywhere", "part-not-learned"} & set(rules) else "inconclusive"
    return Answer(f"{known}; {_of_parts(finding, rules)}; {missing}.", tone)


def _of_parts(finding: ScoreFinding, rules: dict[str, Advice]) -> str:
    parts = finding.parts
    if "part-not-learned" in rules:
        return "some values are not learned in any combination"
    if not parts.identification.identified:
        return "this table cannot separate parts from combinations"
    if parts.interaction:
        named = [pair.name for pair in parts.hardest_pairs]
        return "some combinations are harder than their parts predict" + (f" ({listed(named, 2)})" if named else "")
    return "combinations are as hard as their parts predict"
