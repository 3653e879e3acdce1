"""The table of effects: each factor, each trend and each pair of factors, in points of the score."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from recombine.audit.cells import NOTHING, Cells
from recombine.audit.crossed.design import Design, design_of
from recombine.audit.effects.additive import Additive, Explained
from recombine.audit.effects.sizes import Noise, contrast_size, spread_size
from recombine.audit.findings import Deviation, EffectsFinding, FactorEffect
from recombine.audit.strata import adjusted_slope
from recombine.stats import Interval, benjamini_hochberg

MOST_COLUMNS = 800
"""The most values of all factors together; with more there is no table of effects."""
MOST_CELLS = 1_600
"""A pair of factors with more pairs of values than this is left out."""
FEW_RESIDUAL = 10
"""With fewer residual degrees of freedom, the noise is that of rows within combinations."""
RATE = 0.1
"""The false-discovery rate at which pairs of values are named."""
SHOWN = 5
CONTRAST, SPREAD = "t over combinations", "noncentral F over combinations"


def effects_finding(cells: Cells, score: int) -> EffectsFinding:
    """How much each factor and each pair of factors changes the score, in points of the score.

    Least squares over combinations with equal weights. A factor is held against all other factors, a pair of factors
    against all factors. Noise is the residual variance; where too few degrees of freedom are left, the variance of
    rows within combinations. One degree of freedom is a difference with its t interval. Several are the standard
    deviation of the effects, with the interval of the noncentral F distribution.
    """
    design = design_of(cells, score)
    if len(design.cells) < 3:
        return EffectsFinding(note="There are too few combinations for a table of factors.")
    if len(design.slot) > MOST_COLUMNS:
        return EffectsFinding(note=f"The factors have more than {MOST_COLUMNS:,} values: see the values instead.")
    if not all(design.single) or len(design.slots) < 2:
        return EffectsFinding(note="Sets and single factors have no table of factors: see the values instead.")
    values = cells.upright(score)[design.cells]
    if np.ptp(values) == 0:
        return EffectsFinding(note="The score does not vary.")
    table = _Table(cells, score, design, values)
    factors = [table.factor(place) for place in range(len(design.slots))]
    trends = [table.trend(factor.name) for factor in cells.factors if factor.positions and factor.kind == "value"]
    pairs = table.pairs()
    return EffectsFinding(tuple(each for each in (*factors, *trends, *pairs) if each is not None), table.note(pairs))


class _Table:
    """The effects of one score."""

    def __init__(self, cells: Cells, score: int, design: Design, values: Float[np.ndarray, " n"]) -> None:
        self.cells, self.score, self.design, self.values = cells, score, design, values
        self.fit = Additive(design, values)
        self.rows = _row_variances(cells, score, design)
        """The variance of each combination's mean that comes from its rows, and its degrees of freedom."""

    def factor(self, place: int) -> FactorEffect | None:
        """One factor against all others."""
        found, name, own = self.fit.slot(place), self.design.slots[place], self.design.of(place)
        sized = self._sized(found, 0.0, 0)
        if sized is None:
            return None
        contrast = ""
        if found.rank == 1 and len(own) == 2:
            first, last = (self._value(column) for column in own.tolist())
            contrast = f"{last} minus {first}"
        return FactorEffect(name, "factor", found.rank, contrast, *sized)

    def trend(self, name: str) -> FactorEffect | None:
        """The change from the lowest to the highest position of an ordered factor, with all other factors held constant."""
        factor = next(factor for factor in self.cells.factors if factor.name == name)
        interval, p = adjusted_slope(self.cells, self.score, name, np.array(factor.positions))
        if interval is None:
            return None
        return FactorEffect(name, "trend", 1, f"{factor.values[0]} to {factor.values[-1]}", interval, p)

    def pairs(self) -> list[FactorEffect]:
        """Every pair of factors, the most certain interaction first."""
        effects, named = [], []
        for first, second in itertools.combinations(range(len(self.design.slots)), 2):
            columns, members = self._columns(first, second)
            cells = len(members)
            if cells > MOST_CELLS:
                continue
            found = self.fit.pair(columns)
            sized = self._sized(found, found.squares, found.rank)
            if sized is None:
                continue
            contrast = ""
            if found.rank == 1 and cells == 4:
                a, b = (self._value(column) for column in self.design.of(first)[:2].tolist())
                c, d = (self._value(column) for column in self.design.of(second)[:2].tolist())
                contrast = f"{d} minus {c}, with {b} more than with {a}"
            name = f"{self.design.slots[first]} x {self.design.slots[second]}"
            effects.append(FactorEffect(name, "pair", found.rank, contrast, *sized))
            named.append(
                self._deviations(found, members, twice=2 in (len(self.design.of(first)), len(self.design.of(second))))
            )
        if not effects:
            return []
        q = np.split(
            benjamini_hochberg(np.concatenate([p for p, _ in named])), np.cumsum([len(p) for p, _ in named])[:-1]
        )
        effects = [_with_names(effect, rates, each) for effect, rates, (_, each) in zip(effects, q, named, strict=True)]
        return sorted(effects, key=lambda effect: (effect.p, -abs(effect.size.estimate)))

    def note(self, pairs: list[FactorEffect]) -> str:
        """Why there is no pair of factors."""
        if pairs:
            return ""
        if self.rows is None:
            return (
                "Unknown which factors interact: each combination has one row, and nothing beyond the additive fit is "
                "left to estimate the noise. Collect at least 2 rows per combination."
            )
        return "Unknown which factors interact: no two factors vary independently, or they have too many values."

    def _value(self, column: int) -> str:
        return self.design.labels[column].split("=", 1)[1]

    def _columns(self, first: int, second: int) -> tuple[sparse.csr_array, Int[np.ndarray, "pair 2"]]:
        """The indicators of the pairs of values of two slots, and their columns in the design."""
        slot = np.append(self.design.slot, NOTHING)[self.design.rows]
        cell, left = np.nonzero(slot == first)
        other, right = np.nonzero(slot == second)
        one, two = np.full((2, len(slot)), NOTHING)
        one[cell], two[other] = self.design.rows[cell, left], self.design.rows[other, right]
        both = np.flatnonzero((one != NOTHING) & (two != NOTHING))
        codes, number = np.unique(one[both] * len(self.design.slot) + two[both], return_inverse=True)
        members = np.stack(np.divmod(codes, len(self.design.slot)), axis=1)
        shape = (len(slot), len(members))
        return sparse.csr_array((np.ones(len(both)), (both, number.reshape(-1))), shape=shape), members

    def _noise(self, squares: float, rank: int) -> tuple[Noise, bool] | None:
        """The variance of a combination's mean, and whether it is the residual of the fit."""
        freedom = len(self.values) - self.fit.rank - rank
        if freedom >= FEW_RESIDUAL:
            variance = max(float((self.fit.residual**2).sum()) - squares, 0.0) / freedom
            return (variance, float(freedom)), True
        return None if self.rows is None else ((float(self.rows[0].mean()), self.rows[1]), False)

    def _sized(self, found: Explained, squares: float, rank: int) -> tuple[Interval, float] | None:
        noise = self._noise(squares, rank)
        if noise is None or not found.rank:
            return None
        (variance, freedom), residual = noise
        if found.direction is None:
            return spread_size(found.squares, found.rank, (variance, freedom), len(self.values), SPREAD)
        each = np.full(len(self.values), variance) if residual or self.rows is None else self.rows[0]
        own = float((found.direction**2 * each).sum())
        return contrast_size(float(found.direction @ self.values), own, freedom, len(self.values), CONTRAST)

    def _deviations(
        self, found: Explained, members: Int[np.ndarray, "pair 2"], *, twice: bool
    ) -> tuple[np.ndarray, list[Deviation]]:
        """How far each pair of values is from the additive fit, with p values. Of mirrored pairs only the worse is kept."""
        noise = self._noise(found.squares, found.rank)
        assert noise is not None
        variance, freedom = noise[0]
        p, deviations = [], []
        for index, (one, two) in enumerate(members.tolist()):
            effect = float(found.effect[index])
            if found.weight[index] <= 0 or (twice and effect >= 0):
                continue
            size, chance = contrast_size(effect, variance * found.weight[index], freedom, len(self.values), CONTRAST)
            p.append(chance)
            name = f"{self.design.labels[one]} + {self.design.labels[two]}"
            deviations.append(Deviation(name, size, math.nan, "identity"))
        return np.array(p), deviations


