"""The score of trained and held-out combinations, by what training covers of them; observational."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from recombine.audit.adjusted import adjusted_gap
from recombine.audit.atoms import atoms_of
from recombine.audit.cells import Cells
from recombine.audit.coverage import unseen_parts
from recombine.audit.findings import GapFinding, Stratum
from recombine.stats.intervals import LEVEL, Interval, mean_and_error, t_bounds

TRAINED = "trained"
MET = "all pairs met"
UNMET = "some pairs unmet"
UNSEEN = "a part unseen"
STRATA = (TRAINED, MET, UNMET, UNSEEN)
"""From what training covers best to what it covers least. The last three are held out."""


def stratum_of(cells: Cells) -> tuple[str, ...] | None:
    """The stratum of each combination; None where nobody said what was trained on."""
    if cells.trained is None:
        return None
    atoms = atoms_of(cells)
    unmet = np.zeros(len(cells.parts), dtype=bool)
    if atoms.rows.shape[1] > 1:
        unmet = atoms.lacking(~cells.trained, atoms.interactions(cells.trained, 2)) > 0
    unseen = np.isin(cells.parts, unseen_parts(cells)).any(1)
    chosen = np.select([cells.trained, unseen, unmet], [0, 3, 2], default=1)
    return tuple(STRATA[index] for index in chosen.tolist())


def mean_score(values: Float[np.ndarray, " n"], *, binary: bool) -> Interval | None:
    """The mean over combinations with its t interval; None of a single one.

    A share stays between 0 and 1. Where all combinations have the very same share, 0 or 1, t would be sure of it:
    there the interval is Wilson's, with a combination as the unit.
    """
    count = len(values)
    if count < 2:
        return None
    mean, error = (float(one) for one in mean_and_error(values))
    if binary and error == 0 and mean in (0.0, 1.0):
        z = float(special.ndtri((1 + LEVEL) / 2))
        reach = z**2 / (count + z**2)
        low, high = (1 - reach, 1.0) if mean else (0.0, reach)
        return Interval(mean, low, high, count, LEVEL, "Wilson over combinations")
    low, high = (float(end) for end in t_bounds(mean, error, count))
    if binary:
        low, high = max(0.0, low), min(1.0, high)
    return Interval(mean, low, high, count, LEVEL, "t over combinations")


def raw_gap(
    first: Float[np.ndarray, " n"], second: Float[np.ndarray, " m"], *, binary: bool
) -> Interval | None:
    """The difference of two means over combinations: Welch's t; None if either side is a single combination.

    Where one side does not vary at all (every combination solved), the ends come from the intervals of both sides
    by squaring and adding.
    """
    one, two = mean_score(first, binary=binary), mean_score(second, binary=binary)
    if one is None or two is None:
        return None
    gap, count = one.estimate - two.estimate, len(first) + len(second)
    if "Wilson" in one.method + two.method:
        low = gap - math.hypot(one.estimate - one.low, two.high - two.estimate)
        high = gap + math.hypot(one.high - one.estimate, two.estimate - two.low)
        return Interval(gap, low, high, count, LEVEL, "of both intervals, squared and added")
    square = [float(np.var(side, ddof=1)) / len(side) for side in (first, second)]
    total = sum(square)
    if total == 0:
        return Interval(gap, gap, gap, count, LEVEL, "Welch t")
    freedom = total**2 / sum(s**2 / (len(side) - 1) for s, side in zip(square, (first, second), strict=True))
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(total)
    return Interval(gap, gap - half, gap + half, count, LEVEL, "Welch t")


def gap_finding(cells: Cells, score: int) -> GapFinding | None:
    """Trained against held-out combinations, by stratum, raw and with the parts held still."""
    names = stratum_of(cells)
    if names is None or cells.trained is None:
        return None
    stratum = np.array(names)
    scored = cells.evaluated & np.isfinite(cells.mean[:, score])
    values, binary = cells.mean[:, score], cells.binary[score]
    strata = tuple(_stratum(cells, score, name, scored & (stratum == name)) for name in STRATA)
    strata = tuple(one for one in strata if one.combinations)
    trained, held_out = scored & cells.trained, scored & ~cells.trained
    if not trained.any() or not held_out.any():
        missing = "held-out" if trained.any() else "trained"
        return GapFinding(
            strata, None, None, f"No {missing} combination was evaluated: there is no gap to see."
        )
    raw = raw_gap(values[trained], values[held_out], binary=binary)
    adjusted, why = adjusted_gap(cells, score, trained, held_out)
    note = "Observational: nobody dealt combinations to training by chance."
    if raw is None:
        note = "A single combination on one side allows no interval. " + note
    return GapFinding(strata, raw, adjusted, f"{why} {note}".strip())


def between(cells: Cells, score: int, first: str, second: str) -> tuple[Interval | None, bool]:
    """The first stratum less the second: with the parts held still where that can be had, and whether it was."""
    names = stratum_of(cells)
    if names is None:
        return None, False
    scored = cells.evaluated & np.isfinite(cells.mean[:, score])
    one, two = (scored & (np.array(names) == name) for name in (first, second))
    if not one.any() or not two.any():
        return None, False
    adjusted, _ = adjusted_gap(cells, score, one, two)
    if adjusted is not None:
        return adjusted, True
    values = cells.mean[:, score]
    return raw_gap(values[one], values[two], binary=cells.binary[score]), False


def _stratum(cells: Cells, score: int, name: str, chosen: Bool[np.ndarray, " cell"]) -> Stratum:
    interval = mean_score(cells.mean[chosen, score], binary=cells.binary[score])
    return Stratum(name, int(chosen.sum()), int(cells.count[chosen].sum()), interval)
