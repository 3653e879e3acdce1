"""Crossed random effects for the scores of combinations: one effect per value and slot, and one per combination."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from recombine.audit.crossed.design import Design, weighted
from recombine.audit.crossed.links import Batch, Scatter

FLOOR = 1e-7
"""Variances below this are zero (scores are scaled, so that 1 is large)."""

MOST_ROUNDS = 60
CONVERGED = 1e-3
"""Iterations end when no variance changes by more than this share, or stays below `NOTICEABLE`."""

NOTICEABLE = 1e-5
MEMORY = 200_000_000
"""Bytes for the matrices of tables that are fitted together."""


@dataclasses.dataclass(frozen=True)
class Scores:
    """One or many tables of scores over one design (simulated tables are fitted together)."""

    mean: Batch
    count: Float[np.ndarray, " cell"]
    noise: Float[np.ndarray, " batch"]
    """The variance of a row around the mean of its combination; unused for binary scores."""

    def some(self, chosen: np.ndarray | slice) -> Scores:
        """A selection of the tables."""
        return Scores(self.mean[chosen], self.count, self.noise[chosen])


@dataclasses.dataclass(frozen=True)
class Effects:
    """Fitted effects of each table."""

    parts: Float[np.ndarray, "batch column"]
    part_spread: Float[np.ndarray, "batch column"]
    """The posterior variance of each value's effect."""
    combination: Batch
    part_variance: Float[np.ndarray, "batch place"]
    combination_variance: Float[np.ndarray, " batch"]
    additive: Batch
    """The sum of the intercept and the effects of the values."""
    score: Batch
    """The score function of each combination: the slope of its log likelihood."""
    weight: Batch
    leverage: Batch
    """The posterior variance of `additive`."""

    def some(self, chosen: np.ndarray) -> Effects:
        """The effects of a selection of the tables."""
        return Effects(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))


