"""What to do, by explicit rules. docs/methods-audit.md has the same table."""

from __future__ import annotations

import math
from collections.abc import Callable

from recombine.audit.evidence import CLEAR, HIGH, LOW, RATE, Evidence
from recombine.audit.findings import Advice, Stratum
from recombine.audit.space import joining
from recombine.audit.strata import MET, TRAINED, UNMET
from recombine.audit.wording import counted, decimal, estimate, listed
from recombine.stats.intervals import Interval

COLLECT = 10
"""The most combinations that an advice lists; `recombine plan` lists more."""
SOLVED = 0.95
"""If the interval of the mean lies above this, there is nothing to fix."""


def advise(evidence: Evidence) -> tuple[Advice, ...]:
    """Apply all rules in their order.

    Args:
        evidence: The findings of one score.

    Returns:
        The advice of the rules that apply, most useful first.
    """
    return tuple(advice for rule in RULES.values() if (advice := rule(evidence)) is not None)


def _part_not_learned(evidence: Evidence) -> Advice | None:
    """A value scores below LOW in all its combinations, trained ones included."""
    low = evidence.not_learned()
    if not low:
        return None
    names = [evidence.cells.labels[part] for part, _, _ in low]
    means = [
        f"{name} {decimal(mean)} over {counted(number, 'combination')}"
        for name, (_, mean, number) in zip(names, low, strict=True)
    ]
    both = ", trained ones included" if evidence.cells.trained is not None else ""
    it = "it" if len(names) == 1 else "them"
    return Advice(
        "part-not-learned",
        f"{listed(names)}: low scores in all combinations{both}. The model has not learned {it}: "
        f"train on more examples of {it} before you look at combinations.",
        f"mean score {listed(means, 3)}; below {LOW:g} at a false-discovery rate of {RATE:g}, "
        f"and at least {CLEAR:g} below the other values",
    )


def _unseen_part(evidence: Evidence) -> Advice | None:
    """An evaluated value was never trained on."""
    support = evidence.support
    if support is None or not support.unseen:
        return None
    space = evidence.planned
    collect = () if space is None else space.cover(COLLECT, strength=1, seed=evidence.seed)
    it = "it" if len(support.unseen) == 1 else "them"
    return Advice(
        "unseen-part",
        f"Train on {listed(support.unseen)}: no model can recombine a value that it never saw. "
        f"Collect combinations that contain {it}.",
        f"{counted(len(support.unseen), 'evaluated value')} in none of the "
        f"{counted(support.size, 'trained combination')}",
        collect,
    )


def _join_groups(evidence: Evidence) -> Advice | None:
    """The training values form groups that never meet."""
    support = evidence.support
    if support is None or len(support.groups) < 2:
        return None
    return Advice(
        "join-groups",
        f"Collect combinations that connect the {len(support.groups):,} groups of training values: "
        "values of different groups never occurred together in training, even indirectly.",
        "groups of " + listed([counted(len(group), "value") for group in support.groups]),
        joining(evidence.cells)[:COLLECT],
    )


def _collect_pairs(evidence: Evidence) -> Advice | None:
    """Held-out combinations with unmet pairs score clearly lower than with all pairs met."""
    first, gap, adjusted = evidence.unmet_gap
    if evidence.support is None or not _clear(gap, evidence.margin):
        return None
    space = evidence.planned
    collect = () if space is None else space.cover(COLLECT, seed=evidence.seed)
    than = "those whose pairs all met" if first == MET else "trained combinations"
    return Advice(
        "collect-pairs",
        f"Collect combinations with the pairs that never met in training ({evidence.support.unmet_count:,} of them were "
        f"evaluated): held-out combinations with such a pair score lower than {than}.",
        f"{_means(evidence, first, UNMET)}; difference {estimate(gap)}{_adjusted(adjusted)}",
        collect,
    )


