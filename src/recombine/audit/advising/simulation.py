"""Tables of scores with a known cause, to test how often the advice is right."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.advising.advise import advise
from recombine.audit.advising.evidence import Evidence
from recombine.audit.cells import Cells, Factor
from recombine.audit.coverage import support_finding
from recombine.audit.crossed.parts import parts_or_combination
from recombine.audit.findings import Advice
from recombine.audit.scales import SHARE
from recombine.audit.strata import gap_finding, mean_score

Cause = Literal["holes", "hard values", "hard pairs", "small model", "confounded", "none"]
CAUSES: tuple[Cause, ...] = ("holes", "hard values", "hard pairs", "small model", "confounded", "none")

RIGHT: dict[Cause, tuple[str, ...]] = {
    "holes": ("collect-pairs", "collect-pairs-or-values"),
    "hard values": ("part-not-learned", "weak-part"),
    "hard pairs": ("hard-combinations",),
    "small model": ("coverage-fine-model-limit", "memorises"),
    "confounded": ("collect-pairs-or-values",),
    "none": (),
}
"""The rules whose advice is the remedy of each cause."""
ALL_REMEDIES = {rule for rules in RIGHT.values() for rule in rules} | {"unseen-part", "join-groups"}
Outcome = Literal["right", "wrong", "cannot tell"]


@dataclasses.dataclass(frozen=True)
class Design:
    """The size of a simulated table."""

    levels: tuple[int, ...] = (8, 8, 4)
    rows: int = 5
    """Rows of each combination, each a success or a failure."""
    trained: float = 0.5
    """The share of the combinations that is trained on, of those that are not in a hole."""


def simulated_table(cause: Cause, seed: int, design: Design = Design()) -> Cells:
    """A table of successes with one cause of failure.

    Every table has pairs that never met in training, so that only their scores say whether they matter. Unless the cause
    says otherwise, each combination succeeds with a probability around .9 that varies a little from value to value.

    Args:
        cause: What makes combinations fail. `holes`: pairs that never met. `hard values`: one or two values.
            `hard pairs`: three to five pairs that are trained on. `small model`: everything that is held out, or
            everything. `confounded`: unmet pairs are those of values that are scored nowhere else, and either the
            pairs or the values are the cause. `none`: nothing.
        seed: The seed of everything.
        design: The size of the table.
    """
    rng = np.random.default_rng([seed, CAUSES.index(cause)])
    rows = np.array(list(itertools.product(*(range(levels) for levels in design.levels))))
    hole = _holes(rng, rows, design)
    trained = _with_all_values((rng.random(len(rows)) < design.trained) & ~hole, rows, ~hole)
    base, fail = rng.uniform(0.85, 0.95), rng.uniform(0.25, 0.5)
    # In log odds, so that no probability leaves its range.
    easy = np.log(base / (1 - base)) + sum(
        rng.normal(0, 0.15, size)[rows[:, at]] for at, size in enumerate(design.levels)
    )
    chance = 1 / (1 + np.exp(-easy))
    scored = np.ones(len(rows), dtype=bool)
    if cause == "holes":
        chance = np.where(hole, fail, chance)
    elif cause == "hard values":
        for _ in range(rng.integers(1, 3)):
            slot = rng.integers(2)
            chance = np.where(rows[:, slot] == rng.integers(design.levels[slot]), fail, chance)
    elif cause == "hard pairs":
        chance = np.where(_hard_pairs(rng, rows, trained, design), fail * 0.6, chance)
    elif cause == "small model":
        if rng.random() < 0.3:
            chance = chance * rng.uniform(0.2, 0.4)
        else:
            chance = np.where(trained, chance, chance * rng.uniform(0.45, 0.75))
    elif cause == "confounded":
        # Values of the first factor that are scored only in holes.
        tied = np.isin(rows[:, 0], rows[hole][:, 0])
        tied &= np.isin(rows[:, 0], rng.permutation(np.unique(rows[hole][:, 0]))[: max(2, design.levels[0] // 3)])
        hole = (
            tied & ~trained & (rng.random(len(rows)) < 0.7) & np.isin(rows[:, 1], np.arange(design.levels[1] // 2 + 1))
        )
        trained = np.where(
            tied, ~np.isin(rows[:, 1], np.arange(design.levels[1] // 2 + 1)) & (rng.random(len(rows)) < 0.5), trained
        )
        trained = _with_all_values(trained, rows, ~hole)
        scored = ~tied | hole
        chance = np.where(tied & ~trained, fail, chance)
    return _cells(rng, rows, trained, scored, chance, design)


def _with_all_values(
    trained: Bool[np.ndarray, " n"], rows: Int[np.ndarray, "n slot"], allowed: Bool[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Train on one more combination for each value that is never trained on."""
    trained = trained.copy()
    for slot in range(rows.shape[1]):
        for value in np.setdiff1d(rows[:, slot], rows[trained, slot]):
            trained[np.flatnonzero(allowed & (rows[:, slot] == value))[0]] = True
    return trained


