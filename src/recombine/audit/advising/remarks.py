"""What an audit says beside remedies: what works, what is not decided, and what the table lacks."""

from __future__ import annotations

import math

from recombine.audit.advising.evidence import LOW, Evidence
from recombine.audit.advising.remedies import (
    COLLECT,
    WIDER,
    Said,
    clear,
    collect_pairs,
    collect_pairs_or_values,
    coverage_fine_model_limit,
    memorises,
)
from recombine.audit.strata import MET, TRAINED, UNMET, UNSEEN
from recombine.audit.wording import amount, counted, decimal, estimate, short

SOLVED = 0.95
"""If the interval of the mean lies above this level, there is nothing to fix."""
ASKED = 5
"""How many pairs a question names."""


def constant_score(evidence: Evidence) -> Said | None:
    """All combinations have the same score."""
    if not evidence.constant:
        return None
    value = float(evidence.cells.mean[evidence.scored, evidence.score][0])
    what = "this table says nothing about combinations. Evaluate harder ones, or with a finer score."
    if evidence.absolute and value == evidence.scale.best:
        what = f"there is nothing to fix, and {what}"
    number = counted(int(evidence.scored.sum()), "combination")
    return Said(f"All combinations have the same score: {what}", f"the mean score of all {number} is {decimal(value)}")


def composes(evidence: Evidence) -> Said | None:
    """Held out is less than the margin worse than trained."""
    trained = evidence.mean(TRAINED)
    if trained is None or (evidence.absolute and evidence.level(trained.estimate) < LOW):
        return None
    gap, where = evidence.held_out_gap, "held-out combinations"
    # Values that hardly occur without unmet pairs tell nothing once they are held constant.
    tied = evidence.tied_gap is not None and evidence.tied_gap.high >= evidence.margin
    if tied or gap.best is None or gap.best.high >= evidence.margin:
        gap, where = evidence.met_gap, "held-out combinations whose pairs all met in training"
    if gap.best is None or gap.best.high >= evidence.margin:
        return None
    margin = amount(evidence.margin)
    held = " with parts held constant" if gap.adjusted is not None else " (raw, parts not held constant)"
    return Said(
        f"The model recombines: {where} score less than {margin} worse than trained ones.",
        f"worse by {estimate(gap.best)}{held}, below the margin of {margin}",
    )


def low_everywhere(evidence: Evidence) -> Said | None:
    """The training combinations are unknown, and the mean lies below LOW of a known scale."""
    overall, levels = evidence.overall, evidence.levels(evidence.overall)
    if evidence.support is not None or not evidence.absolute or overall is None or levels is None or levels[2] >= LOW:
        return None
    return Said(
        "Most combinations fail. Evaluate single values: if these succeed, the model fails at combining them; if not, it has "
        "not learned them.",
        f"mean {estimate(overall)} over {counted(overall.replicates, 'combination')}, below {LOW:g} of the scale",
    )


def undecided(evidence: Evidence) -> Said | None:
    """There is a gap, and no rule judges it."""
    gap = evidence.held_out_gap.best
    others = (collect_pairs, collect_pairs_or_values, memorises, coverage_fine_model_limit, composes)
    if gap is None or any(rule(evidence) is not None for rule in others):
        return None
    unseen = evidence.stratum(UNSEEN)
    if unseen is not None and evidence.stratum(MET) is None and evidence.stratum(UNMET) is None:
        return Said(
            "Every held-out combination has a value that was never trained on: whether the model recombines values that "
            "it knows was not tested. Evaluate held-out combinations of trained values.",
            f"{counted(unseen.combinations, 'held-out combination')}, each with a part unseen",
        )
    sentence = (
        "Held-out combinations score worse than trained ones, but the data do not show why: "
        "evaluate more held-out combinations, some whose pairs all met in training and some with unmet pairs."
    )
    if not clear(gap, evidence.margin):
        half = (gap.high - gap.low) / 2
        likely = gap.low > 0 and gap.estimate >= evidence.margin
        size, reach = (gap.estimate, WIDER * half) if likely else (evidence.margin, half)
        needed = math.ceil(gap.replicates * max(reach / size, 1.0) ** 2)
        more = counted(max(needed - gap.replicates, 1), "more combination")
        sentence = (
            "The data do not decide whether held-out combinations score worse: evaluate about "
            f"{more} to detect a difference of {amount(evidence.margin)}."
        )
        if likely:
            sentence = (
                "Held-out combinations probably score worse, but not clearly enough to act on it: evaluate about "
                f"{more} to confirm a difference of {amount(size)}."
            )
    held = (
        " with parts held constant" if evidence.held_out_gap.adjusted is not None else " (raw, parts not held constant)"
    )
    return Said(sentence, f"worse by {estimate(gap)}{held}")


