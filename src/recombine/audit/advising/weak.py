"""Values and pairs of values that score worse than others although training covers them."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from recombine.audit.cells import NOTHING, Cells, Chosen
from recombine.audit.crossed.design import Design, design_among
from recombine.audit.effects.additive import Additive
from recombine.audit.strata import MET, TRAINED, stratum_of
from recombine.stats import benjamini_hochberg

FEWEST = 3
"""A value in fewer combinations than this is not tested."""
RATE = 0.02
"""The false-discovery rate at which values are named."""
WEAK = 0.15
"""A value is named if it loses at least this share of the scale."""
SPREAD = 0.5
"""The loss must be spread over the partners of a value: their median loses at least this share of the mean."""
MOST_COLUMNS = 800
"""Tables with more values are tested on raw scores."""


@dataclasses.dataclass(frozen=True)
class WeakValue:
    """A value that scores worse than the others of its factor."""

    name: str
    loss: float
    """How much worse, in units of the score, with the other values held constant."""
    mean: float
    """The mean score of its combinations, as it is written."""
    trained_mean: float
    """The same over trained combinations; NaN if there are none."""
    others: float
    """The mean score of all other combinations."""
    combinations: int
    share: float
    """Its share of all scored combinations."""


@dataclasses.dataclass(frozen=True)
class WeakPair:
    """A pair of values that scores worse than its values predict, also where it was trained on."""

    name: str
    loss: float
    """How much worse than the additive fit, summed over all combinations and divided by their number."""


def weak_values(cells: Cells, score: int, span: float, pairs: Sequence[str] = ()) -> tuple[WeakValue, ...]:
    """Values that score clearly worse than the others, the largest loss over all combinations first.

    Only combinations count whose values and pairs all occur in training: there, nothing is missing. One-sided t tests
    with the other values and the stratum held constant, at a false-discovery rate of .02. The loss must be at least .15
    of the scale, spread over the value's partners (otherwise it belongs to pairs), and half as large in trained
    combinations alone. Combinations with one of the hard `pairs` are left out, unless three of those share a value.
    """
    chosen = cells.evaluated & np.isfinite(cells.mean[:, score])
    names = stratum_of(cells)
    covered = chosen if names is None else chosen & np.isin(np.array(names), (TRAINED, MET))
    covered = covered if int(covered.sum()) >= 2 * FEWEST else chosen
    design = design_among(cells, covered)
    design = design.kept(~_holds_any(design, _apart(design, pairs)))
    if len(design.cells) < 2 * FEWEST or not len(design.slot):
        return ()
    values = cells.upright(score)[design.cells].copy()
    trained = np.ones(len(values), dtype=bool) if cells.trained is None else cells.trained[design.cells]
    for side in (trained, ~trained):
        if side.any():
            values[side] -= values[side].mean()
    held_in = [_held(design, place) for place in range(len(design.slots))]
    tested, p, losses = [], [], []
    for place, partial in enumerate(_partials(design, values)):
        partners = [held for other, held in enumerate(held_in) if other != place and design.single[other]]
        for column in design.of(place).tolist():
            inside: Bool[np.ndarray, " n"] = (design.rows == column).any(1)
            if FEWEST <= int(inside.sum()) <= len(inside) - FEWEST:
                loss, chance = _worse(partial[~inside], partial[inside])
                held = [_median_loss(partial, inside, partners)]
                if int((inside & trained).sum()) >= 2 and (~inside & trained).any():
                    held.append(float(partial[~inside & trained].mean() - partial[inside & trained].mean()))
                tested.append(column)
                p.append(chance if min(held) >= SPREAD * loss else 1.0)
                losses.append(loss)
    if not tested:
        return ()
    q = benjamini_hochberg(np.array(p))
    weak = [
        _described(cells, score, chosen, design, column, loss)
        for column, loss, rate in zip(tested, losses, q.tolist(), strict=True)
        if rate <= RATE and loss >= WEAK * span
    ]
    return tuple(sorted(weak, key=lambda value: (-value.loss * value.share, value.name)))


def _apart(design: Design, pairs: Sequence[str]) -> list[list[int]]:
    """The columns of hard pairs, without those whose value is in three of them: then the value may be hard."""
    number = {label: index for index, label in enumerate(design.labels)}
    named = [members(name, number) for name in pairs]
    uses = collections.Counter(column for pair in named for column in pair)
    return [pair for pair in named if max(uses[column] for column in pair) < FEWEST and NOTHING not in pair]


def _holds_any(design: Design, pairs: list[list[int]]) -> Bool[np.ndarray, " n"]:
    holds = np.zeros(len(design.rows), dtype=bool)
    for pair in pairs:
        holds |= np.logical_and.reduce([(design.rows == column).any(1) for column in pair])
    return holds


def _partials(design: Design, values: Float[np.ndarray, " n"]) -> list[Float[np.ndarray, " n"]]:
    """For each slot, the scores without the effects of all other slots."""
    if len(design.slot) > MOST_COLUMNS or len(design.slots) < 2:
        return [values] * len(design.slots)
    fit = Additive(design, values)
    coefficients = fit.inverse @ (fit.matrix.T @ values)
    slots = np.append(design.slot, NOTHING)
    return [
        fit.residual + fit.matrix @ np.where(slots == place, coefficients, 0.0) for place in range(len(design.slots))
    ]


def _worse(others: Float[np.ndarray, " m"], own: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """How much worse the second sample is, and the one-sided p value."""
    loss = float(others.mean() - own.mean())
    # The spread of all scores, so that a few equal scores are not certain.
    error = float(np.std(np.concatenate([others, own]), ddof=1)) * np.sqrt(1 / len(own) + 1 / len(others))
    return loss, float(special.stdtr(len(own), -loss / error)) if error > 0 else float(loss <= 0)


def _held(design: Design, place: int) -> Int[np.ndarray, " n"]:
    """The value of each combination in a slot, counted from the slot's first; `NOTHING` in an empty slot."""
    columns = design.of(place)
    number = np.full(len(design.slot) + 1, NOTHING)
    number[columns] = np.arange(len(columns))
    return number[design.rows].max(1, initial=NOTHING)