def _holes(rng: np.random.Generator, rows: Int[np.ndarray, "n slot"], design: Design) -> Bool[np.ndarray, " n"]:
    """Combinations with one of the pairs of the first two factors that are left out of training: about a fifth."""
    first, second = design.levels[:2]
    left_out = rng.random((first, second)) < 0.2
    # Every value keeps pairs, so that no value is unseen.
    left_out[np.arange(first), np.arange(first) % second] = False
    left_out[np.arange(second) % first, np.arange(second)] = False
    return left_out[rows[:, 0], rows[:, 1]]


def _hard_pairs(
    rng: np.random.Generator, rows: Int[np.ndarray, "n slot"], trained: Bool[np.ndarray, " n"], design: Design
) -> Bool[np.ndarray, " n"]:
    """Combinations with one of three to five pairs that are trained on; no two pairs share a value."""
    first, second = rng.permutation(design.levels[0]), rng.permutation(design.levels[1])
    hard = np.zeros(len(rows), dtype=bool)
    wanted = int(rng.integers(3, 6))
    for one, two in zip(first.tolist(), second.tolist(), strict=False):
        holds = (rows[:, 0] == one) & (rows[:, 1] == two)
        if wanted and (holds & trained).any():
            hard |= holds
            wanted -= 1
    return hard


def _cells(
    rng: np.random.Generator,
    rows: Int[np.ndarray, "n slot"],
    trained: Bool[np.ndarray, " n"],
    scored: Bool[np.ndarray, " n"],
    chance: Float[np.ndarray, " n"],
    design: Design,
) -> Cells:
    count = np.where(scored, design.rows, 0)
    with np.errstate(invalid="ignore"):
        mean = rng.binomial(count, chance) / count
    kept = scored | trained
    names = "abcdefgh"[: len(design.levels)]
    factors = tuple(
        Factor(name, tuple(f"{name}{index}" for index in range(levels)), (name,))
        for name, levels in zip(names, design.levels, strict=True)
    )
    offsets = np.cumsum([0, *design.levels[:-1]])
    spread = np.where(scored, count * mean * (1 - mean), 0.0)
    return Cells(
        factors,
        (rows + offsets)[kept],
        tuple(names),
        ("success",),
        (True,),
        count[kept],
        mean[kept][:, None],
        spread[kept][:, None],
        trained[kept],
        scales=(SHARE,),
    )


def advice_of(cells: Cells, *, draws: int = 39, seed: int = 0) -> tuple[Advice, ...]:
    """The advice of an audit of the first score, most useful first.

    Args:
        cells: The combinations.
        draws: The simulated tables of the test for interactions; an audit draws 199, which costs five times as much.
        seed: The seed of those.
    """
    scored = cells.evaluated
    gap, parts = gap_finding(cells, 0), parts_or_combination(cells, 0, seed=seed, draws=draws)
    overall = mean_score(cells.mean[scored, 0], binary=cells.binary[0], ends=cells.scale(0).ends)
    return advise(Evidence(cells, 0, support_finding(cells), gap, parts, overall, seed))


def outcome(cause: Cause, advice: Sequence[Advice]) -> Outcome:
    """Whether the first remedy that was advised is the right one.

    Without a remedy, the table cannot tell. It is wrong to say that the model recombines all held-out combinations where
    it does not, or that there is nothing to fix. Where values are hard, it is not wrong but undecided to say that they
    cannot be told apart from unmet pairs.
    """
    first = next((each.rule for each in advice if each.rule in ALL_REMEDIES), None)
    everywhere = any(each.rule == "composes" and "whose pairs all met" not in each.sentence for each in advice)
    solved = any(each.rule == "solved" for each in advice)
    if cause == "none":
        composes = any(each.rule == "composes" for each in advice)
        return "wrong" if first is not None else "right" if composes or solved else "cannot tell"
    if first is None:
        return "wrong" if solved or (everywhere and cause not in ("hard values", "hard pairs")) else "cannot tell"
    if cause == "hard values" and first == "collect-pairs-or-values":
        return "cannot tell"
    return "right" if first in RIGHT[cause] else "wrong"
