"""Which parts and which pairs stand out, shrunken, at a false-discovery rate."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse, special
from scipy.sparse import linalg

from recombine.audit.crossed import Crossed, Effects, Scores
from recombine.audit.crossed_bootstrap import Tested
from recombine.audit.crossed_design import Pairs, weighted
from recombine.stats.intervals import LEVEL

RATE = 0.1
"""The false-discovery rate at which parts and pairs are named."""

LIGHT = 1e-6
"""What a combination counts that is set aside."""

TOGETHER = 256
"""Pairs whose share of the design is solved for at once."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """How parts or pairs stand against what the others say of them."""

    effect: Float[np.ndarray, " n"]
    """Shrunken, on the scale of the link."""
    spread: Float[np.ndarray, " n"]
    """The standard deviation of the effect, given the data."""
    harder: Float[np.ndarray, " n"]
    """The false-discovery rate at which it would be named as harder."""
    easier: Float[np.ndarray, " n"]

    def ends(self, index: int) -> tuple[float, float]:
        """The interval of one effect."""
        half = float(special.ndtri((1 + LEVEL) / 2) * self.spread[index])
        return float(self.effect[index]) - half, float(self.effect[index]) + half


def parts_standing(effects: Effects) -> Standing:
    """Effects of parts, as the mixed model shrinks them. A part that is named has the sign that it is named for.

    The chance that the sign is wrong is Phi(-|effect| / spread); the false-discovery rate of the k surest parts is the mean of
    theirs (local false sign rates).
    """
    effect, spread = effects.parts[0], np.sqrt(effects.part_spread[0])
    sure = effect / spread
    return Standing(effect, spread, _running(special.ndtr(sure)), _running(special.ndtr(-sure)))


def pairs_standing(
    model: Crossed, scores: Scores, tested: Tested, pairs: Pairs, variance: float, seed: int = 0
) -> Standing:
    """How pairs deviate from what their parts add up to.

    z is a pair's score test in the additive fit: the sum of its combinations' pulls over its standard deviation once
    parts are taken out. The false-discovery rate at z is the mean number of pairs so far out in simulated tables without
    interactions, over the number so far out here, each tail for itself. The effect is the mode under a normal
    prior with the given variance between pairs. A few pairs that fail drag their parts down, and all other pairs of these then
    seem easy: so what the stronger tail names is set aside, parts are fitted again without, and the other tail is judged by that.
    """
    first = _Tails.of(model, scores, tested.null, tested.simulated, pairs, variance)
    strength = {side: float((first.z[q <= RATE] ** 2).sum()) for side, q in first.rates.items()}
    lead = max(strength, key=lambda side: strength[side])
    named = first.rates[lead] <= RATE
    if not named.any():
        return Standing(first.effect, first.spread, first.rates["harder"], first.rates["easier"])
    aside = weighted(pairs.inside[np.nonzero(named)[0]].T.tocsr(), np.ones((int(named.sum()), 1)))[:, 0] > 0
    lighter = np.where(aside, LIGHT, 1.0) * scores.count
    without = dataclasses.replace(scores, count=lighter)
    null = model.fit(without, 0.0)
    eta = np.repeat(null.additive, len(tested.simulated.mean), axis=0)
    drawn = model.scatter.draw(np.random.default_rng(seed), eta, scores.count, float(scores.noise[0]))
    second = _Tails.of(model, without, null, Scores(drawn, lighter, tested.simulated.noise), pairs, variance)
    rates = {side: np.where(named, 1.0, q) for side, q in second.rates.items()} | {lead: first.rates[lead]}
    effect, spread = (
        np.where(named, first.effect, second.effect),
        np.where(named, first.spread, second.spread),
    )
    return Standing(effect, spread, rates["harder"], rates["easier"])


@dataclasses.dataclass(frozen=True)
class _Tails:
    """Pairs against one additive fit."""

    z: Float[np.ndarray, " pair"]
    effect: Float[np.ndarray, " pair"]
    spread: Float[np.ndarray, " pair"]
    rates: dict[str, Float[np.ndarray, " pair"]]

    @staticmethod
    def of(
        model: Crossed, scores: Scores, null: Effects, simulated: Scores, pairs: Pairs, variance: float
    ) -> _Tails:
        left = _retained(model, null, pairs)
        again = model.fit(simulated, 0.0)
        z, drawn = (
            weighted(pairs.inside, fit.score.T)
            / np.sqrt(np.maximum(left[:, None] * weighted(pairs.inside, fit.weight.T), 1e-12))
            for fit in (null, again)
        )
        effect, spread = _modes(model, scores, null, pairs, left, variance)
        rates = {"harder": _discovered(-z[:, 0], -drawn), "easier": _discovered(z[:, 0], drawn)}
        return _Tails(z[:, 0], effect, spread, rates)


def pair_variance(model: Crossed, tested: Tested, pairs: Pairs) -> float:
    """The variance between pairs by moments: E z^2 = 1 + variance x information."""
    null = tested.null
    information = _retained(model, null, pairs) * weighted(pairs.inside, null.weight.T)[:, 0]
    pull = weighted(pairs.inside, null.score.T)[:, 0]
    return max(0.0, float((pull**2 - information).sum() / max(float((information**2).sum()), 1e-300)))


def _retained(model: Crossed, null: Effects, pairs: Pairs) -> Float[np.ndarray, " pair"]:
    """The share of a pair's information that its parts do not take."""
    weight = null.weight[0]
    if pairs.inside.nnz == len(pairs.members):  # Each pair is one combination.
        return np.maximum(1 - weighted(pairs.inside, (weight * null.leverage[0])[:, None])[:, 0], 1e-6)
    ones = sparse.csr_array(np.ones((len(weight), 1)))
    design = sparse.csr_array(sparse.hstack([ones, model.matrix]))
    penalty = np.append(0.0, 1 / null.part_variance[0][model.design.place])
    normal = design.T @ sparse.diags_array(weight) @ design + sparse.diags_array(penalty)
    factored = linalg.splu(sparse.csc_matrix(normal))
    columns = sparse.csr_array(pairs.inside @ sparse.diags_array(weight) @ design)
    total = weighted(pairs.inside, weight[:, None])[:, 0]
    taken = np.empty(len(total))
    for start in range(0, len(total), TOGETHER):
        right = columns[start : start + TOGETHER].toarray()
        taken[start : start + TOGETHER] = (factored.solve(right.T).T * right).sum(1)
    return np.maximum(1 - taken / np.maximum(total, 1e-300), 1e-6)