def _median_loss(
    partial: Float[np.ndarray, " n"], inside: Bool[np.ndarray, " n"], partners: Sequence[Int[np.ndarray, " n"]]
) -> float:
    """The least, over the other slots, of the median loss of a value over its partners there."""
    other, own = float(partial[~inside].mean()), partial[inside]
    medians = []
    for held in partners:
        number = held[inside] - NOTHING  # An empty slot is a partner, too.
        count = np.bincount(number)
        used = count > 0
        if int(used.sum()) >= 2 * FEWEST - 1:
            medians.append(other - float(np.median(np.bincount(number, weights=own)[used] / count[used])))
    return min(medians, default=np.inf)


def _described(cells: Cells, score: int, chosen: Chosen, design: Design, column: int, loss: float) -> WeakValue:
    part, place = int(design.constituent[column]), design.slots[int(design.slot[column])]
    slots = [index for index, name in enumerate(cells.slots) if name == place]
    holds = chosen & (cells.constituents[:, slots] == part).any(1)
    mean = cells.mean[:, score]
    trained = holds if cells.trained is None else holds & cells.trained
    return WeakValue(
        design.labels[column],
        loss,
        float(mean[holds].mean()),
        float(mean[trained].mean()) if trained.any() else float("nan"),
        float(mean[chosen & ~holds].mean()),
        int(holds.sum()),
        float(holds.sum() / chosen.sum()),
    )


def weak_pairs(cells: Cells, score: int, names: Sequence[str], least: float) -> tuple[WeakPair, ...]:
    """The named pairs that training covers and that score worse than the additive fit there, by at least `least`.

    A pair that was never trained on is missing from training, which is another matter.
    """
    if not names:
        return ()
    chosen = cells.evaluated & np.isfinite(cells.mean[:, score])
    design = design_among(cells, chosen)
    if len(design.slot) > MOST_COLUMNS:
        return ()
    fit = Additive(design, cells.upright(score)[design.cells])
    trained = np.ones(len(design.cells), dtype=bool) if cells.trained is None else cells.trained[design.cells]
    number: dict[str, int] = {label: index for index, label in enumerate(design.labels)}
    pairs = []
    for name in names:
        pair = members(name, number)
        holds = np.logical_and.reduce([(design.rows == member).any(1) for member in pair])
        if not (holds & trained).any() or -float(fit.residual[holds & trained].mean()) < least:
            continue
        pairs.append(WeakPair(name, float(np.maximum(-fit.residual[holds], 0).sum() / len(holds))))
    return tuple(pairs)


def members(name: str, number: dict[str, int]) -> list[int]:
    """The numbers of the two values of a named pair. A value may itself contain the sign between them."""
    pieces = name.split(" + ")
    halves = ((" + ".join(pieces[:cut]), " + ".join(pieces[cut:])) for cut in range(1, len(pieces)))
    return next(([number[a], number[b]] for a, b in halves if a in number and b in number), [NOTHING])
