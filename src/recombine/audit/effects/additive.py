"""The additive fit of mean scores by least squares, and what further columns explain beyond it."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from jaxtyping import Float, Int
from scipy import linalg, sparse

from recombine.audit.crossed.design import Design

TOLERANCE = 1e-9
"""Directions with less than this share of the largest variance count as none."""
EXACT = 200
"""Normal matrices up to this size are decomposed into eigenvectors."""
RIDGE = 1e-8

Vector = Float[np.ndarray, " n"]


@dataclasses.dataclass(frozen=True)
class Explained:
    """What some columns explain beyond others."""

    effect: Float[np.ndarray, " column"]
    """The mean residual of each column's combinations, before these columns are fitted."""
    weight: Float[np.ndarray, " column"]
    """The variance of that mean, in units of the variance of one combination."""
    squares: float
    """The extra sum of squares."""
    rank: int
    direction: Float[np.ndarray, " n"] | None
    """For one degree of freedom: the weights of the scores whose sum is the coefficient of the last column."""


class Additive:
    """The additive fit of one vector of mean scores, each combination counting once."""

    def __init__(self, design: Design, values: Vector) -> None:
        self.design, self.values = design, values
        ones = sparse.csr_array(np.ones((len(values), 1)))
        self.matrix = sparse.csr_array(sparse.hstack([design.matrix, ones]))
        self.gram: Float[np.ndarray, "m m"] = (self.matrix.T @ self.matrix).toarray()

    @functools.cached_property
    def residual(self) -> Vector:
        """The scores without the additive fit."""
        return self._without(self._everything, self.values)

    @functools.cached_property
    def rank(self) -> int:
        """The rank of the additive design."""
        return int(np.linalg.matrix_rank(self.gram, hermitian=True, tol=TOLERANCE * float(self.gram.max())))

    @property
    def _everything(self) -> Int[np.ndarray, " m"]:
        return np.arange(self.gram.shape[0])

    @functools.cached_property
    def inverse(self) -> Float[np.ndarray, "m m"]:
        """The pseudoinverse of the normal matrix."""
        return _pseudoinverse(self.gram)

    def _without(self, columns: Int[np.ndarray, " k"], values: Vector) -> Vector:
        """A vector without what some columns of the additive design explain."""
        chosen = self.matrix[:, columns]
        inverse = (
            self.inverse if len(columns) == self.gram.shape[0] else _pseudoinverse(self.gram[np.ix_(columns, columns)])
        )
        return values - chosen @ (inverse @ (chosen.T @ values))

    def slot(self, place: int) -> Explained:
        """What the values of a slot explain beyond all other slots."""
        own = self.design.of(place)
        others = np.setdiff1d(self._everything, own)
        residual = self._without(others, self.values)
        inverse = _pseudoinverse(self.gram[np.ix_(others, others)])
        across = self.gram[np.ix_(own, others)]
        inner = self.gram[np.ix_(own, own)] - across @ inverse @ across.T
        return self._explained(self.matrix[:, own], inner, residual, others)

    def pair(self, cells: sparse.csr_array) -> Explained:
        """What the indicator columns of pairs of values explain beyond all values."""
        across = (cells.T @ self.matrix).toarray()
        uses = np.asarray(cells.sum(0)).ravel()
        inner = np.diag(uses) - across @ self.inverse @ across.T
        return self._explained(cells, inner, self.residual, self._everything)

    def _explained(
        self,
        columns: sparse.csr_array,
        inner: Float[np.ndarray, "k k"],
        residual: Vector,
        others: Int[np.ndarray, " m"],
    ) -> Explained:
        uses = np.asarray(columns.sum(0)).ravel()
        total = columns.T @ residual
        squares, rank = _squares(inner, total)
        direction = None
        if rank == 1:
            alone = columns[:, [-1]].toarray().ravel().astype(float)
            own = self._without(others, alone)
            direction = own / float(own @ own)
        return Explained(
            total / np.maximum(uses, 1),
            np.maximum(np.diag(inner), 0.0) / np.maximum(uses, 1) ** 2,
            squares,
            rank,
            direction,
        )


def _squares(inner: Float[np.ndarray, "k k"], total: Float[np.ndarray, " k"]) -> tuple[float, int]:
    """The sum of squares of a projection, and the rank of its normal matrix."""
    largest = max(float(np.diag(inner).max(initial=0.0)), 1.0)
    if len(inner) <= EXACT:
        values, vectors = np.linalg.eigh(inner)
        kept = values > TOLERANCE * largest
        along = vectors[:, kept].T @ total
        return float((along**2 / values[kept]).sum()), int(kept.sum())
    # A little ridge stands for the zero eigenvalues: a decomposition into triangles is ten times faster.
    ridge = RIDGE * largest
    lower = linalg.cholesky(inner + ridge * np.eye(len(inner)), lower=True)
    half = linalg.solve_triangular(lower, total, lower=True)
    inverse = linalg.solve_triangular(lower, np.eye(len(inner)), lower=True)
    return float(half @ half), round(len(inner) - ridge * float((inverse**2).sum()))


def _pseudoinverse(matrix: Float[np.ndarray, "k k"]) -> Float[np.ndarray, "k k"]:
    values, vectors = np.linalg.eigh(matrix)
    kept = values > TOLERANCE * max(float(values[-1]), 1.0)
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
