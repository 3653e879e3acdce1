"""Whether combinations with better decodable concepts succeed more often, also controlled for rival explanations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from recombine.audit.wording import counted
from recombine.errors import BadInput
from recombine.pipelines.findings import CombinationFinding, Joint, Relation
from recombine.stats import LEVEL, Interval, ranks_within, t_interval
from recombine.stats.columns import less_group_means

FEWEST = 10
"""Fewest combinations for a relation."""
TEXT = "text encoder alone"
FREQUENCY = "frequency of the concepts"
PARTS = "concepts themselves"
ALL = "all"
Column = Float[np.ndarray, " n"]
Group = Int[np.ndarray, " n"]
Holds = Bool[np.ndarray, "n concept"]
Effects = Float[np.ndarray, "n effect"]
OBSERVED = "Decodability was not varied in an experiment, so this is no evidence of a cause."


def relate(points: Mapping[str, Sequence[CombinationFinding]]) -> Relation:
    """The rank correlation of decodability and success within sets, then controlled for rival explanations.

    Probes of different folds differ in confidence, so combinations are compared within their set and fold. The last rival
    is a separate effect of each concept: the rest is about combinations and not about their parts.
    """
    used = [
        (name, point)
        for name, members in points.items()
        for point in members
        if point.related and math.isfinite(point.success) and math.isfinite(point.decodability)
    ]
    count = len(used)
    success = np.array([point.success for _, point in used])
    group = np.unique([name for name, _ in used], return_inverse=True)[1]
    if refusal := _refusal(success, group):
        return Relation(count, None, {}, {}, refusal)
    fold = np.unique([f"{name} {point.fold}" for name, point in used], return_inverse=True)[1]
    own = ranks_within(np.array([point.decodability for _, point in used]), fold)
    others: dict[str, Column] = {}
    text = np.array([point.from_text for _, point in used])
    if np.isfinite(text).all():
        others[TEXT] = ranks_within(text, fold)
    others[FREQUENCY] = np.array([point.frequency for _, point in used])
    notes: list[str] = []
    holds = held_concepts([point.concepts for _, point in used])
    parts = _effects(holds, group)

    def rank(what: str, *columns: Column, parts: Effects | None = None) -> Interval | None:
        try:
            return shared_rank(np.stack([columns[0], success, *columns[1:]]), group, holds, parts)
        except BadInput as error:
            notes.append(f"{what}: {error.message}")
            return None

    plain = rank("Decodability", own)
    rivals = {name: rank(f"The {name}", rival) for name, rival in others.items()}
    partial = {name: rank(f"Controlled for the {name}", own, rival) for name, rival in others.items()}
    if parts is None:
        notes.append(f"The {PARTS} could not be controlled for: there are too few prompts for the number of concepts.")
    else:
        partial[PARTS] = rank(f"Controlled for the {PARTS}", own, parts=parts)
    partial[ALL] = rank("Controlled for all rivals", own, *others.values(), parts=parts)
    return Relation(
        count,
        plain,
        {name: interval for name, interval in rivals.items() if interval is not None},
        {name: interval for name, interval in partial.items() if interval is not None},
        _verdict(plain, partial[ALL]),
        (*_notes(count, others), *notes),
    )


def _refusal(success: Column, group: Group) -> str:
    """Why nothing can be related; empty if something can."""
    if len(success) < FEWEST:
        number = counted(len(success), "prompt")
        return f"Too few to say: {number} with judged images and decodable concepts; at least {FEWEST} are needed."
    if any(np.ptp(success[group == number]) for number in np.unique(group)):
        return ""
    if np.ptp(success):
        return "Nothing to relate: within each set all prompts succeed equally often."
    known = {0.0: "no image is right", 1.0: "all images are right"}
    return f"Nothing to relate: {known.get(success[0], 'all prompts succeed equally often')}."


def _effects(holds: Holds, group: Group) -> Effects | None:
    """One column per concept of each set; None if too few degrees of freedom are left."""
    sets = (group[:, None] == np.unique(group)).astype(float)
    columns = [holds[:, concept] * own for own in sets.T for concept in range(holds.shape[1])]
    effects = np.array([column for column in columns if column.any()]).T
    free = len(group) - int(np.linalg.matrix_rank(np.hstack([effects, sets])))
    return effects if free >= FEWEST else None


def _verdict(plain: Interval | None, partial: Interval | None) -> str:
    if plain is None:  # Success varies: that was checked before.
        return "Decodability does not vary over these prompts: there is nothing to relate."
    ends = f"rank correlation {_in_words(plain)}."
    if plain.low <= 0 <= plain.high:
        return f"It is not clear whether prompts whose concepts are easier to decode succeed more often: {ends}"
    often = "more" if plain.low > 0 else "less"
    verdict = f"Prompts whose concepts are easier to decode from the blocks succeed {often} often: {ends}"
    if partial is None:
        return f"{verdict} The rivals could not be controlled for. {OBSERVED}"
    same = partial.low > 0 if plain.low > 0 else partial.high < 0
    kept = "It remains" if same else "It is no longer clear"
    return f"{verdict} {kept} when controlled for the rivals: {_in_words(partial)}. {OBSERVED}"


def _notes(count: int, others: Mapping[str, object]) -> tuple[str, ...]:
    detectable = 2 / math.sqrt(count - 3)
    note = f"With {count} prompts, a correlation below about {detectable:.2f} would usually not be detected."
    unknown = "The text encoder could not be controlled for: its activations are unknown."
    return (note,) if TEXT in others else (note, unknown)


def _in_words(interval: Interval) -> str:
    return f"{interval.estimate:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]"


def joint_and_product(right: Sequence[np.ndarray], labels: Sequence[Sequence[str]]) -> Joint | None:
    """Joint success of the concepts of a combination, minus the product of their success rates elsewhere.

    `right` says for each combination (image, concept) whether the image shows the concept. The rate of a concept comes
    from all *other* combinations, so that a combination does not predict itself. None if there are too few.
    """
    sums: dict[str, list[float]] = {}
    for values, names in zip(right, labels, strict=True):
        for name, share in zip(names, values.mean(0) if len(values) else (), strict=False):
            sums.setdefault(name, []).append(float(share))
    joint, product = [], []
    for values, names in zip(right, labels, strict=True):
        if not len(values) or any(len(sums[name]) < 2 for name in names):
            continue
        own = zip(names, values.mean(0), strict=True)
        elsewhere = [(sum(sums[name]) - float(share)) / (len(sums[name]) - 1) for name, share in own]
        joint.append(float(values.all(1).mean()))
        product.append(math.prod(elsewhere))
    if len(joint) < FEWEST:
        return None
    gap = t_interval(np.array(joint) - np.array(product))
    often = "No clear difference: concepts succeed together about as often as"
    if not gap.low <= 0 <= gap.high:
        often = f"Concepts succeed together {'more' if gap.low > 0 else 'less'} often than"
    sentence = f"{often} the product of their success rates predicts: joint minus product {_in_words(gap)}."
    return Joint(len(joint), t_interval(joint), t_interval(product), gap, sentence)


def shared_rank(
    columns: Float[np.ndarray, "column n"], group: Group, holds: Holds, held: Effects | None = None
) -> Interval:
    """Spearman's partial correlation within groups, with a jackknife over concepts.

    A concept that is easy to decode and easy to draw raises all its combinations. So the error comes from leaving out each
    concept with all its combinations. A combination with k concepts is left out k times, so its own contribution is
    subtracted k - 1 times. The error is never below that of independent combinations. The interval is Student's with
    concepts / k - 1 degrees of freedom, which fits the variation of the error in simulations.

    Args:
        columns: The two variables, then the variables to control for (as ranks).
        group: The group of each combination.
        holds: Which combination contains which concept.
        held: More variables to control for, used as they are.

    Returns:
        The correlation with its interval.
    """
    count = len(group)
    effects = np.zeros((count, 0)) if held is None else held
    estimate = _correlation(columns, group, effects)
    if not math.isfinite(estimate):
        raise BadInput("it does not vary, or hardly differs from what is controlled for.")

    def change(out: Bool[np.ndarray, " n"]) -> float:
        """The change of the estimate without some points. Without variation, the correlation counts as 0."""
        left = _correlation(columns[:, ~out], group[~out], effects[~out])
        return (left if math.isfinite(left) else 0.0) - estimate

    own = sum(change(out) ** 2 for out in np.eye(count, dtype=bool)) * (1 - 1 / count)
    shared = sum((1 - float(out.mean())) * change(out) ** 2 for out in holds.T if out.any())
    each = float(holds.sum(1).mean())
    variance = max(own, shared - (each - 1) * own)
    freedom = max(int(holds.any(0).sum()) / each - 1, 1.0)
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance)
    low, high = max(estimate - half, -1.0), min(estimate + half, 1.0)
    return Interval(estimate, low, high, count, LEVEL, "jackknife over concepts")


def held_concepts(concepts: Sequence[Sequence[str]]) -> Holds:
    """Which combination contains which concept. A combination without concepts counts as its own concept."""
    named = [tuple(names) or (f"{index}",) for index, names in enumerate(concepts)]
    known = dict.fromkeys(name for names in named for name in names)
    return np.array([[name in names for name in known] for names in named], bool).reshape(len(named), len(known))


def _correlation(columns: Float[np.ndarray, "column n"], group: Group, effects: Effects) -> float:
    """NaN if one of the two does not vary after the others are controlled for."""
    if not len(group):
        return math.nan
    group = np.unique(group, return_inverse=True)[1]
    ranked = np.stack([less_group_means(ranks_within(column, group), group) for column in columns])
    controlled = [*ranked[2:], *(less_group_means(effect, group) for effect in effects.T)]
    pair = ranked[:2]
    if controlled:
        others = np.stack(controlled)
        pair = pair - np.linalg.lstsq(others.T, pair.T, rcond=None)[0].T @ others
    size = np.sqrt((pair**2).sum(1))
    if np.any(size <= 1e-9 * math.sqrt(len(group))):
        return math.nan
    return float(np.clip(pair[0] @ pair[1] / (size[0] * size[1]), -1, 1))
