"""What to do, by rules that are written down: docs/methods-audit.md has the same table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from recombine.audit.evidence import CLEAR, HIGH, LOW, RATE, Evidence
from recombine.audit.findings import Advice, Stratum
from recombine.audit.space import joining
from recombine.audit.strata import MET, TRAINED, UNMET
from recombine.audit.wording import counted, decimal, listed
from recombine.stats.intervals import Interval

COLLECT = 10
"""So many combinations are named at most; `recombine plan` names more."""
SOLVED = 0.95
"""If the interval of the mean lies above this, there is nothing to mend."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule: its name, when it speaks, and what it says then."""

    name: str
    when: str
    speak: Callable[[Evidence], Advice | None]


def advise(evidence: Evidence) -> tuple[Advice, ...]:
    """What all rules say, most useful first."""
    return tuple(said for rule in RULES if (said := rule.speak(evidence)) is not None)


def _part_not_learned(evidence: Evidence) -> Advice | None:
    found = evidence.not_learned()
    if not found:
        return None
    names = [evidence.cells.labels[part] for part, _, _ in found]
    told = [
        f"{name} {decimal(mean)} over {counted(number, 'combination')}"
        for name, (_, mean, number) in zip(names, found, strict=True)
    ]
    both = ", trained ones too" if evidence.cells.trained is not None else ""
    return Advice(
        "part-not-learned",
        f"{listed(names)}: low in all company{both}. The part itself is not learned; "
        "train on more examples of it before you look at its combinations.",
        f"mean score {listed(told, 3)}; below {LOW:g} at a false-discovery rate of {RATE:g}, "
        f"and {CLEAR:g} or more below the others",
    )


def _unseen_part(evidence: Evidence) -> Advice | None:
    support = evidence.support
    if support is None or not support.unseen:
        return None
    space = evidence.planned
    collect = () if space is None else space.cover(COLLECT, strength=1, seed=evidence.seed)
    it = "it" if len(support.unseen) == 1 else "them"
    return Advice(
        "unseen-part",
        f"Train on {listed(support.unseen)}: no model can recombine what it never saw. "
        f"Collect combinations that hold {it}.",
        f"{counted(len(support.unseen), 'evaluated value')} in none of "
        f"{counted(support.size, 'trained combination')}",
        collect,
    )


def _join_groups(evidence: Evidence) -> Advice | None:
    support = evidence.support
    if support is None or len(support.groups) < 2:
        return None
    return Advice(
        "join-groups",
        f"Collect combinations that tie the {len(support.groups):,} groups of training together: "
        "values of different groups were never seen with one another, nor by way of others.",
        "groups of " + listed([counted(len(group), "value") for group in support.groups]),
        joining(evidence.cells)[:COLLECT],
    )


def _collect_pairs(evidence: Evidence) -> Advice | None:
    first, gap, still = evidence.unmet_gap
    if evidence.support is None or not _clear(gap, evidence.margin):
        return None
    space = evidence.planned
    collect = () if space is None else space.cover(COLLECT, seed=evidence.seed)
    than = "those whose pairs all met" if first == MET else "trained ones"
    return Advice(
        "collect-pairs",
        f"Collect combinations with the pairs that never met ({evidence.support.unmet_count:,} of them were "
        f"evaluated): held-out combinations that hold one score lower than {than}.",
        f"{_told(evidence, first, UNMET)}; difference {_interval(gap)}{_still(still)}",
        collect,
    )


def _memorises(evidence: Evidence) -> Advice | None:
    gap, still = evidence.met_gap
    trained, met = _mean(evidence.stratum(TRAINED)), _mean(evidence.stratum(MET))
    if not evidence.absolute or gap is None or trained is None or met is None:
        return None
    if trained < HIGH or trained - met < CLEAR or gap.low <= evidence.margin:
        return None
    return Advice(
        "memorises",
        "The model memorises: it does what it was trained on and not what was held out, although training "
        "has all the parts and all the pairs. More pairs will not mend this; many more combinations, another "
        "model or other training might.",
        f"{_told(evidence, TRAINED, MET)}; difference {_interval(gap)}{_still(still)}",
    )


