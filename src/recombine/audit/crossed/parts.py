"""Parts or combination: does a combination score as its values predict?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from recombine.audit.cells import NOTHING, Cells
from recombine.audit.crossed.bootstrap import RANGE, Tested, combination_test, tables_for
from recombine.audit.crossed.design import Design, design_of, frequent, pairs_of
from recombine.audit.crossed.identification import FEW_RESIDUAL, LEAST_RESIDUAL, identify, rank
from recombine.audit.crossed.links import Scatter
from recombine.audit.crossed.model import Crossed, Effects, Scores
from recombine.audit.crossed.standouts import RATE, Standing, pair_variance, pairs_standing, parts_standing
from recombine.audit.findings import Deviation, Fit, Link, PartsFinding
from recombine.audit.wording import counted, listed
from recombine.stats import ALPHA, LEVEL, Interval

SHOWN = 10
MOST_COLUMNS = 120
"""The most columns beside the largest slot; of a larger design, the most frequent values are fitted."""

MOST_CELLS = 10_000
"""The most combinations that are fitted; of more, so many are drawn."""

QUIETEST = 1e-6
"""The least noise of rows, in units of the variance between combinations, so that noiseless scores can be fitted."""

QUIET = 0.01
"""Values that vary less than this do not differ (in log odds; for real scores the share of variance between combinations)."""

SMALL = 0.5
"""Parts suffice only if the standard deviation of combinations is surely below this times that of the parts."""

Deviations = tuple[Deviation, ...]
UNITS: dict[Link, str] = {"identity": "", "logit": " log odds", "log": " (natural logarithm)"}
WORDS: dict[Link, str] = {"identity": "sums", "logit": "log odds", "log": "logarithms (all parts must succeed)"}


@dataclasses.dataclass(frozen=True)
class _Fitted:
    """The fit under one link."""

    model: Crossed
    scores: Scores
    unit: float
    tested: Tested
    effects: Effects
    """Effects at the estimated combination variance."""


def parts_or_combination(
    cells: Cells, score: int, seed: int = 0, draws: int | None = None, progress: Callable[[float], None] | None = None
) -> PartsFinding:
    """Are scores additive in the values of a combination? Which values and pairs stand out?

    The finding says so if the table cannot answer. An interaction is reported only if every plausible link rejects
    additivity: scores that are additive in log p (independent parts that must all succeed) are not additive in the
    logit, and the reverse.

    Args:
        cells: The combinations.
        score: The index of the score.
        seed: The seed of the simulations.
        draws: Simulated tables; None: 199, and fewer for large tables.
        progress: Called with the share that is done.
    """
    identification = identify(cells, score)
    if not identification.identified:
        verdict = " ".join(("Unknown.", *identification.reasons, *identification.advice[:1]))
        return PartsFinding(identification, verdict=verdict)
    whole = design_of(cells, score)
    design = _drawn(frequent(whole, MOST_COLUMNS), seed)
    notes = _notes(cells, whole, design, score, identification.residual)
    if len(design.cells) - rank(design) < LEAST_RESIDUAL or np.ptp(cells.mean[design.cells, score]) == 0:
        reason = f"{notes[0]} These cannot separate parts from combinations."
        refused = dataclasses.replace(identification, identified=False, reasons=(reason,))
        return PartsFinding(refused, verdict=f"Unknown. {reason}", notes=notes)
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(min(done / total, 1.0))

    models = [Crossed(design, scatter, count) for scatter in _scatters(cells, score, design)]
    total = sum(sum(tables_for(model, draws)) for model in models)
    fitted = [_fitted(cells, score, model, seed, draws) for model in models]
    fits = tuple(_fit(design, fit) for fit in fitted)
    interaction = all(fit.p <= ALPHA for fit in fits)
    first = fitted[0]
    parts = parts_standing(first.effects)
    hardest_parts = _named(design.labels, parts, parts.harder, -1, first)
    # Of two values one is as much better as the other is worse: it is named once.
    several = np.array([len(design.of(int(place))) != 2 or not design.single[int(place)] for place in design.slot])
    easiest_parts = _named(design.labels, parts, np.where(several, parts.easier, 1.0), 1, first)
    hardest, easiest = _pairs(design, fitted, seed) if interaction else ((), ())
    quiet = float(first.effects.part_variance[0].sum()) < QUIET
    verdict = _verdict(fits, interaction, hardest_parts, hardest, easiest, quiet)
    found = PartsFinding(identification, fits, interaction, hardest_parts, hardest, verdict, easiest, notes)
    return dataclasses.replace(found, easiest_parts=easiest_parts)


def _drawn(design: Design, seed: int) -> Design:
    """At most `MOST_CELLS` of the combinations, drawn at random: the time of a fit grows with their number."""
    if len(design.cells) <= MOST_CELLS:
        return design
    chosen = np.zeros(len(design.cells), dtype=bool)
    chosen[np.random.default_rng(seed).choice(len(chosen), MOST_CELLS, replace=False)] = True
    return design.kept(chosen)


def _scatters(cells: Cells, score: int, design: Design) -> list[Scatter]:
    """The plausible links: logit and log for binary scores, otherwise identity, and log for scores on a known scale."""
    if cells.binary[score]:
        return [Scatter("logit", True), Scatter("log", True)]
    share = cells.scale(score).known and bool((cells.shares(score)[design.cells] > 0).all())
    return [Scatter("identity", False), *([Scatter("log", False)] if share else [])]


def _fitted(cells: Cells, score: int, model: Crossed, seed: int, draws: int | None) -> _Fitted:
    scores, unit, freedom = _scores(cells, score, model.design, model.scatter)
    tested = combination_test(model, scores, freedom, seed, draws)
    return _Fitted(model, scores, unit, tested, model.fit(scores, tested.variance.estimate))


def _pairs(design: Design, fitted: list[_Fitted], seed: int) -> tuple[Deviations, Deviations]:
    """The hardest and the easiest pairs, among those that every link names."""
    pairs = pairs_of(design)
    if not len(pairs.members):
        return (), ()
    standings = []
    for fit in fitted:
        variance = fit.tested.variance.estimate
        if (design.rows != NOTHING).sum(1).max() > 2:  # A pair is not the whole combination.
            variance = max(pair_variance(fit.model, fit.tested, pairs), RANGE[0])
        standings.append(pairs_standing(fit.model, fit.scores, fit.tested, pairs, variance, seed))
    names = tuple(" + ".join(design.labels[column] for column in pair) for pair in pairs.members.tolist())
    harder, easier = (np.max([getattr(s, side) for s in standings], axis=0) for side in ("harder", "easier"))
    return _named(names, standings[0], harder, -1, fitted[0]), _named(names, standings[0], easier, 1, fitted[0])


def _scores(cells: Cells, score: int, design: Design, scatter: Scatter) -> tuple[Scores, float, int]:
    """The scores to fit (in units of their standard deviation under the identity link), the unit, and the noise's freedom."""
    count = cells.count[design.cells].astype(float)
    freedom = int(count.sum()) - len(count)
    if scatter.binary:
        return Scores(cells.shares(score)[design.cells][None], count, np.ones(1)), 1.0, freedom
    mean: Float[np.ndarray, " cell"] = cells.upright(score)[design.cells]
    noise = float(np.nansum(cells.spread[design.cells, score])) / max(freedom, 1)
    if scatter.link == "log":
        low, high = cells.scale(score).ends
        mean, noise = cells.shares(score)[design.cells], noise / (high - low) ** 2
    unit = float(mean.std())
    noise = max(noise, QUIETEST * unit**2)
    if scatter.link == "log":
        return Scores(mean[None], count, np.array([noise])), 1.0, freedom
    centred = (mean - mean.mean()) / unit
    return Scores(centred[None], count, np.array([noise / unit**2])), unit, freedom


