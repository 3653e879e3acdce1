"""What the page of an audit shows of one score: sections of figures, numbers and sentences."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np

from recombine.audit.atoms import atoms_of
from recombine.audit.cells import Cells
from recombine.audit.findings import DecodabilityFinding, Deviation, PartsFinding, ScoreFinding, Stratum
from recombine.audit.strata import TRAINED as TRAINED_STRATUM
from recombine.audit.strata import stratum_of
from recombine.audit.wording import counted, percent
from recombine.figures.audit_intervals import Row, draw_intervals, intervals_info
from recombine.figures.audit_layers import LayerRow, audit_layers_info, draw_audit_layers
from recombine.figures.audit_map import Combinations, audit_map_info
from recombine.figures.audit_map_drawing import draw_audit_map
from recombine.figures.base import Figure
from recombine.figures.theme import HELD_OUT, TRAINED
from recombine.figures.wording import number, p_in_words
from recombine.report.audit_answer import with_ends
from recombine.report.html import Table
from recombine.stats.intervals import Interval

LINKS = {"identity": "sums", "logit": "log odds", "log": "logarithms"}
SCALES = {"identity": "the score", "logit": "log odds", "log": "log chance"}


@dataclasses.dataclass(frozen=True)
class Section:
    """A heading with what stands below it."""

    title: str
    lead: tuple[str, ...] = ()
    """Sentences above the figures."""
    numbers: tuple[tuple[str, str], ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences below."""
    method: str = ""
    source: str = ""
    """The section of docs/methods-audit.md."""


def map_section(finding: ScoreFinding, cells: Cells, index: int) -> Section:
    """The map of the combination space, and the combinations that score lowest."""
    atoms = atoms_of(cells)
    values = [value for factor in cells.factors for value in factor.values]
    score = np.where(cells.evaluated, cells.mean[:, index], np.nan)
    combinations = Combinations(
        places=tuple(dict.fromkeys(cells.place)),
        place=atoms.place,
        value=atoms.constituent,
        names=tuple(values[part] for part in atoms.constituent.tolist()),
        rows=atoms.rows,
        score=score,
        repeats=cells.count,
        trained=cells.trained,
    )
    info = audit_map_info(combinations, finding.score, domain=(0.0, 1.0) if _share(score) else None)
    lowest = [(one.name, one.score, one.rows) for one in finding.lowest]
    table = Table(
        "Lowest scores",
        ["combination", "mean", "rows"],
        lowest,
        "As they are: neither shrunken nor tested. Of equal ones those with most rows.",
        names=(0,),
    )
    return Section(
        "Map of the combination space",
        figures=(Figure("audit_map", "Map of the combination space", info.caption, draw_audit_map(info)),),
        tables=(table,) if lowest else (),
    )


def _share(score: np.ndarray) -> bool:
    """Scores that are shares: colours run from nothing to all."""
    seen = score[np.isfinite(score)]
    return bool(len(seen) and seen.min() >= 0 and seen.max() <= 1)


def strata_section(finding: ScoreFinding, cells: Cells, index: int) -> Section | None:
    """Trained and held-out combinations by what training covers of them."""
    gap = finding.gap
    if gap is None or not gap.strata:
        return None
    rows = [_stratum_row(one, cells, index) for one in gap.strata]
    score = np.where(cells.evaluated, cells.mean[:, index], np.nan)
    info = intervals_info(
        rows,
        title=f"mean {finding.score}",
        domain=(0.0, 1.0) if _share(score) else None,
        lead="Combinations by what training showed of them; each combination counts once.",
    )
    numbers = [("all scored combinations", with_ends(finding.overall))]
    numbers += [
        (name, with_ends(interval, sign=True))
        for name, interval in (
            ("trained less held out", gap.raw),
            ("the same with the parts held still", gap.adjusted),
        )
        if interval is not None
    ]
    return Section(
        "Trained and held out",
        numbers=tuple(numbers),
        figures=(Figure("audit_strata", "Trained and held out", info.caption, draw_intervals(info)),),
        notes=(gap.note,) if gap.note else (),
        method=_methods([finding.overall, *(one.score for one in gap.strata), gap.raw, gap.adjusted]),
        source="Strata and gap",
    )


def _stratum_row(stratum: Stratum, cells: Cells, index: int) -> Row:
    note = f"{counted(stratum.combinations, 'combination')}, {counted(stratum.rows, 'row')}"
    colour = TRAINED if stratum.name == TRAINED_STRATUM else HELD_OUT
    if stratum.score is not None:
        one = stratum.score
        return Row(stratum.name, one.estimate, one.low, one.high, note, colour)
    # A single combination has a mean all the same.
    names = stratum_of(cells) or ()
    inside = np.array([name == stratum.name for name in names], dtype=bool) & cells.evaluated
    mean = float(np.nanmean(cells.mean[inside, index])) if inside.any() else math.nan
    return Row(stratum.name, mean, note=note, colour=colour)


