"""What could raise the score: each rule says what to do, why, and by how much the mean could rise at most."""

from __future__ import annotations

import dataclasses
import math

from recombine.audit.advising.evidence import CLEAR, HIGH, LOW, Evidence
from recombine.audit.advising.weak import RATE, WEAK, WeakValue
from recombine.audit.space import joining
from recombine.audit.strata import MET, TRAINED, UNMET, UNSEEN
from recombine.audit.wording import counted, decimal, estimate, listed
from recombine.stats.intervals import Interval

COLLECT = 10
"""The most combinations that an advice lists; `recombine plan` lists more."""
WIDER = 1.314
"""How much wider a 99 % interval is than a 95 % one."""


@dataclasses.dataclass(frozen=True)
class Said:
    """What a rule says."""

    sentence: str
    """What to do."""
    because: str
    """The numbers behind it."""
    collect: tuple[tuple[str, ...], ...] = ()
    """Combinations to collect."""
    gain: float | None = None
    """How much the mean score could improve at most, in units of the score."""


def part_not_learned(evidence: Evidence) -> Said | None:
    """A value scores below LOW in all its combinations, trained ones included, and the other values do not."""
    low = [value for value in evidence.weak if _not_learned(evidence, value)]
    if not low:
        return None
    both = ", trained ones included" if evidence.cells.trained is not None else ""
    it = "it" if len(low) == 1 else "them"
    where = f"below {LOW:g} of the scale" if evidence.absolute else "in the lower half of all scores"
    return Said(
        f"{listed([value.name for value in low])}: low scores in all combinations{both}. The model has not learned {it}: "
        f"train on more examples of {it} before you look at combinations.",
        f"mean score {listed([_mean(value) for value in low], 3)}; {where}, at a false-discovery rate of {RATE:g}",
        evidence.holding([value.name for value in low], COLLECT),
        _gain(low),
    )


def weak_part(evidence: Evidence) -> Said | None:
    """A value scores clearly worse than the others of its factor, but not below LOW."""
    weak = [value for value in evidence.weak if not _not_learned(evidence, value)]
    levels = evidence.levels(evidence.overall)
    if not weak or (evidence.absolute and levels is not None and levels[2] < LOW):
        return None  # If everything is low, no value stands out.
    it = "it" if len(weak) == 1 else "them"
    where = ", also in trained combinations" if evidence.cells.trained is not None else ""
    return Said(
        f"{listed([value.name for value in weak])}: worse than the other values{where}. "
        f"Train on more examples of {it}.",
        f"mean score {listed([_mean(value) for value in weak], 3)}; at least {WEAK:g} of the scale worse than the other "
        f"values with the rest held constant, at a false-discovery rate of {RATE:g}",
        evidence.holding([value.name for value in weak], COLLECT),
        _gain(weak),
    )


def unseen_part(evidence: Evidence) -> Said | None:
    """An evaluated value was never trained on."""
    support = evidence.support
    if support is None or not support.unseen:
        return None
    it = "it" if len(support.unseen) == 1 else "them"
    return Said(
        f"Train on {listed(support.unseen)}: no model can recombine a value that it never saw. "
        f"Collect combinations that contain {it}.",
        f"{counted(len(support.unseen), 'evaluated value')} in none of the "
        f"{counted(support.size, 'trained combination')}",
        evidence.collect(COLLECT, strength=1),
        _lost(evidence, UNSEEN),
    )


def join_groups(evidence: Evidence) -> Said | None:
    """The training values form groups that never meet."""
    support = evidence.support
    if support is None or len(support.groups) < 2:
        return None
    return Said(
        f"Collect combinations that connect the {len(support.groups):,} groups of training values: "
        "values of different groups never occurred together in training, even indirectly.",
        "groups of " + listed([counted(len(group), "value") for group in support.groups]),
        joining(evidence.cells)[:COLLECT],
    )