def _fit(design: Design, fitted: _Fitted) -> Fit:
    square = fitted.unit**2
    inside = fitted.tested.variance
    ends = (inside.estimate * square, inside.low * square, inside.high * square)
    variance = Interval(*ends, inside.replicates, LEVEL, inside.method)
    parts = {place: float(v) * square for place, v in zip(design.slots, fitted.effects.part_variance[0], strict=True)}
    method = f"crossed random effects, parametric bootstrap of {fitted.tested.draws} tables"
    if inside.high >= RANGE[1]:
        method += "; the upper end is the largest variance considered"
    return Fit(fitted.model.scatter.link, parts, variance, fitted.tested.p, method)


def _named(names: tuple[str, ...], standing: Standing, q: np.ndarray, sign: int, fitted: _Fitted) -> Deviations:
    """The deviations below the false-discovery rate, most extreme first."""
    chosen = np.nonzero((q <= RATE) & (sign * standing.effect > 0))[0]
    order = chosen[np.lexsort((chosen, -sign * standing.effect[chosen]))][:SHOWN]
    count = int(fitted.tested.variance.replicates)
    deviations = []
    for index in order.tolist():
        effect, low, high = (end * fitted.unit for end in (float(standing.effect[index]), *standing.ends(index)))
        interval = Interval(effect, low, high, count, LEVEL, "shrunken")
        deviations.append(Deviation(names[index], interval, float(q[index]), fitted.model.scatter.link))
    return tuple(deviations)


