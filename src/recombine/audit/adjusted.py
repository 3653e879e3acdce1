"""A difference between two groups of combinations with their parts held still."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float
from scipy import sparse, special
from scipy.sparse.linalg import lsmr

from recombine.audit.atoms import atoms_of
from recombine.audit.cells import NOTHING, Cells
from recombine.stats.intervals import LEVEL, Interval

DENSE = 1500
"""Up to so many parts the leverage of each combination is exact; beyond that one factor corrects them all."""

LEAST_FREEDOM = 4
"""Fewer residual degrees of freedom than this say nothing of the error."""

LEAST_LEFT = 0.01
"""If parts explain more than all but this share of which group a combination is in, the two are confounded."""

FULL = 1 - 1e-8
"""A combination with this leverage is fitted whatever its score is: it says nothing."""


def adjusted_gap(
    cells: Cells, score: int, first: Bool[np.ndarray, " cell"], second: Bool[np.ndarray, " cell"]
) -> tuple[Interval | None, str]:
    """First less second, with a level for each part in each place (in a set: for each part). Else None, and why.

    Least squares over combinations, each counting once. The interval is robust to errors that differ from
    combination to combination (HC3; with very many parts HC1), with t of the residual degrees of freedom.
    A part that stands on one side only says nothing of the difference.
    """
    chosen = first | second
    values = cells.mean[chosen, score]
    group = first[chosen].astype(float)
    design, columns = _design(cells, chosen)
    if columns <= DENSE:
        basis, leverage, rank = _factored(design)
        left = [one - basis @ (basis.T @ one) for one in (group, values)]
    else:
        left = [_residual(design, one) for one in (group, values)]
        leverage, rank = None, _most_rank(cells, columns)
    side, value = left
    spread = float(((group - group.mean()) ** 2).sum())
    total = float(side @ side)
    if total <= LEAST_LEFT * spread:
        return None, "The gap cannot be adjusted: whether a combination is held out follows from its parts."
    freedom = len(values) - rank - 1
    if freedom < LEAST_FREEDOM:
        return None, "The gap cannot be adjusted: there are too few combinations for so many parts."
    gap = float(side @ value) / total
    error = _error(side, value - gap * side, leverage, total, freedom)
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * error
    method = "parts held still, HC3" if leverage is not None else "parts held still, HC1"
    return Interval(gap, gap - half, gap + half, len(values), LEVEL, method), ""


def _design(cells: Cells, chosen: Bool[np.ndarray, " cell"]) -> tuple[sparse.csr_matrix, int]:
    """A column for each part in each place that occurs, and a constant; and how many columns these are."""
    rows = atoms_of(cells).rows[chosen]
    number, slot = np.nonzero(rows != NOTHING)
    _, column = np.unique(rows[number, slot], return_inverse=True)
    width = int(column.max(initial=-1)) + 1
    made = sparse.coo_matrix((np.ones(len(number)), (number, column)), shape=(len(rows), width))
    return sparse.csr_matrix(sparse.hstack([made, np.ones((len(rows), 1))])), width + 1


def _factored(
    design: sparse.csr_matrix,
) -> tuple[Float[np.ndarray, "n rank"], Float[np.ndarray, " n"], int]:
    """An orthogonal basis of the design's columns, the leverages, and the rank; by way of the small matrix Z'Z."""
    values, vectors = np.linalg.eigh((design.T @ design).toarray())
    kept = values > 1e-9 * max(float(values[-1]), 1.0)
    basis = design @ (vectors[:, kept] / np.sqrt(values[kept]))
    return basis, (basis**2).sum(1), int(kept.sum())


def _residual(design: sparse.csr_matrix, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    found = lsmr(design, values, atol=1e-10, btol=1e-10, maxiter=2000)[0]
    return values - design @ found


def _most_rank(cells: Cells, columns: int) -> int:
    """No more than this: the columns of each place add up to the constant, except for sets."""
    sets = {factor.name for factor in cells.factors if factor.kind == "set"}
    return columns - len({place for place in cells.place if place not in sets})


def _error(
    side: Float[np.ndarray, " n"],
    residual: Float[np.ndarray, " n"],
    leverage: Float[np.ndarray, " n"] | None,
    total: float,
    freedom: int,
) -> float:
    """The standard error of the gap, from residuals that are corrected for having been fitted."""
    if leverage is None:
        scale = len(side) / freedom
        return math.sqrt(scale * float(((side * residual) ** 2).sum())) / total
    own = leverage + side**2 / total
    free = own < FULL
    return math.sqrt(float(((side[free] * residual[free] / (1 - own[free])) ** 2).sum())) / total