def _with_names(effect: FactorEffect, rates: np.ndarray, deviations: list[Deviation]) -> FactorEffect:
    """The effect with the pairs of values that stand out, the largest first."""
    clear = [
        dataclasses.replace(deviation, q=float(q)) for deviation, q in zip(deviations, rates, strict=True) if q <= RATE
    ]
    clear.sort(key=lambda deviation: (-abs(deviation.effect.estimate), deviation.name))
    worse = tuple(each for each in clear if each.effect.estimate < 0)[:SHOWN]
    better = tuple(each for each in clear if each.effect.estimate > 0)[:SHOWN]
    return dataclasses.replace(effect, worse=worse, better=better)


def _row_variances(cells: Cells, score: int, design: Design) -> tuple[Float[np.ndarray, " n"], float] | None:
    """The variance of the means by rows within combinations; None for real scores with single rows."""
    count = cells.count[design.cells].astype(float)
    if cells.binary[score]:
        low, high = cells.scale(score).ends
        # Half a success and half a failure more, so that a combination that always succeeds is not certain.
        share = (cells.shares(score)[design.cells] * count + 0.5) / (count + 1)
        return share * (1 - share) / count * (high - low) ** 2, math.inf
    freedom = float(count.sum() - len(count))
    if not freedom:
        return None
    return np.nansum(cells.spread[design.cells, score]) / freedom / count, freedom