def _model_limit(evidence: Evidence) -> Advice | None:
    stratum, overall = evidence.stratum(TRAINED), evidence.overall
    trained = None if stratum is None else stratum.score
    low = all(one is not None and one.high < LOW for one in (trained, overall))
    if evidence.absolute and low:
        return Advice(
            "coverage-fine-model-limit",
            "Scores are low everywhere, on trained combinations too: the model, its size or its training is "
            "the limit, and not which combinations were collected.",
            f"trained {_interval(trained)}, overall {_interval(overall)}, both below {LOW:g}",
        )
    gap, still = evidence.met_gap
    if not _clear(gap, evidence.margin) or _memorises(evidence) is not None:
        return None
    return Advice(
        "coverage-fine-model-limit",
        "Where all pairs met in training, held-out combinations score lower all the same: no pair is missing there. "
        "A larger model or longer training may help, or more combinations of any kind.",
        f"{_told(evidence, TRAINED, MET)}; difference {_interval(gap)}{_still(still)}",
    )


def _low_everywhere(evidence: Evidence) -> Advice | None:
    overall = evidence.overall
    if evidence.support is not None or not evidence.absolute or overall is None or overall.high >= LOW:
        return None
    return Advice(
        "low-everywhere",
        "Most combinations fail. Evaluate their parts alone: if these succeed, combining is what fails; if not, the "
        "parts are not learned.",
        f"mean {_interval(overall)} over {counted(overall.replicates, 'combination')}, below {LOW:g}",
    )


def _composes(evidence: Evidence) -> Advice | None:
    trained = _mean(evidence.stratum(TRAINED))
    if trained is None or (evidence.absolute and trained < LOW):
        return None
    gap, still = evidence.held_out_gap
    where = "held-out combinations"
    if gap is None or gap.high >= evidence.margin:
        (gap, still), where = evidence.met_gap, "held-out combinations whose pairs all met in training"
    if gap is None or gap.high >= evidence.margin:
        return None
    return Advice(
        "composes",
        f"The model recombines: on {where} it loses less than {evidence.margin:.2g} against trained ones.",
        f"difference {_interval(gap)}{_still(still)}, within the margin of {evidence.margin:.2g}",
    )


def _hard_combinations(evidence: Evidence) -> Advice | None:
    parts = evidence.parts
    if not parts.interaction or not parts.hardest_pairs:
        return None
    names = [pair.name for pair in parts.hardest_pairs]
    sentence = f"Some combinations are harder than their parts: {listed(names)}. "
    if _clear(evidence.held_out_gap[0], evidence.margin):
        # Where trained combinations score higher for having been trained on, what was not looks hard for that alone.
        sentence += "Part of this may be that some were not trained on: see to that first, and audit again."
    else:
        sentence += "Collect more of these; more of their parts alone will not do."
    return Advice(
        "hard-combinations",
        sentence,
        "; ".join(f"{fit.link} link: share {fit.share:.2f}, p = {fit.p:.3g}" for fit in parts.fits),
    )


def _undecided(evidence: Evidence) -> Advice | None:
    gap, still = evidence.held_out_gap
    others = (_collect_pairs, _memorises, _model_limit, _composes)
    if gap is None or any(rule(evidence) is not None for rule in others):
        return None
    half = (gap.high - gap.low) / 2
    needed = math.ceil(gap.replicates * max(half / evidence.margin, 1.0) ** 2)
    more = max(needed - gap.replicates, 0)
    if _clear(gap, evidence.margin):
        sentence = (
            "Held-out combinations score lower than trained ones, but these numbers do not say why: "
            "evaluate more held-out combinations, both with all pairs met and with pairs unmet."
        )
    else:
        sentence = (
            "Whether held-out combinations are worse is not decided: evaluate about "
            f"{counted(more, 'more combination')} to see a difference of {evidence.margin:.2g}."
        )
    return Advice("undecided", sentence, f"difference {_interval(gap)}{_still(still)}")


