"""Which values and which pairs stand out, with shrunken effects and false-discovery rates."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse, special
from scipy.sparse import linalg

from recombine.audit.crossed.bootstrap import Tested
from recombine.audit.crossed.design import Pairs, weighted
from recombine.audit.crossed.model import Crossed, Effects, Scores
from recombine.stats.intervals import LEVEL

RATE = 0.1
"""The false-discovery rate at which values and pairs are named."""

LIGHT = 1e-6
"""The weight of a combination that is set aside."""

PerPair = Float[np.ndarray, " pair"]
TOGETHER = 256
"""Pairs that are solved for at once."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """How values or pairs deviate from what the additive model predicts."""

    effect: Float[np.ndarray, " n"]
    """Shrunken effects, on the scale of the link."""
    spread: Float[np.ndarray, " n"]
    """The posterior standard deviation of the effect."""
    harder: Float[np.ndarray, " n"]
    """The false-discovery rate at which each is named as harder."""
    easier: Float[np.ndarray, " n"]

    def ends(self, index: int) -> tuple[float, float]:
        """The interval of one effect."""
        effect, half = float(self.effect[index]), float(special.ndtri((1 + LEVEL) / 2) * self.spread[index])
        return effect - half, effect + half


def parts_standing(effects: Effects) -> Standing:
    """Effects of values, as the mixed model shrinks them.

    The probability of a wrong sign is Phi(-|effect| / spread). The false-discovery rate of the k surest values is the
    mean of their probabilities (local false sign rates).
    """
    effect, spread = effects.parts[0], np.sqrt(effects.part_spread[0])
    sure = effect / spread
    return Standing(effect, spread, _running(special.ndtr(sure)), _running(special.ndtr(-sure)))


def pairs_standing(
    model: Crossed, scores: Scores, tested: Tested, pairs: Pairs, variance: float, seed: int = 0
) -> Standing:
    """How pairs deviate from the sum of their values' effects.

    z is a pair's score test in the additive fit: the sum of its combinations' score functions over its standard
    deviation once values are fitted. The false-discovery rate at z is the mean number of pairs at least as extreme in
    simulated tables without interactions, divided by the number here, for each tail separately. The effect is the mode
    under a normal prior with the given variance between pairs. A few failing pairs lower the effects of their values,
    and all other pairs of these values then seem easy. So the pairs that the stronger tail names are set aside, values
    are fitted again without them, and the other tail is judged by that fit.
    """
    z, effect, spread, rates = _tails(model, scores, tested.null, tested.simulated, pairs, variance)
    lead = max(rates, key=lambda side: float((z[rates[side] <= RATE] ** 2).sum()))
    named = rates[lead] <= RATE
    if not named.any():
        return Standing(effect, spread, **rates)
    aside = weighted(pairs.inside[np.nonzero(named)[0]].T.tocsr(), np.ones((int(named.sum()), 1)))[:, 0] > 0
    lighter = np.where(aside, LIGHT, 1.0) * scores.count
    without = dataclasses.replace(scores, count=lighter)
    null = model.fit(without, 0.0)
    eta = np.repeat(null.additive, len(tested.simulated.mean), axis=0)
    drawn = model.scatter.draw(np.random.default_rng(seed), eta, scores.count, float(scores.noise[0]))
    simulated = Scores(drawn, lighter, tested.simulated.noise)
    _, *others, other_rates = _tails(model, without, null, simulated, pairs, variance)
    rates = {side: np.where(named, 1.0, q) for side, q in other_rates.items()} | {lead: rates[lead]}
    return Standing(*np.where(named, (effect, spread), others), **rates)


def _tails(
    model: Crossed, scores: Scores, null: Effects, simulated: Scores, pairs: Pairs, variance: float
) -> tuple[PerPair, PerPair, PerPair, dict[str, PerPair]]:
    """Pairs compared with one additive fit: z, effects, their spread, and false-discovery rates by tail."""
    retained = _retained(model, null, pairs)
    again = model.fit(simulated, 0.0)
    z, drawn = (
        weighted(pairs.inside, fit.score.T)
        / np.sqrt(np.maximum(retained[:, None] * weighted(pairs.inside, fit.weight.T), 1e-12))
        for fit in (null, again)
    )
    effect, spread = _modes(model, scores, null, pairs, retained, variance)
    rates = {"harder": _discovered(-z[:, 0], -drawn), "easier": _discovered(z[:, 0], drawn)}
    return z[:, 0], effect, spread, rates


def pair_variance(model: Crossed, tested: Tested, pairs: Pairs) -> float:
    """The variance between pairs by the method of moments: E z^2 = 1 + variance x information."""
    null = tested.null
    information = _retained(model, null, pairs) * weighted(pairs.inside, null.weight.T)[:, 0]
    pull = weighted(pairs.inside, null.score.T)[:, 0]
    return max(0.0, float((pull**2 - information).sum() / max(float((information**2).sum()), 1e-300)))


def _retained(model: Crossed, null: Effects, pairs: Pairs) -> PerPair:
    """The share of a pair's information that its values do not explain."""
    weight = null.weight[0]
    if pairs.inside.nnz == len(pairs.members):  # Each pair is one combination.
        return np.maximum(1 - weighted(pairs.inside, (weight * null.leverage[0])[:, None])[:, 0], 1e-6)
    ones = sparse.csr_array(np.ones((len(weight), 1)))
    design = sparse.csr_array(sparse.hstack([ones, model.matrix]))
    penalty = np.append(0.0, 1 / null.part_variance[0][model.design.slot])
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
    model: Crossed, scores: Scores, null: Effects, pairs: Pairs, retained: PerPair, variance: float
) -> tuple[PerPair, PerPair]:
    """The posterior mode of each pair's effect and its standard deviation; the values' effects adjust by their share."""
    pair, cell = pairs.inside.tocoo().coords
    number, prior = len(pairs.members), 1 / max(variance, 1e-9)
    effect, precision = np.zeros(number), np.full(number, prior)
    for _ in range(30):
        eta = null.additive[0][cell] + retained[pair] * effect[pair]
        mean, slope, scatter = model.scatter.slope_and_variance(eta, scores.noise)
        per = scores.count[cell] * slope / scatter
        pull = np.bincount(pair, weights=per * (scores.mean[0][cell] - mean), minlength=number) - prior * effect
        precision = retained * np.bincount(pair, weights=per * slope, minlength=number) + prior
        effect = effect + np.clip(pull / precision, -1.0, 1.0)
    return effect, 1 / np.sqrt(precision)


def _running(chance: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The mean probability of all that are at least as sure."""
    order = np.argsort(chance, kind="stable")
    mean = np.empty_like(chance)
    mean[order] = np.cumsum(chance[order]) / np.arange(1, len(chance) + 1)
    return mean


def _discovered(z: Float[np.ndarray, " n"], simulated: Float[np.ndarray, "n draw"]) -> Float[np.ndarray, " n"]:
    """False-discovery rates of large z, from simulated ones."""
    order = np.argsort(-z, kind="stable")
    pooled = np.sort(simulated, axis=None)
    above = len(pooled) - np.searchsorted(pooled, z[order], side="left")
    rank: Int[np.ndarray, " n"] = np.arange(1, len(z) + 1)
    rate = (above + 1) / simulated.shape[1] / rank
    q = np.empty_like(z)
    q[order] = np.minimum(np.minimum.accumulate(rate[::-1])[::-1], 1.0)
    return q