class Crossed:
    """Fits one design under one link, for many tables at once.

    Penalised quasi-likelihood: expected scores are linearised at the current estimate (Fisher weights), effects solve
    the mixed-model equations, and each variance becomes the sum of squares of its effects over their degrees of
    freedom (Schall 1991). For normal scores with the identity link this is restricted maximum likelihood. The effects of
    combinations and of the largest slot are eliminated first, so the inverted matrix is as large as the other slots.
    """

    def __init__(self, design: Design, scatter: Scatter, progress: Callable[[int], None] | None = None) -> None:
        self.design, self.scatter = design, scatter
        self.progress = progress
        """Called with the number of tables that were fitted since the last call."""
        self.alone: Int[np.ndarray, " a"] = np.nonzero(design.largest())[0]
        self.rest: Int[np.ndarray, " b"] = np.nonzero(~design.largest())[0]
        self.sizes = a, b = len(self.alone), len(self.rest) + 1
        self.matrix = design.matrix
        self.first = sparse.csr_array(self.matrix[:, self.alone])
        ones = sparse.csr_array(np.ones((len(design.rows), 1)))
        self.second = sparse.csr_array(sparse.hstack([ones, self.matrix[:, self.rest]]))
        self.across, self.within = _products(self.first, self.second, a, b), _products(self.second, self.second, b, b)
        self.turned = {name: getattr(self, name).T.tocsr() for name in ("first", "second", "across", "within")}
        self.together = max(1, int(MEMORY / (8 * (4 * a * b + 4 * b * b + 20 * len(design.rows) + 1))))

    def fit(self, scores: Scores, combination: float | None = None) -> Effects:
        """The effects of each table. The combination variance is estimated, unless it is given."""
        starts = range(0, len(scores.mean), self.together)
        return _joined([self._fit(scores.some(slice(at, at + self.together)), combination) for at in starts])

    def _fit(self, scores: Scores, given: float | None) -> Effects:
        tables = len(scores.mean)
        overall = np.average(scores.mean, axis=1, weights=scores.count)
        eta = np.repeat(self.scatter.effect(overall)[:, None], scores.mean.shape[1], axis=1)
        variance = np.full((tables, len(self.design.slots)), 0.5 * self.scatter.step)
        own = np.full(tables, 0.25 * self.scatter.step if given is None else given)
        pending, numbers, done = np.arange(tables), [], []
        for last in range(MOST_ROUNDS, 0, -1):
            effects = self._iterate(scores, eta, variance, own)
            step = effects.additive + effects.combination - eta
            eta = eta + np.clip(step, -self.scatter.step, self.scatter.step)
            fresh, estimated = self._variances(effects)
            fresh_own = estimated if given is None else own
            changes = np.column_stack([_change(variance, fresh), _change(own, fresh_own)])
            settled = (changes.max(1) < CONVERGED) & (np.abs(step).max(1) < 10 * CONVERGED) | (last == 1)
            if settled.any():
                # Converged tables are removed, so that a result does not depend on the other tables.
                done.append(effects.some(settled))
                numbers.append(pending[settled])
                if self.progress is not None:
                    self.progress(int(settled.sum()))
                left = ~settled
                pending, scores, eta = pending[left], scores.some(left), eta[left]
                fresh, fresh_own = fresh[left], fresh_own[left]
            if not len(pending):
                break
            variance, own = fresh, fresh_own
        return _joined(done).some(np.argsort(np.concatenate(numbers)))

    def _iterate(
        self, scores: Scores, eta: Batch, variance: Float[np.ndarray, "batch place"], own: Float[np.ndarray, " batch"]
    ) -> Effects:
        """The effects that solve the mixed-model equations, linearised at eta."""
        mean, slope, scatter = self.scatter.slope_and_variance(eta, scores.noise[:, None])
        per = scores.count * slope / scatter
        pull, weight = per * (scores.mean - mean), per * slope
        spread = 1 + own[:, None] * weight
        inside, target = weight / spread, (weight * eta + pull) / spread
        first, second, first_spread, second_spread, leverage = self._solve(inside, target, variance)
        additive = weighted(self.first, first.T).T + weighted(self.second, second.T).T
        score = target - inside * additive  # The projection of the working scores: P z.
        order = np.argsort(np.append(self.alone, self.rest))
        parts = np.hstack([first, second[:, 1:]])[:, order]
        part_spread = np.hstack([first_spread, second_spread[:, 1:]])[:, order]
        effect = own[:, None] * score
        return Effects(parts, part_spread, effect, variance, own, additive, score, inside, leverage)

    def _solve(self, weight: Batch, target: Batch, variance: Float[np.ndarray, "batch place"]) -> list[np.ndarray]:
        """The effects of the largest slot and of the rest, their variances, and the leverages."""
        a, b = self.sizes
        place = self.design.slot
        heavy = np.ascontiguousarray(weight.T)
        diagonal = weighted(self.turned["first"], heavy).T + 1 / variance[:, place[self.alone]]
        cross = weighted(self.across, heavy).T.reshape(len(weight), a, b)
        block = weighted(self.within, heavy).T.reshape(len(weight), b, b)
        block[:, range(1, b), range(1, b)] += 1 / variance[:, place[self.rest]]
        share = cross / diagonal[:, :, None]
        schur = np.linalg.inv(block - np.swapaxes(cross, 1, 2) @ share)
        right = np.ascontiguousarray(target.T)
        right_first, right_second = (weighted(self.turned["first"], right).T, weighted(self.turned["second"], right).T)
        reduced = right_second - (right_first[:, None, :] @ share)[:, 0]
        second = (schur @ reduced[:, :, None])[:, :, 0]
        first = right_first / diagonal - (share @ second[:, :, None])[:, :, 0]
        joint = share @ schur
        first_spread = 1 / diagonal + (joint * share).sum(2)
        leverage = (
            weighted(self.first, first_spread.T).T
            - 2 * weighted(self.turned["across"], joint.reshape(len(weight), -1).T).T
            + weighted(self.turned["within"], schur.reshape(len(weight), -1).T).T
        )
        return [first, second, first_spread, np.diagonal(schur, axis1=1, axis2=2), leverage]

    def _variances(self, effects: Effects) -> tuple[Float[np.ndarray, "batch place"], Float[np.ndarray, " batch"]]:
        """The next estimate of each variance: squared effects over their degrees of freedom."""
        fresh = np.empty_like(effects.part_variance)
        for place in range(fresh.shape[1]):
            columns = self.design.of(place)
            old = effects.part_variance[:, place]
            freedom = len(columns) - effects.part_spread[:, columns].sum(1) / old
            fresh[:, place] = (effects.parts[:, columns] ** 2).sum(1) / np.maximum(freedom, 1e-12)
        information = (effects.weight * (1 - effects.weight * effects.leverage)).sum(1)
        own = effects.combination_variance * (effects.score**2).sum(1) / np.maximum(information, 1e-300)
        return np.clip(fresh, FLOOR, 1e4), np.clip(own, FLOOR, 1e4)


def _products(left: sparse.csr_array, right: sparse.csr_array, a: int, b: int) -> sparse.csr_array:
    """A matrix that maps weights of combinations to the flattened weighted product of two designs."""
    from_left, from_right = np.diff(left.indptr), np.diff(right.indptr)
    shape = (a * b, len(from_left))
    if 0 in shape:
        return sparse.csr_array(shape)
    times = from_left * from_right
    cell = np.repeat(np.arange(len(times)), times)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times)
    width = from_right[cell]
    first = left.indices[left.indptr[cell] + within // width]
    second = right.indices[right.indptr[cell] + within % width]
    return sparse.csr_array((np.ones(len(cell)), (first.astype(np.int64) * b + second, cell)), shape=shape)


def _change(old: Float[np.ndarray, "*n"], new: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """The relative change of a variance."""
    small = (old < NOTICEABLE) & (new < NOTICEABLE)
    return np.where(small, 0.0, np.abs(np.log(np.maximum(new, FLOOR) / np.maximum(old, FLOOR))))


def _joined(parts: list[Effects]) -> Effects:
    names = [field.name for field in dataclasses.fields(Effects)]
    return Effects(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
