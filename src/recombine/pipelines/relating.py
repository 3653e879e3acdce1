"""Whether combinations whose concepts are read better succeed more often, and what else might say so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.wording import counted
from recombine.errors import BadInput
from recombine.pipelines.findings import Joint, Point, Relation
from recombine.pipelines.shared_rank import held_concepts, shared_rank
from recombine.stats.intervals import Interval, t_interval
from recombine.stats.rank import ranks_within

FEWEST = 10
"""Combinations without which nothing is said of a relation."""
TEXT = "text encoder alone"
FREQUENCY = "frequency of the concepts"
PARTS = "concepts themselves"
ALL = "all"
OBSERVED = "Nobody varied decodability, so this is no cause."


def relate(points: Mapping[str, Sequence[Point]]) -> Relation:
    """The rank correlation over combinations, within sets, with an error over concepts; then with rivals held still.

    Probes of different folds are not equally bold, so combinations are compared with others of their set and fold. The
    last rival is an effect of each concept on its own: what is left is about combinations and not about their parts.
    """
    used = [
        (name, one)
        for name, each in points.items()
        for one in each
        if one.related and math.isfinite(one.success) and math.isfinite(one.decodability)
    ]
    count = len(used)
    if count < FEWEST:
        told = f"Too few to say: {counted(count, 'prompt')} with judged images and readable concepts, {FEWEST} are needed."
        return Relation(count, None, {}, {}, told)
    success = np.array([one.success for _, one in used])
    if np.ptp(success) == 0:
        what = "all images are right" if success[0] == 1 else "no image is right"
        if 0 < success[0] < 1:
            what = "all prompts succeed equally often"
        return Relation(count, None, {}, {}, f"Nothing to relate: {what}.")
    group = np.unique([name for name, _ in used], return_inverse=True)[1]
    if all(np.ptp(success[group == one]) == 0 for one in np.unique(group)):
        return Relation(
            count, None, {}, {}, "Nothing to relate: within each set all prompts succeed equally often."
        )
    fold = np.unique([f"{name} {one.fold}" for name, one in used], return_inverse=True)[1]
    own = ranks_within(np.array([one.decodability for _, one in used]), fold)
    others: dict[str, Float[np.ndarray, " n"]] = {}
    text = np.array([one.from_text for _, one in used])
    if np.isfinite(text).all():
        others[TEXT] = ranks_within(text, fold)
    others[FREQUENCY] = np.array([one.frequency for _, one in used])
    said: list[str] = []
    holds = held_concepts([one.concepts for _, one in used])
    parts = _effects(holds, group)

    def rank(
        what: str,
        x: Float[np.ndarray, " n"],
        *held: Float[np.ndarray, " n"],
        parts: Float[np.ndarray, "n effect"] | None = None,
    ) -> Interval | None:
        try:
            return shared_rank(np.stack([x, success, *held]), group, holds, parts)
        except BadInput as error:
            said.append(f"{what}: {error.message}")
            return None

    plain = rank("Decodability", own)
    rivals = {name: rank(f"The {name}", one) for name, one in others.items()}
    partial = {name: rank(f"With the {name} held still", own, one) for name, one in others.items()}
    if parts is None:
        said.append(f"The {PARTS} could not be held still: there are too few prompts for so many concepts.")
    else:
        partial[PARTS] = rank(f"With the {PARTS} held still", own, parts=parts)
    partial[ALL] = rank("With all rivals held still", own, *others.values(), parts=parts)
    return Relation(
        count,
        plain,
        {name: one for name, one in rivals.items() if one is not None},
        {name: one for name, one in partial.items() if one is not None},
        _verdict(plain, partial[ALL]),
        (*_notes(count, others), *said),
    )


def _effects(
    holds: Bool[np.ndarray, "n concept"], group: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n effect"] | None:
    """A column for each concept of each set; None where they leave too little to relate."""
    columns = [holds[:, one] & (group == at) for at in np.unique(group) for one in range(holds.shape[1])]
    effects = np.array([one for one in columns if one.any()], dtype=float).T
    sets = np.stack([group == at for at in np.unique(group)], axis=1).astype(float)
    free = len(group) - int(np.linalg.matrix_rank(np.hstack([effects, sets])))
    return effects if free >= FEWEST else None


def _verdict(plain: Interval | None, partial: Interval | None) -> str:
    if plain is None:  # Success does, or it would not have come here.
        return "Decodability does not vary over these prompts: there is nothing to relate."
    ends = _told(plain)
    if plain.low > 0:
        said = f"Prompts whose concepts can be read better off the blocks succeed more often: rank correlation {ends}."
    elif plain.high < 0:
        said = f"Prompts whose concepts can be read better off the blocks succeed less often: rank correlation {ends}."
    else:
        return f"Whether prompts whose concepts can be read better succeed more often is not clear: rank correlation {ends}."
    if partial is None:
        return f"{said} The rivals could not be held still. {OBSERVED}"
    same = partial.low > 0 if plain.low > 0 else partial.high < 0
    held = "It stays" if same else "It does not stay clear"
    return f"{said} {held} with the rivals held still: {_told(partial)}. {OBSERVED}"


def _notes(count: int, others: Mapping[str, object]) -> tuple[str, ...]:
    seen = 2 / math.sqrt(count - 3)
    notes = [f"With {count} prompts, a correlation smaller than about {seen:.2f} would mostly go unseen."]
    if TEXT not in others:
        notes.append("The text encoder could not be held still: nothing is known of what it holds.")
    return tuple(notes)


def _told(interval: Interval) -> str:
    return f"{interval.estimate:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]"


def joint_and_product(right: Sequence[np.ndarray], labels: Sequence[Sequence[str]]) -> Joint | None:
    """How often all concepts of a combination are right, less the product of how often each is right elsewhere.

    `right` has for each combination (image, concept), `labels` the names of its concepts. The rate of a concept is that
    in all *other* combinations, so that a combination does not predict itself. None where there are too few.
    """
    sums: dict[str, list[float]] = {}
    for values, names in zip(right, labels, strict=True):
        for name, share in zip(names, values.mean(0) if len(values) else (), strict=False):
            sums.setdefault(name, []).append(float(share))
    joint, product = [], []
    for values, names in zip(right, labels, strict=True):
        if not len(values) or any(len(sums[name]) < 2 for name in names):
            continue
        shares = values.mean(0)
        elsewhere = [
            (sum(sums[name]) - float(share)) / (len(sums[name]) - 1)
            for name, share in zip(names, shares, strict=True)
        ]
        joint.append(float(values.all(1).mean()))
        product.append(math.prod(elsewhere))
    if len(joint) < FEWEST:
        return None
    gap = t_interval(np.array(joint) - np.array(product))
    if gap.low > 0:
        said = "Concepts succeed together more often than the product of their own successes says"
    elif gap.high < 0:
        said = "Concepts succeed together less often than the product of their own successes says"
    else:
        said = "Concepts succeed together about as often as the product of their own successes says, as far as can be told"
    sentence = f"{said}: joint less product {_told(gap)}."
    return Joint(len(joint), t_interval(joint), t_interval(product), gap, sentence)