def _memorises(evidence: Evidence) -> Advice | None:
    """Trained is high, held out with all pairs met is far lower."""
    gap, adjusted = evidence.met_gap
    trained, met = _mean(evidence.stratum(TRAINED)), _mean(evidence.stratum(MET))
    if not evidence.absolute or gap is None or trained is None or met is None:
        return None
    if trained < HIGH or trained - met < CLEAR or gap.low <= evidence.margin:
        return None
    return Advice(
        "memorises",
        "The model memorises: it solves what it was trained on but not what was held out, although all values and all "
        "pairs occur in training. More pairs will not fix this. Many more combinations, another model or another training "
        "method might.",
        f"{_means(evidence, TRAINED, MET)}; difference {estimate(gap)}{_adjusted(adjusted)}",
    )


def _model_limit(evidence: Evidence) -> Advice | None:
    """Held out with all pairs met is lower than trained; or everything is low, trained included."""
    stratum, overall = evidence.stratum(TRAINED), evidence.overall
    trained = None if stratum is None else stratum.score
    low = all(interval is not None and interval.high < LOW for interval in (trained, overall))
    if evidence.absolute and low:
        return Advice(
            "coverage-fine-model-limit",
            "Scores are low everywhere, even on trained combinations: the limit is the model, its size or its training, "
            "not the choice of combinations.",
            f"trained {estimate(trained)}, overall {estimate(overall)}, both below {LOW:g}",
        )
    gap, adjusted = evidence.met_gap
    if not _clear(gap, evidence.margin) or _memorises(evidence) is not None:
        return None
    return Advice(
        "coverage-fine-model-limit",
        "Held-out combinations score lower than trained ones even if all their pairs met in training, so no pair is missing. "
        "A larger model, longer training or more combinations of any kind may help.",
        f"{_means(evidence, TRAINED, MET)}; difference {estimate(gap)}{_adjusted(adjusted)}",
    )


def _low_everywhere(evidence: Evidence) -> Advice | None:
    """The training combinations are unknown, and the mean lies below LOW."""
    overall = evidence.overall
    if evidence.support is not None or not evidence.absolute or overall is None or overall.high >= LOW:
        return None
    return Advice(
        "low-everywhere",
        "Most combinations fail. Evaluate single values: if these succeed, the model fails at combining them; if not, it has "
        "not learned them.",
        f"mean {estimate(overall)} over {counted(overall.replicates, 'combination')}, below {LOW:g}",
    )


def _composes(evidence: Evidence) -> Advice | None:
    """Held out is less than the margin below trained."""
    trained = _mean(evidence.stratum(TRAINED))
    if trained is None or (evidence.absolute and trained < LOW):
        return None
    gap, adjusted = evidence.held_out_gap
    where = "held-out combinations"
    if gap is None or gap.high >= evidence.margin:
        (gap, adjusted), where = evidence.met_gap, "held-out combinations whose pairs all met in training"
    if gap is None or gap.high >= evidence.margin:
        return None
    return Advice(
        "composes",
        f"The model recombines: {where} score less than {evidence.margin:.2g} below trained ones.",
        f"difference {estimate(gap)}{_adjusted(adjusted)}, below the margin of {evidence.margin:.2g}",
    )


def _hard_combinations(evidence: Evidence) -> Advice | None:
    """Both links reject additivity and pairs can be named."""
    parts = evidence.parts
    if not parts.interaction or not parts.hardest_pairs:
        return None
    names = [pair.name for pair in parts.hardest_pairs]
    sentence = f"Some combinations are harder than their parts predict: {listed(names)}. "
    if _clear(evidence.held_out_gap[0], evidence.margin):
        # If training on a combination raises its score, held-out combinations look hard for that reason alone.
        sentence += "This may be because some were not trained on: fix that first, then audit again."
    else:
        sentence += "Collect more of these combinations; more examples of their values alone will not help."
    return Advice(
        "hard-combinations",
        sentence,
        "; ".join(f"{fit.link} link: share {fit.share:.2f}, p = {fit.p:.3g}" for fit in parts.fits),
    )


