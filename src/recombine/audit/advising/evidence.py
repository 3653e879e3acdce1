"""The input of the advice rules: the findings of one score, and a few numbers that follow from them.

All scores here have the sign that makes higher ones better, and differences are positive where the second side is worse.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from recombine.audit.advising.weak import WeakPair, WeakValue, members, weak_pairs, weak_values
from recombine.audit.atoms import atoms_of
from recombine.audit.cells import NOTHING, Cells, Chosen
from recombine.audit.findings import GapFinding, PartsFinding, Stratum, SupportFinding
from recombine.audit.scales import Scale
from recombine.audit.space import planned
from recombine.audit.strata import MET, TRAINED, UNMET, Difference, between, between_groups, stratum_of
from recombine.stats import Interval

LOW = 0.5
"""On a scale from the worst score (or chance) to the best, a score below this is low."""
HIGH = 0.75
"""On that scale, a score above this is high."""
MARGIN = 0.05
"""Differences smaller than this share of the scale do not matter."""
CLEAR = 0.25
"""Differences larger than this share of the scale are large."""
MOSTLY = 0.8
"""A value is tied to unmet pairs if this share of its combinations has one."""
RANGE = (0.05, 0.95)
"""Without a stated scale, these quantiles of the combinations stand for the worst and the best score."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """The findings of one score."""

    cells: Cells
    score: int
    support: SupportFinding | None
    gap: GapFinding | None
    parts: PartsFinding
    overall: Interval | None
    seed: int = 0
    quick: bool = False
    """Whether parts or combination was left out."""

    @functools.cached_property
    def scored(self) -> Chosen:
        """Which combinations have this score."""
        return self.cells.evaluated & np.isfinite(self.cells.mean[:, self.score])

    @property
    def scale(self) -> Scale:
        """What the values of the score mean."""
        return self.cells.scale(self.score)

    @property
    def absolute(self) -> bool:
        """Whether the worst and the best score are known. Otherwise high and low are relative to the table."""
        return self.scale.known

    @functools.cached_property
    def constant(self) -> bool:
        """Whether all combinations have the same score."""
        values = self.cells.mean[self.scored, self.score]
        return len(values) > 0 and float(np.ptp(values)) == 0

    @functools.cached_property
    def ends(self) -> tuple[float, float]:
        """The worst score (or chance) and the best one; without a scale, quantiles of the combinations."""
        sign, scale = self.scale.sign, self.scale
        if scale.known:
            return sign * (scale.worst if scale.chance is None else scale.chance), sign * scale.best
        values = self.cells.upright(self.score)[self.scored]
        if not len(values):
            return 0.0, 1.0
        low, high = (float(end) for end in np.quantile(values, RANGE))
        return (low, high) if low < high else (float(values.min()), float(values.max()) or 1.0)

    @functools.cached_property
    def span(self) -> float:
        """The length of the scale in units of the score."""
        if self.scale.known:
            return self.scale.ends[1] - self.scale.ends[0]
        return self.ends[1] - self.ends[0] or 1.0

    @property
    def margin(self) -> float:
        """`MARGIN` in units of the score."""
        return MARGIN * self.span

    def level(self, score: float) -> float:
        """A score as it is written, on a scale from the worst (0) to the best (1)."""
        worst, best = self.ends
        return (self.scale.sign * score - worst) / ((best - worst) or 1.0)

    def levels(self, interval: Interval | None) -> tuple[float, float, float] | None:
        """An interval of a score as levels: estimate, lower end, upper end."""
        if interval is None:
            return None
        low, high = sorted((self.level(interval.low), self.level(interval.high)))
        return self.level(interval.estimate), low, high

    def stratum(self, name: str) -> Stratum | None:
        """A stratum by name; None if it has no combinations."""
        strata = () if self.gap is None else self.gap.strata
        return next((stratum for stratum in strata if stratum.name == name), None)

    def mean(self, name: str) -> Interval | None:
        """The mean score of a stratum; None if it is unknown."""
        stratum = self.stratum(name)
        return None if stratum is None else stratum.score

    def share(self, *names: str) -> float:
        """The share of the scored combinations that is in some strata."""
        number = sum(stratum.combinations for name in names if (stratum := self.stratum(name)) is not None)
        return number / max(int(self.scored.sum()), 1)

    @functools.cached_property
    def met_gap(self) -> Difference:
        """How much worse held out with all pairs met scores than trained."""
        return between(self.cells, self.score, TRAINED, MET)

    @functools.cached_property
    def unmet_gap(self) -> tuple[str, Difference]:
        """How much worse unmet pairs score: than held out with all pairs met, or than trained if there are none."""
        first = TRAINED if self.stratum(MET) is None else MET
        return first, between(self.cells, self.score, first, UNMET)

    @functools.cached_property
    def held_out_gap(self) -> Difference:
        """How much worse held out scores than trained."""
        trained = self.cells.trained
        if self.gap is None or trained is None:
            return Difference(None, None)
        return between_groups(self.cells, self.score, self.scored & trained, self.scored & ~trained)

    @functools.cached_property
    def unmet_shares(self) -> Float[np.ndarray, " constituent"]:
        """The share of each value's scored combinations that has unmet pairs."""
        names, cells = stratum_of(self.cells), self.cells
        uses, inside = np.zeros((2, cells.width))
        if names is not None:
            unmet = self.scored & (np.array(names) == UNMET)
            for slot in range(cells.constituents.shape[1]):
                parts = cells.constituents[:, slot]
                full = self.scored & (parts != NOTHING)
                uses += np.bincount(parts[full], minlength=cells.width)
                inside += np.bincount(parts[full & unmet], minlength=cells.width)
        return inside / np.maximum(uses, 1)

    @functools.cached_property
    def tied(self) -> Bool[np.ndarray, " constituent"]:
        """Values that mostly occur with unmet pairs, and that are not known to score well without them."""
        cells, names = self.cells, stratum_of(self.cells)
        tied = self.unmet_shares >= MOSTLY
        if names is None or not tied.any():
            return tied
        values, strata = cells.upright(self.score), np.array(names)
        covered = self.scored & np.isin(strata, (TRAINED, MET))
        usual = values[self.scored & (strata == self.unmet_gap[0])]
        for part in np.flatnonzero(tied).tolist():
            own = values[covered & (cells.constituents == part).any(1)]
            tied[part] = len(own) < 2 or not len(usual) or own.mean() < usual.mean() - self.margin
        return tied

    @functools.cached_property
    def tied_gap(self) -> Interval | None:
        """How much worse the unmet pairs of tied values score, raw: these values hardly occur without unmet pairs."""
        return self._unmet_part(tied=True)

    @functools.cached_property
    def untied_gap(self) -> Interval | None:
        """The same of all other unmet pairs."""
        return self._unmet_part(tied=False)

    def _unmet_part(self, *, tied: bool) -> Interval | None:
        names = stratum_of(self.cells)
        if names is None:
            return None
        named = np.append(self.tied, False)  # `NOTHING` is the last.
        holds = named[self.cells.constituents].any(1) == tied
        unmet = self.scored & (np.array(names) == UNMET) & holds
        first = self.scored & (np.array(names) == self.unmet_gap[0])
        return between_groups(self.cells, self.score, first, unmet, adjust=False).raw

    @property
    def tied_values(self) -> list[str]:
        """Values that mostly occur with unmet pairs; the two that do so most, if there are none."""
        tied = np.flatnonzero(self.tied)
        tied = tied if len(tied) else np.argsort(-self.unmet_shares, kind="stable")[:2]
        return [self.cells.labels[part] for part in tied.tolist()]

    def collect(self, number: int, *, strength: int = 2) -> tuple[tuple[str, ...], ...]:
        """The combinations that would add most to the coverage of training; none if data cannot be planned."""
        kept = self.__dict__.setdefault("_collected", {})
        if (number, strength) not in kept:
            space = planned(self.cells)
            kept[number, strength] = () if space is None else space.cover(number, strength=strength, seed=self.seed)
        return kept[number, strength]

    def holding(self, names: Sequence[str], number: int) -> tuple[tuple[str, ...], ...]:
        """Scored combinations with one of these values or pairs of values: trained ones first, then the lowest score.

        Args:
            names: Values (`colour=red`) or pairs (`colour=red + object=dog`), which take turns.
            number: The most combinations.
        """
        atoms, values = atoms_of(self.cells), self.cells.upright(self.score)
        numbers = {label: index for index, label in enumerate(atoms.labels)}
        held_out = np.zeros(len(values), dtype=bool) if self.cells.trained is None else ~self.cells.trained
        turns: list[list[int]] = []
        for name in names:
            wanted = [numbers[name]] if name in numbers else members(name, numbers)
            holds = np.logical_and.reduce([(atoms.rows == atom).any(1) for atom in wanted if atom != NOTHING])
            chosen = np.flatnonzero(self.scored & holds)
            turns.append(chosen[np.lexsort((values[chosen], held_out[chosen]))][:number].tolist())
        taken = dict.fromkeys(cell for turn in itertools.zip_longest(*turns) for cell in turn if cell is not None)
        rows = (atoms.rows[cell] for cell in itertools.islice(taken, number))
        return tuple(tuple(atoms.labels[atom] for atom in row.tolist() if atom != NOTHING) for row in rows)

    @functools.cached_property
    def weak(self) -> tuple[WeakValue, ...]:
        """Values that score clearly worse than the others where everything else is known, the largest loss first."""
        pairs = self.parts.hardest_pairs if self.parts.interaction else ()
        return weak_values(self.cells, self.score, self.span, [pair.name for pair in pairs])

    @functools.cached_property
    def hard(self) -> tuple[WeakPair, ...]:
        """The hardest pairs that training covers, with what they lose."""
        pairs = self.parts.hardest_pairs if self.parts.interaction else ()
        return weak_pairs(self.cells, self.score, [pair.name for pair in pairs], 2 * self.margin)
