"""Parts or combination: is a combination as good as its parts say?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from recombine.audit.cells import NOTHING, Cells
from recombine.audit.crossed import Crossed, Effects, Scores
from recombine.audit.crossed_bootstrap import RANGE, Tested, combination_test, tables_for
from recombine.audit.crossed_design import Design, design_of, frequent, pairs_of
from recombine.audit.crossed_links import Scatter
from recombine.audit.crossed_naming import RATE, Standing, pair_variance, pairs_standing, parts_standing
from recombine.audit.findings import Deviation, Fit, Link, PartsFinding
from recombine.audit.identification import FEW_RESIDUAL, LEAST_RESIDUAL, identify, rank
from recombine.audit.wording import counted, listed, percent
from recombine.stats.intervals import LEVEL, Interval
from recombine.stats.verdicts import ALPHA

SHOWN = 10
MOST_COLUMNS = 120
"""Values beside the largest place that are fitted; of more, those that occur most."""

QUIETEST = 1e-6
"""The least scatter of rows, in units of the spread between combinations: scores without any still have a fit."""

QUIET = 0.01
"""Parts that vary less than this (log odds; for real scores the share of the variance between combinations) do not differ."""

UNSURE = 0.5
"""Where combinations could have more of the variance than this, it is said that the table leaves room for it."""

WORDS: dict[Link, str] = {
    "identity": "sums",
    "logit": "log odds",
    "log": "logarithms (all parts must succeed)",
}


@dataclasses.dataclass(frozen=True)
class _Fitted:
    """All that one link says."""

    scatter: Scatter
    unit: float
    tested: Tested
    effects: Effects
    """With the combination variance as estimated."""
    model: Crossed
    scores: Scores


def parts_or_combination(
    cells: Cells,
    score: int,
    seed: int = 0,
    draws: int | None = None,
    on: Callable[[float], None] | None = None,
) -> PartsFinding:
    """Whether scores add up from parts, under each link that could be meant; which parts and pairs stand out.

    Refused where the table does not identify it. An interaction is one only if every link rejects additivity: what adds
    up in log p (independent parts that must all succeed) does not in the logit, and the other way round. `on` is told the share that is done.
    """
    identification = identify(cells, score)
    if not identification.identified:
        verdict = " ".join((*identification.reasons, *identification.advice[:1]))
        return PartsFinding(identification, verdict=verdict)
    whole = design_of(cells, score)
    design = frequent(whole, MOST_COLUMNS)
    notes = _notes(cells, whole, design, score, identification.residual)
    if len(design.cells) - rank(design) < LEAST_RESIDUAL or np.ptp(cells.mean[design.cells, score]) == 0:
        reason = f"{notes[0]} These do not tell parts and combination apart."
        refused = dataclasses.replace(identification, identified=False, reasons=(reason,))
        return PartsFinding(refused, verdict=reason, notes=notes)
    counter = _Counter(on)
    models = [Crossed(design, scatter, counter) for scatter in _scatters(cells, score, design)]
    counter.total = sum(sum(tables_for(model, draws)) for model in models)
    fitted = [_fitted(cells, score, model, seed, draws) for model in models]
    fits = tuple(_fit(design, one) for one in fitted)
    interaction = all(fit.p <= ALPHA for fit in fits)
    first = fitted[0]
    parts = parts_standing(first.effects)
    hardest_parts = _named(design.labels, parts, parts.harder, -1, first)
    hardest, easiest = _pairs(design, fitted, seed) if interaction else ((), ())
    quiet = float(first.effects.part_variance[0].sum()) < QUIET
    return PartsFinding(
        identification,
        fits,
        interaction,
        hardest_parts,
        hardest,
        _verdict(fits, interaction, hardest_parts, hardest, easiest, quiet),
        easiest,
        notes,
    )


def _scatters(cells: Cells, score: int, design: Design) -> list[Scatter]:
    """The links that could be meant: log odds and logarithms of chances; sums, and logarithms of shares."""
    if cells.binary[score]:
        return [Scatter("logit", True), Scatter("log", True)]
    mean = cells.mean[design.cells, score]
    share = bool(((mean > 0) & (mean <= 1)).all())
    return [Scatter("identity", False), *([Scatter("log", False)] if share else [])]


class _Counter:
    """Turns tables fitted into the share that is done."""

    def __init__(self, on: Callable[[float], None] | None) -> None:
        self.on, self.done, self.total = on, 0, 0

    def __call__(self, more: int) -> None:
        self.done += more
        if self.on is not None and self.total:
            self.on(min(self.done / self.total, 1.0))


def _fitted(cells: Cells, score: int, model: Crossed, seed: int, draws: int | None) -> _Fitted:
    scatter = model.scatter
    scores, unit, freedom = _scores(cells, score, model.design, scatter)
    tested = combination_test(model, scores, freedom, seed, draws)
    return _Fitted(scatter, unit, tested, model.fit(scores, tested.variance.estimate), model, scores)


def _pairs(
    design: Design, fitted: list[_Fitted], seed: int
) -> tuple[tuple[Deviation, ...], tuple[Deviation, ...]]:
    """The hardest and the easiest pairs: those that every link names."""
    pairs = pairs_of(design)
    if not len(pairs.members):
        return (), ()
    standings = []
    for one in fitted:
        variance = one.tested.variance.estimate
        if (design.rows != NOTHING).sum(1).max() > 2:  # A pair is less than a combination.
            variance = max(pair_variance(one.model, one.tested, pairs), RANGE[0])
        standings.append(pairs_standing(one.model, one.scores, one.tested, pairs, variance, seed))
    names = [" + ".join(design.labels[column] for column in pair) for pair in pairs.members.tolist()]
    harder, easier = (np.max([getattr(s, side) for s in standings], axis=0) for side in ("harder", "easier"))
    first = fitted[0]
    return _named(names, standings[0], harder, -1, first), _named(names, standings[0], easier, 1, first)


def _scores(cells: Cells, score: int, design: Design, scatter: Scatter) -> tuple[Scores, float, int]:
    """What is fitted, in units of the spread between combinations where the scale is free; and the unit."""
    count = cells.count[design.cells].astype(float)
    mean: Float[np.ndarray, " cell"] = cells.mean[design.cells, score]
    freedom = int(count.sum()) - len(count)
    if scatter.binary:
        return Scores(mean[None], count, np.ones(1)), 1.0, freedom
    noise = float(np.nansum(cells.spread[design.cells, score])) / max(freedom, 1)
    unit = float(mean.std())
    noise = max(noise, QUIETEST * unit**2)
    if scatter.link == "log":
        return Scores(mean[None], count, np.array([noise])), 1.0, freedom
    centred = (mean - mean.mean()) / unit
    return Scores(centred[None], count, np.array([noise / unit**2])), unit, freedom


def _fit(design: Design, one: _Fitted) -> Fit:
    square = one.unit**2
    inside = one.tested.variance
    variance = Interval(
        inside.estimate * square,
        inside.low * square,
        inside.high * square,
        inside.replicates,
        LEVEL,
        inside.method,
    )
    parts = {
        place: float(v) * square for place, v in zip(design.places, one.effects.part_variance[0], strict=True)
    }
    total = sum(parts.values()) + variance.estimate
    method = f"crossed random effects, parametric bootstrap of {one.tested.draws} tables"
    if inside.high >= RANGE[1]:
        method += "; the upper end is the largest variance looked at"
    share = variance.estimate / total if total > 0 else 0.0
    return Fit(one.scatter.link, parts, variance, one.tested.p, share, method)


def _named(
    names: tuple[str, ...] | list[str],
    standing: Standing,
    q: Float[np.ndarray, " n"],
    sign: int,
    fitted: _Fitted,
) -> tuple[Deviation, ...]:
    """Those at the false-discovery rate, the furthest out first."""
    chosen = np.nonzero((q <= RATE) & (sign * standing.effect > 0))[0]
    order = chosen[np.lexsort((chosen, -sign * standing.effect[chosen]))][:SHOWN]
    found = []
    for index in order.tolist():
        low, high = (end * fitted.unit for end in standing.ends(index))
        effect = float(standing.effect[index]) * fitted.unit
        count = int(fitted.tested.variance.replicates)
        found.append(
            Deviation(
                names[index],
                Interval(effect, low, high, count, LEVEL, "shrunken"),
                float(q[index]),
                fitted.scatter.link,
            )
        )
    return tuple(found)


def _notes(cells: Cells, whole: Design, design: Design, score: int, residual: int) -> tuple[str, ...]:
    notes = []
    if len(design.cells) < len(whole.cells):
        notes.append(
            f"Fitted on the {len(design.cells):,} combinations of the {len(design.place):,} values that occur most, "
            f"of {len(whole.cells):,} combinations of {len(whole.place):,} values."
        )
    if residual < FEW_RESIDUAL:
        notes.append(
            f"It rests on {counted(residual, 'residual degree', 'residual degrees')} of freedom only."
        )
    if cells.binary[score] and cells.count[whole.cells].max() == 1:
        notes.append(
            "One row for each combination says hardly anything of a combination beside chance: "
            "that no interaction is found means little."
        )
    return tuple(notes)


def _verdict(
    fits: tuple[Fit, ...],
    interaction: bool,
    parts: tuple[Deviation, ...],
    hardest: tuple[Deviation, ...],
    easiest: tuple[Deviation, ...],
    quiet: bool,
) -> str:
    """One sentence."""
    told = " and ".join(f"p = {fit.p:.2g} in {WORDS[fit.link]}" for fit in fits)
    if interaction:
        share = f"{percent(fits[0].share)} of the variance between combinations"
        named = f"; hardest: {listed([d.name for d in hardest], 3)}" if hardest else ""
        if easiest and not hardest:
            named = f"; better than their parts: {listed([d.name for d in easiest], 3)}"
        return f"Combinations matter beyond their parts: {share} is theirs ({told}){named}."
    weak = f"; hardest: {listed([d.name for d in parts], 3)}" if parts else ""
    adding = [fit for fit in fits if fit.p > ALPHA]
    if len(adding) < len(fits):
        return f"Parts suffice: scores add up in {WORDS[adding[0].link]} ({told}){weak}."
    if quiet:
        return f"Neither parts nor combinations differ by more than chance ({told})."
    high = fits[0].combination_variance.high
    upper = high / max(high + sum(fits[0].part_variance.values()), 1e-300)
    if upper > UNSURE:
        bound = (
            f"but the table leaves room for it, up to {percent(upper)} of the variance between combinations"
        )
    else:
        bound = f"at most {percent(upper)} of the variance between combinations"
    return f"Parts suffice: no sign of more, {bound} ({told}){weak}."