def parts_section(finding: ScoreFinding) -> Section:
    """Parts or combination: what the table can tell, what both links say, and what stands out."""
    parts, found = finding.parts, finding.parts.identification
    rows = f"{found.replicates:g}"
    numbers = (
        ("combinations", f"{found.combinations:,}"),
        ("parameters of the parts", f"{found.parameters:,}"),
        ("residual degrees of freedom", f"{found.residual:,}"),
        (
            "groups of values that never meet",
            f"{found.connected:,}" if found.connected != 1 else "1: all connected",
        ),
        ("rows of a combination, median", rows),
    )
    if not found.identified:
        more = ("What would make it possible stands under what to do.",) if found.advice else ()
        return Section(
            "Parts or combination?",
            lead=(*found.reasons, *more),
            numbers=numbers,
            notes=tuple(note for note in parts.notes if note not in found.reasons),
            method="from the design of the table alone",
            source="Parts or combination",
        )
    figures = [
        figure
        for figure in (
            _forest("parts", "Hardest parts", parts.hardest_parts),
            _forest("pairs", "Hardest pairs, beyond their parts", parts.hardest_pairs),
            _forest("easy-pairs", "Pairs better than their parts", parts.easiest_pairs),
        )
        if figure is not None
    ]
    missing = () if figures else ("No part and no pair stands out at a false-discovery rate of 0.1.",)
    return Section(
        "Parts or combination?",
        lead=(parts.verdict,),
        numbers=numbers,
        figures=tuple(figures),
        tables=(_fits(parts),) if parts.fits else (),
        notes=(*missing, *parts.notes, *found.advice),
        method=_distinct(fit.method for fit in parts.fits),
        source="Parts or combination",
    )


def _forest(name: str, title: str, found: Sequence[Deviation]) -> Figure | None:
    if not found:
        return None
    rows = [
        Row(one.name, one.effect.estimate, one.effect.low, one.effect.high, _rate(one.q)) for one in found
    ]
    what = {
        "parts": "How far below the average of its place each value lies",
        "pairs": "How far below what its two values add up to each pair lies",
        "easy-pairs": "How far above what its two values add up to each pair lies, perhaps learned by heart",
    }[name]
    scale = SCALES[found[0].scale]
    info = intervals_info(
        rows,
        title=f"effect on {scale}",
        zero=True,
        lead=f"{what}, on the scale of {scale}, shrunken. q is the false-discovery rate at which it would be named.",
    )
    return Figure(f"audit_{name}", title, info.caption, draw_intervals(info))


def _rate(q: float) -> str:
    text = p_in_words(q)
    return f"q {text}" if text.startswith("<") else f"q = {text}"


def _fits(parts: PartsFinding) -> Table:
    """What each link says."""
    places = list(dict.fromkeys(place for fit in parts.fits for place in fit.part_variance))
    columns = [
        "scores add up in",
        *(f"variance of {place}" for place in places),
        "variance of combinations",
        "their share",
        "p of none",
    ]
    rows = [
        [
            LINKS[fit.link],
            *(number(fit.part_variance.get(place), 3) for place in places),
            f"{number(fit.combination_variance.estimate, 3)} "
            f"[{number(fit.combination_variance.low, 3)}, {number(fit.combination_variance.high, 3)}]",
            percent(fit.share),
            p_in_words(fit.p),
        ]
        for fit in parts.fits
    ]
    note = (
        "What adds up in log odds does not add up in logarithms, and the other way round: combinations are said to matter "
        "only if every link finds it."
    )
    return Table("Both links" if len(rows) == 2 else "The link", columns, rows, note if len(rows) > 1 else "")


def inside_section(finding: ScoreFinding) -> Section | None:
    """What can be read off the layers."""
    found = finding.decodability
    if found is None:
        return None
    sites = [
        LayerRow(
            one.layer, one.factor, one.score.estimate, one.score.low, one.score.high, one.control, one.chance
        )
        for one in found.sites
    ]
    info = audit_layers_info(sites, found.chosen)
    figure = Figure("audit_layers", "Inside the model", info.caption, draw_audit_layers(info))
    relation = [] if found.relation is None else [_relation(found.relation)]
    return Section(
        "Inside the model",
        lead=tuple(relation),
        figures=(figure,) if sites else (),
        tables=(_chosen(found),) if found.chosen else (),
        notes=(found.note,) if found.note else (),
        method=_methods([*(one.score for one in found.sites), *found.chosen_score.values(), found.relation]),
        source="Decodability",
    )


def _relation(relation: Interval) -> str:
    if relation.low > 0:
        said = "Combinations whose values can be read better off the layers score better"
    elif relation.high < 0:
        said = "Combinations whose values can be read better off the layers score worse"
    else:
        said = "Whether combinations that can be read better off the layers score better is not clear"
    return f"{said}: rank correlation {with_ends(relation, sign=True)} within coverage strata; observational."


def _chosen(found: DecodabilityFinding) -> Table:
    sites = {(one.factor, one.layer): one for one in found.sites}
    rows = []
    for factor, layer in found.chosen.items():
        site, free = sites.get((factor, layer)), found.chosen_score.get(factor)
        rows.append(
            (
                factor,
                layer,
                with_ends(free) if free is not None else with_ends(site.score if site else None),
                None if site is None else site.chance,
                None if site is None else site.control,
                None if site is None else site.selectivity,
            )
        )
    return Table(
        "At the chosen layers",
        ["factor", "layer", "accuracy", "chance", "control task", "selectivity"],
        rows,
        "Accuracy with the layer chosen anew for each fold, on other combinations. Selectivity is accuracy less control.",
        names=(0, 1),
    )


def _methods(intervals: Iterable[Interval | None]) -> str:
    return _distinct(one.method for one in intervals if one is not None)


def _distinct(words: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(word for word in words if word))
