"""The input of the advice rules: the findings of one score, and a few numbers that follow from them."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from scipy import special

from recombine.audit.cells import Cells, Chosen
from recombine.audit.coverage import PartCounts, PartScores, part_scores, part_values
from recombine.audit.findings import GapFinding, PartsFinding, Stratum, SupportFinding
from recombine.audit.space import planned
from recombine.audit.strata import MET, TRAINED, UNMET, between
from recombine.stats import Interval, benjamini_hochberg

LOW = 0.5
"""On a scale from 0 to 1, a score below this is low."""
HIGH = 0.75
"""On that scale, a score above this is high."""
MARGIN = 0.05
"""Differences smaller than this share of the scale do not matter."""
CLEAR = 0.25
"""Differences larger than this share of the scale are large."""
FEWEST = 3
"""A value in fewer combinations than this is not tested."""
RATE = 0.1
"""The false-discovery rate at which values are named."""


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

    @functools.cached_property
    def scored(self) -> Chosen:
        """Which combinations have this score."""
        return self.cells.evaluated & np.isfinite(self.cells.mean[:, self.score])

    @functools.cached_property
    def absolute(self) -> bool:
        """Whether the score has an absolute scale with a best value of 1, so that it can be called high or low.

        Shares, accuracies, R2 and correlations have one. Other scores are only compared with each other.
        """
        values = self.cells.mean[self.scored, self.score]
        return bool(len(values)) and 0 <= float(values.max()) <= 1

    @functools.cached_property
    def margin(self) -> float:
        """`MARGIN` in units of the score: of its scale of 1, or of the distance between best and worst combination."""
        values = self.cells.mean[self.scored, self.score]
        return MARGIN * (1.0 if self.absolute or not len(values) else float(np.ptp(values)) or 1.0)

    def stratum(self, name: str) -> Stratum | None:
        """A stratum by name; None if it has no combinations."""
        strata = () if self.gap is None else self.gap.strata
        return next((stratum for stratum in strata if stratum.name == name), None)

    def mean(self, name: str) -> Interval | None:
        """The mean score of a stratum; None if it is unknown."""
        stratum = self.stratum(name)
        return None if stratum is None else stratum.score

    @functools.cached_property
    def met_gap(self) -> tuple[Interval | None, bool]:
        """Trained minus held out with all pairs met, and whether constituents are held constant."""
        return between(self.cells, self.score, TRAINED, MET)

    @functools.cached_property
    def unmet_gap(self) -> tuple[str, Interval | None, bool]:
        """The gap to combinations with unmet pairs: from held out with all pairs met, or from trained if there are none."""
        first = TRAINED if self.stratum(MET) is None else MET
        return (first, *between(self.cells, self.score, first, UNMET))

    @functools.cached_property
    def held_out_gap(self) -> tuple[Interval | None, bool]:
        """Trained minus held out, and whether constituents are held constant (they are if possible)."""
        if self.gap is None or self.gap.adjusted is None:
            return (None if self.gap is None else self.gap.raw), False
        return self.gap.adjusted, True

    def collect(self, number: int, *, strength: int = 2) -> tuple[tuple[str, ...], ...]:
        """The combinations that would add most to the coverage of training; none if data cannot be planned."""
        space = planned(self.cells)
        return () if space is None else space.cover(number, strength=strength, seed=self.seed)

    def not_learned(self) -> list[tuple[int, float, int]]:
        """Values that score low in all combinations, trained ones included: index, mean score, number of combinations.

        One-sided t tests of a mean over combinations below `LOW`, Benjamini-Hochberg over all values.
        """
        cells, score = self.cells, self.score
        if not self.absolute or not self.scored.any():
            return []
        mean, count = part_scores(cells, score, self.scored)
        p = _p_low(cells, score, self.scored, mean, count)
        tested = np.nonzero(count >= FEWEST)[0]
        if not len(tested):
            return []
        q = benjamini_hochberg(p[tested])
        everything = float(cells.mean[self.scored, score].sum())
        others = (everything - mean * count) / np.maximum(int(self.scored.sum()) - count, 1)
        trained = self.scored if cells.trained is None else self.scored & cells.trained
        own, known = part_scores(cells, score, trained)
        # If everything is low, no value stands out.
        apart = (others - mean >= CLEAR) & (others >= LOW) & (known > 0) & ~(own > LOW)
        low = [
            (part, float(mean[part]), int(count[part]))
            for part, rate in zip(tested.tolist(), q.tolist(), strict=True)
            if rate <= RATE and apart[part]
        ]
        return sorted(low, key=lambda value: value[1])


def _p_low(cells: Cells, score: int, chosen: Chosen, mean: PartScores, count: PartCounts) -> PartScores:
    """For each value, the p value of the hypothesis that its mean is at least `LOW`."""
    number, values = part_values(cells, score, chosen)
    squares = np.bincount(number, weights=(values - mean[number]) ** 2, minlength=cells.width)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(squares / (count - 1) / count)
        p = special.stdtr(np.maximum(count - 1, 1), (mean - LOW) / error)
    # If all combinations have the same score, each counts as one toss of a coin.
    same = error <= 1e-12
    return np.where(same, np.where(mean < LOW, LOW ** count.astype(float), 1.0), np.nan_to_num(p, nan=1.0))