def _notes(cells: Cells, whole: Design, design: Design, score: int, residual: int) -> tuple[str, ...]:
    notes = []
    if len(design.cells) == MOST_CELLS < len(whole.cells):
        notes.append(
            f"Fitted on {len(design.cells):,} combinations of the {len(design.slot):,} most frequent values, drawn at random "
            f"out of {len(whole.cells):,} combinations of {len(whole.slot):,} values."
        )
    elif len(design.cells) < len(whole.cells):
        notes.append(
            f"Fitted on the {len(design.cells):,} combinations of the {len(design.slot):,} most frequent values, "
            f"out of {len(whole.cells):,} combinations of {len(whole.slot):,} values."
        )
    if residual < FEW_RESIDUAL:
        notes.append(f"The answer has only {counted(residual, 'residual degree', 'residual degrees')} of freedom.")
    if cells.binary[score] and cells.count[whole.cells].max() == 1:
        notes.append(
            "With one row per combination, a combination can hardly be separated from chance: "
            "finding no interaction means little."
        )
    return tuple(notes)


def _verdict(
    fits: tuple[Fit, ...], interaction: bool, parts: Deviations, hardest: Deviations, easiest: Deviations, quiet: bool
) -> str:
    """One sentence."""
    tests = " and ".join(f"p = {fit.p:.2g} in {WORDS[fit.link]}" for fit in fits)
    if interaction:
        named = _list("hardest", hardest) or _list("better than their parts predict", easiest)
        return f"Combinations matter beyond their parts ({tests}){named}."
    weak = _list("hardest", parts)
    if quiet:
        return f"Neither parts nor combinations differ by more than chance ({tests})."
    # The link under which the scores add up best.
    fit = max(fits, key=lambda each: each.p)
    beyond, own = math.sqrt(fit.combination_variance.high), math.sqrt(sum(fit.part_variance.values()))
    unit = UNITS[fit.link]
    spread = f"beyond their parts, combinations differ by a standard deviation of at most {beyond:.2g}{unit}, parts by {own:.2g}"
    if beyond <= SMALL * own:
        return f"Parts suffice: {spread} ({tests}){weak}."
    could = f"beyond their parts, combinations could differ by a standard deviation of up to {beyond:.2g}{unit}, parts do by {own:.2g}"
    return f"No sign of an interaction, but this table cannot exclude one: {could} ({tests}){weak}."


def _list(what: str, deviations: Deviations) -> str:
    return f"; {what}: {listed([deviation.name for deviation in deviations], 3)}" if deviations else ""