def collect_pairs(evidence: Evidence) -> Said | None:
    """Held-out combinations with unmet pairs score clearly worse than with all pairs met, with constituents held constant."""
    first, gap = evidence.unmet_gap
    if evidence.support is None or not clear(gap.best, evidence.margin) or _only_tied(evidence):
        return None
    assert gap.best is not None
    than = "those whose pairs all met" if first == MET else "trained combinations"
    return Said(
        f"Collect combinations with the pairs that never met in training ({evidence.support.unmet_count:,} of them were "
        f"evaluated): held-out combinations with such a pair score worse than {than}.",
        f"{means(evidence, first, UNMET)}; {_difference(gap.best, gap.adjusted is not None)}",
        evidence.collect(COLLECT),
        gap.best.estimate * evidence.share(UNMET),
    )


def collect_pairs_or_values(evidence: Evidence) -> Said | None:
    """Unmet pairs score clearly worse, but with constituents held constant the difference is not known."""
    first, gap = evidence.unmet_gap
    if evidence.support is None or collect_pairs(evidence) is not None:
        return None
    tied_gap = clear(evidence.tied_gap, evidence.margin)
    explained = (
        not clear(gap.best, evidence.margin) and gap.adjusted is not None and gap.adjusted.high < evidence.margin
    )
    # Values that only occur with unmet pairs tell nothing once they are held constant.
    if not tied_gap and (explained or not clear(gap.raw, evidence.margin)):
        return None
    raw = evidence.tied_gap if tied_gap else gap.raw
    assert raw is not None
    than = "those whose pairs all met" if first == MET else "trained combinations"
    held = "cannot be computed" if gap.adjusted is None else estimate(gap.adjusted)
    tied, covered = listed(evidence.tied_values), evidence.stratum(first)
    first_number = 0 if covered is None else covered.combinations
    return Said(
        f"Collect combinations with the pairs that never met in training ({evidence.support.unmet_count:,} of them were "
        f"evaluated): held-out combinations with such a pair score worse than {than}. But this loss cannot be told apart "
        f"from the values themselves ({tied}): they may be hard in any combination. Combinations that were collected "
        "will show which, if they are evaluated too.",
        f"{means(evidence, first, UNMET)}; {_difference(raw, False)}; with parts held constant {held}",
        evidence.collect(COLLECT),
        raw.estimate * (raw.replicates - first_number) / max(int(evidence.scored.sum()), 1),
    )


def _only_tied(evidence: Evidence) -> bool:
    """Whether unmet pairs score worse only where a value hardly occurs without them."""
    margin = evidence.margin
    return clear(evidence.tied_gap, margin) and not clear(evidence.untied_gap, margin)


def hard_combinations(evidence: Evidence) -> Said | None:
    """Both links reject additivity, and pairs that training covers can be named."""
    parts, hard = evidence.parts, evidence.hard
    if not parts.interaction or not hard:
        return None
    what = "Collect more of these combinations; more examples of their values alone will not help."
    if clear(evidence.held_out_gap.best, evidence.margin):
        # If training on a combination raises its score, held-out combinations look hard for that reason alone.
        what = "This may be because some were not trained on: fix that first, then audit again."
    return Said(
        f"Some combinations are harder than their parts predict: {listed([pair.name for pair in hard])}. {what}",
        "; ".join(f"{fit.link} link: p = {fit.p:.3g}" for fit in parts.fits),
        evidence.holding([pair.name for pair in hard], COLLECT),
        sum(pair.loss for pair in hard),
    )


def memorises(evidence: Evidence) -> Said | None:
    """Trained is high, held out with all pairs met is far worse."""
    gap = evidence.met_gap
    trained, met = evidence.mean(TRAINED), evidence.mean(MET)
    if gap.best is None or trained is None or met is None or gap.best.low <= evidence.margin:
        return None
    if (
        evidence.level(trained.estimate) < HIGH
        or evidence.level(trained.estimate) - evidence.level(met.estimate) < CLEAR
    ):
        return None
    return Said(
        "The model memorises: it solves what it was trained on but not what was held out, although all values and all "
        "pairs occur in training. More pairs will not fix this. Many more combinations, another model or another training "
        "method might.",
        f"{means(evidence, TRAINED, MET)}; {_difference(gap.best, gap.adjusted is not None)}",
        gain=gap.best.estimate * evidence.share(MET, UNMET, UNSEEN),
    )


