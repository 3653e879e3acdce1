"""What to do, by explicit rules. docs/methods-audit.md has the same table."""

from __future__ import annotations

import math

from recombine.audit.evidence import CLEAR, HIGH, LOW, RATE, Evidence
from recombine.audit.findings import Advice
from recombine.audit.space import joining
from recombine.audit.strata import MET, TRAINED, UNMET
from recombine.audit.wording import counted, decimal, estimate, listed
from recombine.stats.intervals import Interval

COLLECT = 10
"""The most combinations that an advice lists; `recombine plan` lists more."""
SOLVED = 0.95
"""If the interval of the mean lies above this, there is nothing to fix."""

Said = tuple[str, str] | tuple[str, str, tuple[tuple[str, ...], ...]]
"""What a rule says: what to do, the numbers behind it, and the combinations to collect, if there are any."""


def advise(evidence: Evidence) -> tuple[Advice, ...]:
    """Apply all rules in their order.

    Args:
        evidence: The findings of one score.

    Returns:
        The advice of the rules that apply, most useful first.
    """
    said = {name: rule(evidence) for name, rule in RULES.items()}
    return tuple(Advice(name, says[0], says[1], *says[2:]) for name, says in said.items() if says is not None)


def _part_not_learned(evidence: Evidence) -> Said | None:
    """A value scores below LOW in all its combinations, trained ones included."""
    low = evidence.not_learned()
    if not low:
        return None
    names = [evidence.cells.labels[part] for part, _, _ in low]
    means = [
        f"{evidence.cells.labels[part]} {decimal(mean)} over {counted(number, 'combination')}"
        for part, mean, number in low
    ]
    both = ", trained ones included" if evidence.cells.trained is not None else ""
    it = "it" if len(names) == 1 else "them"
    return (
        f"{listed(names)}: low scores in all combinations{both}. The model has not learned {it}: "
        f"train on more examples of {it} before you look at combinations.",
        f"mean score {listed(means, 3)}; below {LOW:g} at a false-discovery rate of {RATE:g}, "
        f"and at least {CLEAR:g} below the other values",
    )


def _unseen_part(evidence: Evidence) -> Said | None:
    """An evaluated value was never trained on."""
    support = evidence.support
    if support is None or not support.unseen:
        return None
    it = "it" if len(support.unseen) == 1 else "them"
    return (
        f"Train on {listed(support.unseen)}: no model can recombine a value that it never saw. "
        f"Collect combinations that contain {it}.",
        f"{counted(len(support.unseen), 'evaluated value')} in none of the "
        f"{counted(support.size, 'trained combination')}",
        evidence.collect(COLLECT, strength=1),
    )


def _join_groups(evidence: Evidence) -> Said | None:
    """The training values form groups that never meet."""
    support = evidence.support
    if support is None or len(support.groups) < 2:
        return None
    return (
        f"Collect combinations that connect the {len(support.groups):,} groups of training values: "
        "values of different groups never occurred together in training, even indirectly.",
        "groups of " + listed([counted(len(group), "value") for group in support.groups]),
        joining(evidence.cells)[:COLLECT],
    )


def _collect_pairs(evidence: Evidence) -> Said | None:
    """Held-out combinations with unmet pairs score clearly lower than with all pairs met."""
    first, gap, adjusted = evidence.unmet_gap
    if evidence.support is None or not _clear(gap, evidence.margin):
        return None
    than = "those whose pairs all met" if first == MET else "trained combinations"
    return (
        f"Collect combinations with the pairs that never met in training ({evidence.support.unmet_count:,} of them were "
        f"evaluated): held-out combinations with such a pair score lower than {than}.",
        f"{_means(evidence, first, UNMET)}; difference {estimate(gap)}{_adjusted(adjusted)}",
        evidence.collect(COLLECT),
    )