def _one_side_only(evidence: Evidence) -> Advice | None:
    if evidence.gap is None or evidence.cells.trained is None:
        return None
    scored, trained = evidence.scored, evidence.cells.trained
    known, new = int((scored & trained).sum()), int((scored & ~trained).sum())
    if known >= 2 and new >= 2:
        return None
    side = "held-out" if new < 2 else "trained"
    return Advice(
        "one-side-only",
        f"Evaluate {side} combinations too: without them nobody can tell recombining from remembering.",
        f"{known:,} trained and {new:,} held-out combinations were scored",
    )


def _cannot_tell(evidence: Evidence) -> Advice | None:
    found = evidence.parts.identification
    if found.identified:
        return None
    what = " ".join(found.advice) or "Evaluate more combinations of the same values."
    return Advice(
        "cannot-tell",
        f"To tell parts from combination: {what[0].lower()}{what[1:]}",
        f"{counted(found.combinations, 'combination')} for {counted(found.parameters, 'parameter')} of the parts, "
        f"{counted(found.residual, 'residual degree')} of freedom, "
        f"{counted(found.connected, 'connected group')}",
        found.collect[:COLLECT],
    )


def _solved(evidence: Evidence) -> Advice | None:
    overall = evidence.overall
    if not evidence.absolute or overall is None or overall.low < SOLVED:
        return None
    return Advice("solved", "Nothing to mend: all combinations are solved.", f"mean {_interval(overall)}")


def _no_training_information(evidence: Evidence) -> Advice | None:
    if evidence.cells.trained is not None:
        return None
    return Advice(
        "no-training-information",
        "Say what the model was trained on (--train TABLE, or --split column=value): only then can "
        "recombining be told from remembering, and gaps in the training data be named.",
        "the table does not say which combinations were trained on",
    )


RULES = (
    Rule(
        "part-not-learned",
        "a value scores below LOW in all its combinations, trained ones included",
        _part_not_learned,
    ),
    Rule("unseen-part", "an evaluated value was never trained on", _unseen_part),
    Rule("join-groups", "training falls into groups of values that never touch", _join_groups),
    Rule(
        "collect-pairs",
        "held-out combinations with unmet pairs score clearly lower than with all pairs met",
        _collect_pairs,
    ),
    Rule("memorises", "trained high, held out with all pairs met far lower", _memorises),
    Rule(
        "coverage-fine-model-limit",
        "all pairs met, and held out lower than trained; or everything low, trained too",
        _model_limit,
    ),
    Rule("low-everywhere", "nobody said what was trained on, and the mean lies below LOW", _low_everywhere),
    Rule("composes", "held out is less than the margin below trained", _composes),
    Rule("hard-combinations", "both links reject additivity and pairs can be named", _hard_combinations),
    Rule("undecided", "there is a gap to judge and none of the rules above judges it", _undecided),
    Rule("one-side-only", "fewer than two trained or held-out combinations were scored", _one_side_only),
    Rule("cannot-tell", "the table does not identify parts and combination", _cannot_tell),
    Rule("solved", "the mean lies above SOLVED", _solved),
    Rule("no-training-information", "nobody said what was trained on", _no_training_information),
)
"""All rules, in the order in which they speak."""


def _clear(gap: Interval | None, margin: float) -> bool:
    """Whether a difference is there and large enough to matter."""
    return gap is not None and gap.low > 0 and gap.estimate >= margin


def _mean(stratum: Stratum | None) -> float | None:
    return None if stratum is None or stratum.score is None else stratum.score.estimate


def _told(evidence: Evidence, *names: str) -> str:
    """The means of strata."""
    strata = [(name, evidence.stratum(name)) for name in names]
    return ", ".join(
        f"{name} {'-' if (mean := _mean(one)) is None else decimal(mean)} "
        f"({counted(0 if one is None else one.combinations, 'combination')})"
        for name, one in strata
    )


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return f"{decimal(interval.estimate)} [{decimal(interval.low)}, {decimal(interval.high)}]"


def _still(still: bool) -> str:
    return " with the parts held still" if still else " as it is, parts not held still"
