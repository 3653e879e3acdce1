"""Scores of trained and held-out combinations by training coverage. Observational."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from scipy import sparse, special
from scipy.sparse.linalg import lsmr

from recombine.audit.atoms import atoms_of
from recombine.audit.cells import NOTHING, Cells, Chosen, remembered
from recombine.audit.coverage import unseen_parts
from recombine.audit.crossed.design import Design, design_among, design_of
from recombine.audit.findings import GapFinding, Stratum
from recombine.stats.intervals import LEVEL, Interval, mean_and_error, t_bounds

TRAINED = "trained"
MET = "all pairs met"
UNMET = "some pairs unmet"
UNSEEN = "a part unseen"
STRATA = (TRAINED, MET, UNMET, UNSEEN)
"""From best to least covered by training. The last three are held out."""


@remembered
def stratum_of(cells: Cells) -> tuple[str, ...] | None:
    """The one of `STRATA` that each combination is in; None if the training combinations are unknown."""
    if cells.trained is None:
        return None
    atoms = atoms_of(cells)
    unmet = atoms.lacking(~cells.trained, atoms.interactions(cells.trained, 2)) > 0
    unseen = np.isin(cells.constituents, unseen_parts(cells)).any(1)
    chosen = np.select([cells.trained, unseen, unmet], [0, 3, 2], default=1)
    return tuple(STRATA[index] for index in chosen.tolist())


Ends = tuple[float, float]
"""The lowest and the highest possible score."""


def mean_score(values: Float[np.ndarray, " n"], *, binary: bool, ends: Ends = (0.0, 1.0)) -> Interval | None:
    """The mean over combinations with its t interval; None for a single combination.

    The interval of a binary score stays between its two values. If all combinations have the same of them, the t
    interval would have no width; then it is Wilson's, with a combination as the unit.
    """
    count = len(values)
    if count < 2:
        return None
    mean, error = (float(value) for value in mean_and_error(values))
    if binary and error == 0 and mean in ends:
        z = float(special.ndtri((1 + LEVEL) / 2))
        reach = (ends[1] - ends[0]) * z**2 / (count + z**2)
        low, high = (ends[1] - reach, ends[1]) if mean == ends[1] else (ends[0], ends[0] + reach)
        return Interval(mean, low, high, count, LEVEL, "Wilson over combinations")
    low, high = (float(end) for end in t_bounds(mean, error, count))
    if binary:
        low, high = max(ends[0], low), min(ends[1], high)
    return Interval(mean, low, high, count, LEVEL, "t over combinations")


def raw_gap(
    first: Float[np.ndarray, " n"], second: Float[np.ndarray, " m"], *, binary: bool, ends: Ends = (0.0, 1.0)
) -> Interval | None:
    """The difference of two means over combinations by Welch's t; None if either side is a single combination.

    If one side does not vary (every combination is solved), the ends combine the intervals of both sides by the root of
    their summed squares.
    """
    left, right = (mean_score(side, binary=binary, ends=ends) for side in (first, second))
    if left is None or right is None:
        return None
    gap, count = left.estimate - right.estimate, len(first) + len(second)
    if "Wilson" in left.method + right.method:
        low = gap - math.hypot(left.estimate - left.low, right.high - right.estimate)
        high = gap + math.hypot(left.high - left.estimate, right.estimate - right.low)
        return Interval(gap, low, high, count, LEVEL, "root of summed squares of both intervals")
    square = [float(np.var(side, ddof=1)) / len(side) for side in (first, second)]
    total = sum(square)
    if total == 0:
        return Interval(gap, gap, gap, count, LEVEL, "Welch t")
    freedom = total**2 / sum(s**2 / (len(side) - 1) for s, side in zip(square, (first, second), strict=True))
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(total)
    return Interval(gap, gap - half, gap + half, count, LEVEL, "Welch t")


def gap_finding(cells: Cells, score: int) -> GapFinding | None:
    """Trained against held-out combinations: by stratum, raw, and with constituents held constant.

    None if the training combinations are unknown.
    """
    names = stratum_of(cells)
    if names is None or cells.trained is None:
        return None
    scored = cells.evaluated & np.isfinite(cells.mean[:, score])
    values = cells.mean[:, score]
    form: dict[str, Any] = {"binary": cells.binary[score], "ends": cells.scale(score).ends}
    groups = {name: scored & (np.array(names) == name) for name in STRATA}
    strata = tuple(
        Stratum(name, int(held.sum()), int(cells.count[held].sum()), mean_score(values[held], **form))
        for name, held in groups.items()
        if held.any()
    )
    trained, held_out = scored & cells.trained, scored & ~cells.trained
    if not trained.any() or not held_out.any():
        missing = "held-out" if trained.any() else "trained"
        return GapFinding(strata, None, None, f"No {missing} combination was evaluated, so there is no gap.")
    raw = raw_gap(values[trained], values[held_out], **form)
    adjusted, why = adjusted_gap(cells, score, trained, held_out)
    note = "The training combinations were not chosen at random, so this difference is observational."
    if raw is None:
        note = "One side has a single combination, which allows no interval. " + note
    return GapFinding(strata, raw, adjusted, f"{why} {note}".strip())


@dataclasses.dataclass(frozen=True)
class Difference:
    """How much worse one stratum scores than another: positive where the second is worse."""

    raw: Interval | None
    """The difference of the means."""
    adjusted: Interval | None
    """The same with constituents held constant; None if the table cannot adjust it."""

    @property
    def best(self) -> Interval | None:
        """The adjusted difference if there is one, otherwise the raw one."""
        return self.raw if self.adjusted is None else self.adjusted


def between(cells: Cells, score: int, first: str, second: str) -> Difference:
    """How much worse the second stratum scores than the first."""
    names = stratum_of(cells)
    if names is None:
        return Difference(None, None)
    scored = cells.evaluated & np.isfinite(cells.mean[:, score])
    left, right = (scored & (np.array(names) == name) for name in (first, second))
    return between_groups(cells, score, left, right)


def between_groups(cells: Cells, score: int, first: Chosen, second: Chosen, *, adjust: bool = True) -> Difference:
    """How much worse the second group of combinations scores than the first."""
    if not first.any() or not second.any():
        return Difference(None, None)
    values, scale = cells.mean[:, score], cells.scale(score)
    raw = raw_gap(values[first], values[second], binary=cells.binary[score], ends=scale.ends)
    adjusted = adjusted_gap(cells, score, first, second)[0] if adjust else None
    return Difference(*(upright(interval, scale.sign) for interval in (raw, adjusted)))


def upright(interval: Interval | None, sign: float) -> Interval | None:
    """An interval with another sign."""
    if interval is None or sign > 0:
        return interval
    return dataclasses.replace(interval, estimate=-interval.estimate, low=-interval.high, high=-interval.low)


Column = Float[np.ndarray, " n"]
DENSE = 1500
"""Up to this many columns the leverage of each combination is exact (HC3); beyond, one factor corrects all (HC1)."""

LEAST_FREEDOM = 4
"""The fewest residual degrees of freedom for an estimate of the error."""

LEAST_LEFT = 0.01
"""If the constituents explain all but this share of the group membership, the two are confounded."""

FULL = 1 - 1e-8
"""A combination with this leverage is fitted exactly, so it carries no information about the error."""


def adjusted_gap(cells: Cells, score: int, first: Chosen, second: Chosen) -> tuple[Interval | None, str]:
    """The mean of `first` minus that of `second`, with an effect for each value in each slot.

    Least squares over combinations with equal weights. The interval is robust to unequal variances (HC3; HC1 with very
    many values) and uses the t distribution. A value that occurs in only one of the groups carries no information.
    If the difference cannot be adjusted, it is None, and the text says why.
    """
    chosen = first | second
    values = cells.mean[chosen, score]
    group = first[chosen].astype(float)
    partial = _partial(cells, design_among(cells, chosen), group, values)
    if partial is None:
        return None, "The gap cannot be adjusted: there are too few combinations for the number of values."
    if partial == CONFOUNDED:
        return None, "The gap cannot be adjusted: the values of a combination determine whether it is held out."
    gap, error, freedom, exact = partial
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * error
    method = "parts held constant, HC3" if exact else "parts held constant, HC1"
    return Interval(gap, gap - half, gap + half, len(values), LEVEL, method), ""


def adjusted_slope(
    cells: Cells, score: int, slot: str, positions: Float[np.ndarray, " value"]
) -> tuple[Interval | None, float]:
    """The change of the score from the first to the last position of a factor, all other values held constant.

    Above 0 is better. Also returns the p value of no trend.
    """
    design = design_of(cells, score)
    place = design.slots.index(slot)
    offset = sum(len(f.values) for f in cells.factors[: [f.name for f in cells.factors].index(slot)])
    scaled = (positions - positions[0]) / (positions[-1] - positions[0]) if len(positions) > 1 else positions
    own = np.append(design.slot == place, False)[design.rows]
    held = np.where(own, np.append(design.constituent, 0)[design.rows] - offset, -1).max(1)
    if (held < 0).any() or len(positions) < 2:
        return None, 1.0
    others = dataclasses.replace(design, rows=np.where(own, NOTHING, design.rows))
    partial = _partial(cells, others, scaled[held], cells.upright(score)[design.cells])
    if partial is None or partial == CONFOUNDED:
        return None, 1.0
    slope, error, freedom, exact = partial
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * error
    p = 2 * float(special.stdtr(freedom, -abs(slope) / error)) if error > 0 else float(slope == 0)
    method = "least squares, HC3" if exact else "least squares, HC1"
    return Interval(slope, slope - half, slope + half, len(held), LEVEL, method), p


CONFOUNDED: Literal["confounded"] = "confounded"


def _partial(
    cells: Cells, indicators: Design, group: Column, values: Column
) -> tuple[float, float, int, bool] | Literal["confounded"] | None:
    """The coefficient of a column beside the values of all slots: estimate, standard error, degrees of freedom, and whether
    the leverages are exact. None if there are too few combinations."""
    design = sparse.csr_matrix(sparse.hstack([indicators.matrix, np.ones((len(values), 1))]))
    columns = len(indicators.slot) + 1
    if columns <= DENSE:
        basis, leverage, rank = _factored(design)
        residuals = [vector - basis @ (basis.T @ vector) for vector in (group, values)]
    else:
        fits = [lsmr(design, vector, atol=1e-10, btol=1e-10, maxiter=2000)[0] for vector in (group, values)]
        residuals = [vector - design @ fit for vector, fit in zip((group, values), fits, strict=True)]
        # An upper bound of the rank: the columns of each slot sum to the constant, except for sets.
        sets = {factor.name for factor in cells.factors if factor.kind == "set"}
        leverage, rank = None, columns - len({*cells.slots} - sets)
    side, value = residuals
    spread = float(((group - group.mean()) ** 2).sum())
    total = float(side @ side)
    if total <= LEAST_LEFT * spread:
        return CONFOUNDED
    freedom = len(values) - rank - 1
    if freedom < LEAST_FREEDOM:
        return None
    slope = float(side @ value) / total
    return slope, _error(side, value - slope * side, leverage, total, freedom), freedom, leverage is not None


def _factored(design: sparse.csr_matrix) -> tuple[Float[np.ndarray, "n rank"], Float[np.ndarray, " n"], int]:
    """An orthonormal basis of the design's columns, the leverages and the rank, from the small matrix Z'Z."""
    values, vectors = np.linalg.eigh((design.T @ design).toarray())
    kept = values > 1e-9 * max(float(values[-1]), 1.0)
    basis = design @ (vectors[:, kept] / np.sqrt(values[kept]))
    return basis, (basis**2).sum(1), int(kept.sum())


def _error(side: Column, residual: Column, leverage: Column | None, total: float, freedom: int) -> float:
    """The standard error of the gap, from residuals corrected for their leverage."""
    if leverage is None:
        scale = len(side) / freedom
        return math.sqrt(scale * float(((side * residual) ** 2).sum())) / total
    own = leverage + side**2 / total
    free = own < FULL
    return math.sqrt(float(((side[free] * residual[free] / (1 - own[free])) ** 2).sum())) / total