def _memorises(evidence: Evidence) -> Said | None:
    """Trained is high, held out with all pairs met is far lower."""
    gap, adjusted = evidence.met_gap
    trained, met = evidence.mean(TRAINED), evidence.mean(MET)
    if not evidence.absolute or gap is None or trained is None or met is None or gap.low <= evidence.margin:
        return None
    if trained.estimate < HIGH or trained.estimate - met.estimate < CLEAR:
        return None
    return (
        "The model memorises: it solves what it was trained on but not what was held out, although all values and all "
        "pairs occur in training. More pairs will not fix this. Many more combinations, another model or another training "
        "method might.",
        f"{_means(evidence, TRAINED, MET)}; difference {estimate(gap)}{_adjusted(adjusted)}",
    )


def _coverage_fine_model_limit(evidence: Evidence) -> Said | None:
    """Held out with all pairs met is lower than trained; or everything is low, trained included."""
    trained, overall = evidence.mean(TRAINED), evidence.overall
    if evidence.absolute and all(each is not None and each.high < LOW for each in (trained, overall)):
        return (
            "Scores are low everywhere, even on trained combinations: the limit is the model, its size or its training, "
            "not the choice of combinations.",
            f"trained {estimate(trained)}, overall {estimate(overall)}, both below {LOW:g}",
        )
    gap, adjusted = evidence.met_gap
    if not _clear(gap, evidence.margin) or _memorises(evidence) is not None:
        return None
    return (
        "Held-out combinations score lower than trained ones even if all their pairs met in training, so no pair is missing. "
        "A larger model, longer training or more combinations of any kind may help.",
        f"{_means(evidence, TRAINED, MET)}; difference {estimate(gap)}{_adjusted(adjusted)}",
    )


def _low_everywhere(evidence: Evidence) -> Said | None:
    """The training combinations are unknown, and the mean lies below LOW."""
    overall = evidence.overall
    if evidence.support is not None or not evidence.absolute or overall is None or overall.high >= LOW:
        return None
    return (
        "Most combinations fail. Evaluate single values: if these succeed, the model fails at combining them; if not, it has "
        "not learned them.",
        f"mean {estimate(overall)} over {counted(overall.replicates, 'combination')}, below {LOW:g}",
    )


def _composes(evidence: Evidence) -> Said | None:
    """Held out is less than the margin below trained."""
    trained = evidence.mean(TRAINED)
    if trained is None or (evidence.absolute and trained.estimate < LOW):
        return None
    gap, adjusted = evidence.held_out_gap
    where = "held-out combinations"
    if gap is None or gap.high >= evidence.margin:
        (gap, adjusted), where = evidence.met_gap, "held-out combinations whose pairs all met in training"
    if gap is None or gap.high >= evidence.margin:
        return None
    return (
        f"The model recombines: {where} score less than {evidence.margin:.2g} below trained ones.",
        f"difference {estimate(gap)}{_adjusted(adjusted)}, below the margin of {evidence.margin:.2g}",
    )


def _hard_combinations(evidence: Evidence) -> Said | None:
    """Both links reject additivity and pairs can be named."""
    parts = evidence.parts
    if not parts.interaction or not parts.hardest_pairs:
        return None
    names = [pair.name for pair in parts.hardest_pairs]
    what = "Collect more of these combinations; more examples of their values alone will not help."
    if _clear(evidence.held_out_gap[0], evidence.margin):
        # If training on a combination raises its score, held-out combinations look hard for that reason alone.
        what = "This may be because some were not trained on: fix that first, then audit again."
    return (
        f"Some combinations are harder than their parts predict: {listed(names)}. {what}",
        "; ".join(f"{fit.link} link: share {fit.share:.2f}, p = {fit.p:.3g}" for fit in parts.fits),
    )