def one_side_only(evidence: Evidence) -> Said | None:
    """Fewer than two trained or held-out combinations were scored."""
    if evidence.gap is None or evidence.cells.trained is None:
        return None
    scored, trained = evidence.scored, evidence.cells.trained
    known, new = int((scored & trained).sum()), int((scored & ~trained).sum())
    if known >= 2 and new >= 2:
        return None
    side = "held-out" if new < 2 else "trained"
    return Said(
        f"Evaluate {side} combinations too: without them, recombining cannot be distinguished from memorising.",
        f"{known:,} trained and {new:,} held-out combinations were scored",
    )


def possible_pairs(evidence: Evidence) -> Said | None:
    """Pairs that never occur although both values are common."""
    support = evidence.support
    if support is None or not support.asked_count:
        return None
    some = "; ".join(f"{short(one)} with {short(two)}" for one, two in support.asked[:ASKED])
    more = f" and {support.asked_count - ASKED:,} more" if support.asked_count > ASKED else ""
    return Said(
        f"Can these occur together? {some}{more}. If so, state the space (--space FILE without a constraint on them), and "
        "they are planned for; if not, list them there under forbid.",
        f"{support.asked_count:,} pairs of common values are in no trained and in no evaluated combination; they are not "
        "proposed, and coverage does not count them",
    )


def cannot_tell(evidence: Evidence) -> Said | None:
    """The table cannot separate parts from combinations."""
    design = evidence.parts.identification
    if design.identified or evidence.quick:
        return None
    what = " ".join(design.advice) or "Evaluate more combinations of the same values."
    return Said(
        f"To separate parts from combinations: {what[0].lower()}{what[1:]}",
        f"{counted(design.combinations, 'combination')} for {counted(design.parameters, 'parameter')} of the parts, "
        f"{counted(design.residual, 'residual degree')} of freedom, "
        f"{counted(design.connected, 'connected group')}",
        design.collect[:COLLECT],
    )


def solved(evidence: Evidence) -> Said | None:
    """The mean lies above SOLVED of a known scale."""
    levels = evidence.levels(evidence.overall)
    if not evidence.absolute or levels is None or levels[1] < SOLVED:
        return None
    return Said("Nothing to fix: nearly all combinations are solved.", f"mean {estimate(evidence.overall)}")


def no_training_information(evidence: Evidence) -> Said | None:
    """The training combinations are unknown."""
    if evidence.cells.trained is not None:
        return None
    return Said(
        "State which combinations the model was trained on (--train TABLE, or --split column=value). Only then can the audit "
        "distinguish recombining from memorising, and name gaps in the training data.",
        "the training combinations are unknown",
    )


def no_scale(evidence: Evidence) -> Said | None:
    """The worst and the best score are unknown."""
    if evidence.absolute:
        return None
    worst, best = (decimal(evidence.scale.sign * end) for end in evidence.ends)
    return Said(
        "State the lowest and the highest possible score (--scale LOW,HIGH). Until then, high and low are relative to the "
        "scores of this table, and the audit cannot say whether the model is good.",
        f"the worst and the best score are unknown; from {worst} to {best} lie 90 % of the combinations",
    )


REMARKS = (
    composes,
    low_everywhere,
    undecided,
    one_side_only,
    possible_pairs,
    cannot_tell,
    solved,
    no_training_information,
    no_scale,
)
"""In the order of their advice."""