def coverage_fine_model_limit(evidence: Evidence) -> Said | None:
    """Held out with all pairs met is worse than trained; or everything is low, trained included."""
    if _low_everywhere(evidence):
        trained, overall = evidence.mean(TRAINED), evidence.overall
        assert overall is not None
        return Said(
            "Scores are low everywhere, even on trained combinations: the limit is the model, its size or its training, "
            "not the choice of combinations.",
            f"trained {estimate(trained)}, overall {estimate(overall)}, both below {LOW:g} of the scale"
            + (" above chance" if evidence.scale.chance is not None else ""),
            gain=(1 - evidence.level(overall.estimate)) * abs(evidence.ends[1] - evidence.ends[0]),
        )
    gap = evidence.met_gap
    if not clear(gap.best, evidence.margin) or memorises(evidence) is not None:
        return None
    assert gap.best is not None
    return Said(
        "Held-out combinations score worse than trained ones even if all their pairs met in training, so no pair is missing. "
        "A larger model, longer training or more combinations of any kind may help.",
        f"{means(evidence, TRAINED, MET)}; {_difference(gap.best, gap.adjusted is not None)}",
        gain=gap.best.estimate * evidence.share(MET, UNMET, UNSEEN),
    )


REMEDIES = (
    part_not_learned,
    weak_part,
    unseen_part,
    collect_pairs,
    collect_pairs_or_values,
    hard_combinations,
    memorises,
    coverage_fine_model_limit,
    join_groups,
)
"""Their advice is ordered by how much the mean could rise; advice without such a number comes last, in this order."""


def clear(gap: Interval | None, margin: float) -> bool:
    """Whether a difference is at least as large as the margin, and its 99 % interval lies above 0.

    An audit looks at several differences, and 95 % intervals gave a wrong remedy on too many tables without any cause.
    """
    return gap is not None and gap.estimate > WIDER * (gap.estimate - gap.low) and gap.estimate >= margin


def means(evidence: Evidence, *names: str) -> str:
    """The means of strata."""
    found = [(name, evidence.mean(name), evidence.stratum(name)) for name in names]
    return ", ".join(
        f"{name} {'-' if mean is None else decimal(mean.estimate)} "
        f"({counted(0 if stratum is None else stratum.combinations, 'combination')})"
        for name, mean, stratum in found
    )


def _difference(gap: Interval, adjusted: bool) -> str:
    return f"worse by {estimate(gap)}" + (
        " with parts held constant" if adjusted else " (raw, parts not held constant)"
    )


def _low_everywhere(evidence: Evidence) -> bool:
    """Whether trained combinations and all combinations lie below LOW of a known scale."""
    levels = [evidence.levels(evidence.mean(TRAINED)), evidence.levels(evidence.overall)]
    return evidence.absolute and all(each is not None and each[2] < LOW for each in levels)


def _not_learned(evidence: Evidence, value: WeakValue) -> bool:
    """Whether a value is low in all combinations, trained ones included, and the others are not."""
    levels = [evidence.level(mean) for mean in (value.mean, value.trained_mean, value.others)]
    apart = levels[2] - levels[0] >= CLEAR and levels[2] >= LOW
    return apart and levels[0] < LOW and not (levels[1] > LOW or math.isnan(levels[1]))


def _mean(value: WeakValue) -> str:
    return f"{value.name} {decimal(value.mean)} over {counted(value.combinations, 'combination')}"


def _gain(values: list[WeakValue]) -> float:
    return sum(value.loss * value.share for value in values)


def _lost(evidence: Evidence, name: str) -> float | None:
    """What the mean loses by a stratum, compared with the best covered one that was scored."""
    lost, known = evidence.mean(name), evidence.mean(TRAINED) or evidence.mean(MET) or evidence.mean(UNMET)
    if lost is None or known is None:
        return None
    return max(0.0, evidence.scale.sign * (known.estimate - lost.estimate) * evidence.share(name))