def _modes(
    model: Crossed,
    scores: Scores,
    null: Effects,
    pairs: Pairs,
    left: Float[np.ndarray, " pair"],
    variance: float,
) -> tuple[Float[np.ndarray, " pair"], Float[np.ndarray, " pair"]]:
    """The most likely effect of each pair and its standard deviation; parts give way by the share they take."""
    member = pairs.inside.tocoo()
    pair, cell = member.coords
    number, prior = len(pairs.members), 1 / max(variance, 1e-9)
    effect, precision = np.zeros(number), np.full(number, prior)
    for _ in range(30):
        eta = null.additive[0][cell] + left[pair] * effect[pair]
        mean, slope, scatter = model.scatter.slope_and_variance(eta, scores.noise)
        per = scores.count[cell] * slope / scatter
        pull = (
            np.bincount(pair, weights=per * (scores.mean[0][cell] - mean), minlength=number) - prior * effect
        )
        precision = left * np.bincount(pair, weights=per * slope, minlength=number) + prior
        effect = effect + np.clip(pull / precision, -1.0, 1.0)
    return effect, 1 / np.sqrt(precision)


def _running(chance: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The mean chance of all that are at least as sure."""
    order = np.argsort(chance, kind="stable")
    mean = np.empty_like(chance)
    mean[order] = np.cumsum(chance[order]) / np.arange(1, len(chance) + 1)
    return mean


def _discovered(
    z: Float[np.ndarray, " n"], simulated: Float[np.ndarray, "n draw"]
) -> Float[np.ndarray, " n"]:
    """False-discovery rates for large z, against simulated ones."""
    if not len(z):
        return z
    order = np.argsort(-z, kind="stable")
    pooled = np.sort(simulated, axis=None)
    above = len(pooled) - np.searchsorted(pooled, z[order], side="left")
    rank: Int[np.ndarray, " n"] = np.arange(1, len(z) + 1)
    rate = (above + 1) / simulated.shape[1] / rank
    q = np.empty_like(z)
    q[order] = np.minimum(np.minimum.accumulate(rate[::-1])[::-1], 1.0)
    return q