def _undecided(evidence: Evidence) -> Advice | None:
    """There is a gap, and none of the rules above judges it."""
    gap, adjusted = evidence.held_out_gap
    others = (_collect_pairs, _memorises, _model_limit, _composes)
    if gap is None or any(rule(evidence) is not None for rule in others):
        return None
    half = (gap.high - gap.low) / 2
    needed = math.ceil(gap.replicates * max(half / evidence.margin, 1.0) ** 2)
    more = max(needed - gap.replicates, 0)
    if _clear(gap, evidence.margin):
        sentence = (
            "Held-out combinations score lower than trained ones, but the data do not show why: "
            "evaluate more held-out combinations, some whose pairs all met in training and some with unmet pairs."
        )
    else:
        sentence = (
            "The data do not decide whether held-out combinations score lower: evaluate about "
            f"{counted(more, 'more combination')} to detect a difference of {evidence.margin:.2g}."
        )
    return Advice("undecided", sentence, f"difference {estimate(gap)}{_adjusted(adjusted)}")


def _one_side_only(evidence: Evidence) -> Advice | None:
    """Fewer than two trained or held-out combinations were scored."""
    if evidence.gap is None or evidence.cells.trained is None:
        return None
    scored, trained = evidence.scored, evidence.cells.trained
    known, new = int((scored & trained).sum()), int((scored & ~trained).sum())
    if known >= 2 and new >= 2:
        return None
    side = "held-out" if new < 2 else "trained"
    return Advice(
        "one-side-only",
        f"Evaluate {side} combinations too: without them, recombining cannot be distinguished from memorising.",
        f"{known:,} trained and {new:,} held-out combinations were scored",
    )


def _cannot_tell(evidence: Evidence) -> Advice | None:
    """The table cannot separate parts from combinations."""
    design = evidence.parts.identification
    if design.identified:
        return None
    what = " ".join(design.advice) or "Evaluate more combinations of the same values."
    return Advice(
        "cannot-tell",
        f"To separate parts from combinations: {what[0].lower()}{what[1:]}",
        f"{counted(design.combinations, 'combination')} for {counted(design.parameters, 'parameter')} of the parts, "
        f"{counted(design.residual, 'residual degree')} of freedom, "
        f"{counted(design.connected, 'connected group')}",
        design.collect[:COLLECT],
    )


def _solved(evidence: Evidence) -> Advice | None:
    """The mean lies above SOLVED."""
    overall = evidence.overall
    if not evidence.absolute or overall is None or overall.low < SOLVED:
        return None
    return Advice("solved", "Nothing to fix: all combinations are solved.", f"mean {estimate(overall)}")


def _no_training_information(evidence: Evidence) -> Advice | None:
    """The training combinations are unknown."""
    if evidence.cells.trained is not None:
        return None
    return Advice(
        "no-training-information",
        "State which combinations the model was trained on (--train TABLE, or --split column=value). Only then can the audit "
        "distinguish recombining from memorising, and name gaps in the training data.",
        "the training combinations are unknown",
    )


RULES: dict[str, Callable[[Evidence], Advice | None]] = {
    "part-not-learned": _part_not_learned,
    "unseen-part": _unseen_part,
    "join-groups": _join_groups,
    "collect-pairs": _collect_pairs,
    "memorises": _memorises,
    "coverage-fine-model-limit": _model_limit,
    "low-everywhere": _low_everywhere,
    "composes": _composes,
    "hard-combinations": _hard_combinations,
    "undecided": _undecided,
    "one-side-only": _one_side_only,
    "cannot-tell": _cannot_tell,
    "solved": _solved,
    "no-training-information": _no_training_information,
}
"""All rules by name, in the order of their advice. Each says in its docstring when it applies."""


def _clear(gap: Interval | None, margin: float) -> bool:
    """Whether a difference is significant and at least as large as the margin."""
    return gap is not None and gap.low > 0 and gap.estimate >= margin


def _mean(stratum: Stratum | None) -> float | None:
    return None if stratum is None or stratum.score is None else stratum.score.estimate


def _means(evidence: Evidence, *names: str) -> str:
    """The means of strata."""
    strata = [(name, evidence.stratum(name)) for name in names]
    return ", ".join(
        f"{name} {'-' if (mean := _mean(stratum)) is None else decimal(mean)} "
        f"({counted(0 if stratum is None else stratum.combinations, 'combination')})"
        for name, stratum in strata
    )


def _adjusted(adjusted: bool) -> str:
    return " with parts held constant" if adjusted else " (raw, parts not held constant)"
