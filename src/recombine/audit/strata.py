"""Scores of trained and held-out combinations by training coverage. Observational."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy import sparse, special
from scipy.sparse.linalg import lsmr

from recombine.audit.atoms import atoms_of
from recombine.audit.cells import Cells, Chosen
from recombine.audit.coverage import unseen_parts
from recombine.audit.crossed.design import design_among
from recombine.audit.findings import GapFinding, Stratum
from recombine.stats.intervals import LEVEL, Interval, mean_and_error, t_bounds

TRAINED = "trained"
MET = "all pairs met"
UNMET = "some pairs unmet"
UNSEEN = "a part unseen"
STRATA = (TRAINED, MET, UNMET, UNSEEN)
"""From best to least covered by training. The last three are held out."""


def stratum_of(cells: Cells) -> tuple[str, ...] | None:
    """The one of `STRATA` that each combination is in; None if the training combinations are unknown."""
    if cells.trained is None:
        return None
    atoms = atoms_of(cells)
    unmet = atoms.lacking(~cells.trained, atoms.interactions(cells.trained, 2)) > 0
    unseen = np.isin(cells.constituents, unseen_parts(cells)).any(1)
    chosen = np.select([cells.trained, unseen, unmet], [0, 3, 2], default=1)
    return tuple(STRATA[index] for index in chosen.tolist())


def mean_score(values: Float[np.ndarray, " n"], *, binary: bool) -> Interval | None:
    """The mean over combinations with its t interval; None for a single combination.

    The interval of a binary score stays between 0 and 1. If all combinations have the mean 0 or 1, the t interval would
    have no width; then it is Wilson's, with a combination as the unit.
    """
    count = len(values)
    if count < 2:
        return None
    mean, error = (float(value) for value in mean_and_error(values))
    if binary and error == 0 and mean in (0.0, 1.0):
        z = float(special.ndtri((1 + LEVEL) / 2))
        reach = z**2 / (count + z**2)
        low, high = (1 - reach, 1.0) if mean else (0.0, reach)
        return Interval(mean, low, high, count, LEVEL, "Wilson over combinations")
    low, high = (float(end) for end in t_bounds(mean, error, count))
    if binary:
        low, high = max(0.0, low), min(1.0, high)
    return Interval(mean, low, high, count, LEVEL, "t over combinations")


def raw_gap(first: Float[np.ndarray, " n"], second: Float[np.ndarray, " m"], *, binary: bool) -> Interval | None:
    """The difference of two means over combinations by Welch's t; None if either side is a single combination.

    If one side does not vary (every combination is solved), the ends combine the intervals of both sides by the root of
    their summed squares.
    """
    left, right = mean_score(first, binary=binary), mean_score(second, binary=binary)
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
    values, binary = cells.mean[:, score], cells.binary[score]
    groups = {name: scored & (np.array(names) == name) for name in STRATA}
    strata = tuple(
        Stratum(name, int(held.sum()), int(cells.count[held].sum()), mean_score(values[held], binary=binary))
        for name, held in groups.items()
        if held.any()
    )
    trained, held_out = scored & cells.trained, scored & ~cells.trained
    if not trained.any() or not held_out.any():
        missing = "held-out" if trained.any() else "trained"
        return GapFinding(strata, None, None, f"No {missing} combination was evaluated, so there is no gap.")
    raw = raw_gap(values[trained], values[held_out], binary=binary)
    adjusted, why = adjusted_gap(cells, score, trained, held_out)
    note = "The training combinations were not chosen at random, so this difference is observational."
    if raw is None:
        note = "One side has a single combination, which allows no interval. " + note
    return GapFinding(strata, raw, adjusted, f"{why} {note}".strip())


def between(cells: Cells, score: int, first: str, second: str) -> tuple[Interval | None, bool]:
    """The first stratum minus the second, and whether constituents are held constant (they are if possible)."""
    names = stratum_of(cells)
    if names is None:
        return None, False
    scored = cells.evaluated & np.isfinite(cells.mean[:, score])
    left, right = (scored & (np.array(names) == name) for name in (first, second))
    if not left.any() or not right.any():
        return None, False
    if (adjusted := adjusted_gap(cells, score, left, right)[0]) is not None:
        return adjusted, True
    values = cells.mean[:, score]
    return raw_gap(values[left], values[right], binary=cells.binary[score]), False


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
    indicators = design_among(cells, chosen)
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
        return None, "The gap cannot be adjusted: the values of a combination determine whether it is held out."
    freedom = len(values) - rank - 1
    if freedom < LEAST_FREEDOM:
        return None, "The gap cannot be adjusted: there are too few combinations for the number of values."
    gap = float(side @ value) / total
    error = _error(side, value - gap * side, leverage, total, freedom)
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * error
    method = "parts held constant, HC3" if leverage is not None else "parts held constant, HC1"
    return Interval(gap, gap - half, gap + half, len(values), LEVEL, method), ""


def _factored(design: sparse.csr_matrix) -> tuple[Float[np.ndarray, "n rank"], Float[np.ndarray, " n"], int]:
    """An orthonormal basis of the design's columns, the leverages and the rank, from the small matrix Z'Z."""
    values, vectors = np.linalg.eigh((design.T @ design).toarray())
    kept = values > 1e-9 * max(float(values[-1]), 1.0)
    basis = design @ (vectors[:, kept] / np.sqrt(values[kept]))
    return basis, (basis**2).sum(1), int(kept.sum())


Column = Float[np.ndarray, " n"]


def _error(side: Column, residual: Column, leverage: Column | None, total: float, freedom: int) -> float:
    """The standard error of the gap, from residuals corrected for their leverage."""
    if leverage is None:
        scale = len(side) / freedom
        return math.sqrt(scale * float(((side * residual) ** 2).sum())) / total
    own = leverage + side**2 / total
    free = own < FULL
    return math.sqrt(float(((side[free] * residual[free] / (1 - own[free])) ** 2).sum())) / total