def _undecided(evidence: Evidence) -> Said | None:
    """There is a gap, and none of the rules above judges it."""
    gap, adjusted = evidence.held_out_gap
    others = (_collect_pairs, _memorises, _coverage_fine_model_limit, _composes)
    if gap is None or any(rule(evidence) is not None for rule in others):
        return None
    sentence = (
        "Held-out combinations score lower than trained ones, but the data do not show why: "
        "evaluate more held-out combinations, some whose pairs all met in training and some with unmet pairs."
    )
    if not _clear(gap, evidence.margin):
        half = (gap.high - gap.low) / 2
        needed = math.ceil(gap.replicates * max(half / evidence.margin, 1.0) ** 2)
        sentence = (
            "The data do not decide whether held-out combinations score lower: evaluate about "
            f"{counted(needed - gap.replicates, 'more combination')} to detect a difference of {evidence.margin:.2g}."
        )
    return (sentence, f"difference {estimate(gap)}{_adjusted(adjusted)}")


def _one_side_only(evidence: Evidence) -> Said | None:
    """Fewer than two trained or held-out combinations were scored."""
    if evidence.gap is None or evidence.cells.trained is None:
        return None
    scored, trained = evidence.scored, evidence.cells.trained
    known, new = int((scored & trained).sum()), int((scored & ~trained).sum())
    if known >= 2 and new >= 2:
        return None
    side = "held-out" if new < 2 else "trained"
    return (
        f"Evaluate {side} combinations too: without them, recombining cannot be distinguished from memorising.",
        f"{known:,} trained and {new:,} held-out combinations were scored",
    )


def _cannot_tell(evidence: Evidence) -> Said | None:
    """The table cannot separate parts from combinations."""
    design = evidence.parts.identification
    if design.identified:
        return None
    what = " ".join(design.advice) or "Evaluate more combinations of the same values."
    return (
        f"To separate parts from combinations: {what[0].lower()}{what[1:]}",
        f"{counted(design.combinations, 'combination')} for {counted(design.parameters, 'parameter')} of the parts, "
        f"{counted(design.residual, 'residual degree')} of freedom, "
        f"{counted(design.connected, 'connected group')}",
        design.collect[:COLLECT],
    )


def _solved(evidence: Evidence) -> Said | None:
    """The mean lies above SOLVED."""
    overall = evidence.overall
    if not evidence.absolute or overall is None or overall.low < SOLVED:
        return None
    return ("Nothing to fix: all combinations are solved.", f"mean {estimate(overall)}")


def _no_training_information(evidence: Evidence) -> Said | None:
    """The training combinations are unknown."""
    if evidence.cells.trained is not None:
        return None
    return (
        "State which combinations the model was trained on (--train TABLE, or --split column=value). Only then can the audit "
        "distinguish recombining from memorising, and name gaps in the training data.",
        "the training combinations are unknown",
    )


_ABOUT_THE_DATA = (_part_not_learned, _unseen_part, _join_groups, _collect_pairs)
_ABOUT_THE_MODEL = (_memorises, _coverage_fine_model_limit, _low_everywhere, _composes, _hard_combinations)
_ABOUT_THE_TABLE = (_undecided, _one_side_only, _cannot_tell, _solved, _no_training_information)
_ORDER = (*_ABOUT_THE_DATA, *_ABOUT_THE_MODEL, *_ABOUT_THE_TABLE)
RULES = {rule.__name__.strip("_").replace("_", "-"): rule for rule in _ORDER}
"""All rules by name, in the order of their advice. Each says in its docstring when it applies."""


def _clear(gap: Interval | None, margin: float) -> bool:
    """Whether a difference is significant and at least as large as the margin."""
    return gap is not None and gap.low > 0 and gap.estimate >= margin


def _means(evidence: Evidence, *names: str) -> str:
    """The means of strata."""
    means = [(name, evidence.mean(name), evidence.stratum(name)) for name in names]
    return ", ".join(
        f"{name} {'-' if mean is None else decimal(mean.estimate)} "
        f"({counted(0 if stratum is None else stratum.combinations, 'combination')})"
        for name, mean, stratum in means
    )


def _adjusted(adjusted: bool) -> str:
    return " with parts held constant" if adjusted else " (raw, parts not held constant)"
