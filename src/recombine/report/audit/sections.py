"""The sections of an audit's page about one score: figures, numbers and sentences."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from recombine.audit.atoms import atoms_of
from recombine.audit.cells import Cells
from recombine.audit.findings import DecodabilityFinding, Deviation, PartsFinding, ScoreFinding, Stratum
from recombine.audit.strata import TRAINED as TRAINED_STRATUM, stratum_of
from recombine.audit.wording import counted
from recombine.figures.audit.combination_map import Combinations, audit_map_info
from recombine.figures.audit.combination_map_drawing import draw_audit_map
from recombine.figures.audit.intervals import IntervalRow, draw_intervals, intervals_info
from recombine.figures.audit.layers import LayerRow, audit_layers_info, draw_audit_layers
from recombine.figures.base import Figure
from recombine.figures.theme import HELD_OUT, TRAINED
from recombine.figures.wording import number, p_in_words
from recombine.report.audit.answer import with_ends
from recombine.report.html import Drawn, Table, drawn_figures
from recombine.stats.intervals import Interval

LINKS = {"identity": "sums", "logit": "log odds", "log": "logarithms"}
SCALES = {"identity": "the score", "logit": "log odds", "log": "log chance"}
FORESTS = {
    "easy-parts": ("Easiest parts", "How far each value lies above the average of its factor"),
    "parts": ("Hardest parts", "How far each value lies below the average of its factor"),
    "pairs": ("Hardest pairs, beyond their parts", "How far each pair lies below the sum of its two values' effects"),
    "easy-pairs": (
        "Pairs that score better than their parts predict",
        "How far each pair lies above the sum of its two values' effects; it may be memorised",
    ),
}
"""Titles and captions of the figures of deviations."""


@dataclasses.dataclass(frozen=True)
class Section:
    """A heading and its content."""

    title: str
    lead: tuple[str, ...] = ()
    """Sentences above the figures."""
    numbers: tuple[tuple[str, str], ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences below the figures."""
    method: str = ""
    source: str = ""
    """The section of docs/methods-audit.md."""


def draw_sections(parts: Sequence[dict[str, Any]]) -> list[Drawn]:
    """All figures of a page, numbered. Each part of the page gets the figures of its `sections` as `drawn`."""
    drawn = drawn_figures([figure for part in parts for section in part["sections"] for figure in section.figures])
    rest = iter(drawn)
    for part in parts:
        part["drawn"] = [list(itertools.islice(rest, len(section.figures))) for section in part["sections"]]
    return drawn


def map_section(finding: ScoreFinding, cells: Cells, index: int) -> Section:
    """The map of the combination space, and the combinations with the worst scores."""
    atoms = atoms_of(cells)
    values = [value for factor in cells.factors for value in factor.values]
    score = np.where(cells.evaluated, cells.mean[:, index], np.nan)
    combinations = Combinations(
        slots=tuple(dict.fromkeys(cells.slots)),
        slot=atoms.slot,
        value=atoms.constituent,
        names=tuple(values[part] for part in atoms.constituent.tolist()),
        rows=atoms.rows,
        score=score,
        repeats=cells.count,
        trained=cells.trained,
    )
    info = audit_map_info(combinations, finding.score, domain=_domain(finding, score))
    lowest = [(each.name, each.score, each.rows) for each in finding.lowest]
    note = "Raw means, neither shrunken nor tested. Ties are broken by the number of rows."
    table = Table("Worst scores", ["combination", "mean", "rows"], lowest, note, names=(0,))
    return Section(
        "Map of the combination space",
        figures=(Figure("audit_map", "Map of the combination space", info.caption, draw_audit_map(info)),),
        tables=(table,) if lowest else (),
    )


def _domain(finding: ScoreFinding, score: np.ndarray) -> tuple[float, float] | None:
    """The scale of the score; 0 to 1 if it is unknown and all scores lie there. Colours span this range."""
    if finding.scale.known:
        return finding.scale.ends
    seen = score[np.isfinite(score)]
    return (0.0, 1.0) if len(seen) and seen.min() >= 0 and seen.max() <= 1 else None


def strata_section(finding: ScoreFinding, cells: Cells, index: int) -> Section | None:
    """Trained and held-out combinations by training coverage."""
    gap = finding.gap
    if gap is None or not gap.strata:
        return None
    rows = [_stratum_row(stratum, cells, index) for stratum in gap.strata]
    score = np.where(cells.evaluated, cells.mean[:, index], np.nan)
    info = intervals_info(
        rows,
        title=f"mean {finding.score}",
        domain=_domain(finding, score),
        lead="Mean scores of combinations by what training covers of them; each combination counts once.",
    )
    gaps = {"trained minus held out": gap.raw, "the same with parts held constant": gap.adjusted}
    numbers = [("all scored combinations", with_ends(finding.overall))]
    numbers += [(name, with_ends(each, sign=True)) for name, each in gaps.items() if each is not None]
    return Section(
        "Trained and held out",
        numbers=tuple(numbers),
        figures=(Figure("audit_strata", "Trained and held out", info.caption, draw_intervals(info)),),
        notes=(gap.note,) if gap.note else (),
        method=_methods([finding.overall, *(stratum.score for stratum in gap.strata), gap.raw, gap.adjusted]),
        source="Strata and gap",
    )


def _stratum_row(stratum: Stratum, cells: Cells, index: int) -> IntervalRow:
    note = f"{counted(stratum.combinations, 'combination')}, {counted(stratum.rows, 'row')}"
    colour = TRAINED if stratum.name == TRAINED_STRATUM else HELD_OUT
    if stratum.score is not None:
        score = stratum.score
        return IntervalRow(stratum.name, score.estimate, score.low, score.high, note, colour)
    # A single combination has a mean but no interval.
    names = stratum_of(cells) or ()
    inside = np.array([name == stratum.name for name in names], dtype=bool) & cells.evaluated
    mean = float(np.nanmean(cells.mean[inside, index])) if inside.any() else math.nan
    return IntervalRow(stratum.name, mean, note=note, colour=colour)


def parts_section(finding: ScoreFinding) -> Section:
    """Parts or combination: what the table identifies, the fit under each link, and what stands out."""
    parts, design = finding.parts, finding.parts.identification
    numbers = (
        ("combinations", f"{design.combinations:,}"),
        ("parameters of the parts", f"{design.parameters:,}"),
        ("residual degrees of freedom", f"{design.residual:,}"),
        ("groups of values that never meet", f"{design.connected:,}" if design.connected != 1 else "1: all connected"),
        ("rows of a combination, median", f"{design.replicates:g}"),
    )
    if not design.identified:
        more = "See \N{LEFT DOUBLE QUOTATION MARK}What to do\N{RIGHT DOUBLE QUOTATION MARK} for what to collect."
        return Section(
            "Parts or combination?",
            lead=("Unknown.", *design.reasons, *([more] if design.advice else [])),
            numbers=numbers,
            notes=tuple(note for note in parts.notes if note not in design.reasons),
            method="from the design of the table alone",
            source="Parts or combination",
        )
    named = {
        "parts": parts.hardest_parts,
        "easy-parts": parts.easiest_parts,
        "pairs": parts.hardest_pairs,
        "easy-pairs": parts.easiest_pairs,
    }
    figures = [_forest(name, deviations) for name, deviations in named.items() if deviations]
    missing = () if figures else ("No value and no pair stands out at a false-discovery rate of 0.1.",)
    return Section(
        "Parts or combination?",
        lead=(parts.verdict,),
        numbers=numbers,
        figures=tuple(figures),
        tables=(_fits(parts),) if parts.fits else (),
        notes=(*missing, *parts.notes, *design.advice),
        method=_distinct(fit.method for fit in parts.fits),
        source="Parts or combination",
    )


def _forest(name: str, deviations: Sequence[Deviation]) -> Figure:
    rows = []
    for each in deviations:
        rate = p_in_words(each.q)
        note = f"q {rate}" if rate.startswith("<") else f"q = {rate}"
        rows.append(IntervalRow(each.name, each.effect.estimate, each.effect.low, each.effect.high, note))
    title, what = FORESTS[name]
    scale = SCALES[deviations[0].scale]
    info = intervals_info(
        rows,
        title=f"effect on {scale}",
        zero=True,
        lead=f"{what}, as a shrunken effect on {scale}. q is the false-discovery rate at which it is named.",
    )
    return Figure(f"audit_{name}", title, info.caption, draw_intervals(info))


def _fits(parts: PartsFinding) -> Table:
    """The fit under each link."""
    places = list(dict.fromkeys(place for fit in parts.fits for place in fit.part_variance))
    columns = ["scores are additive in", *(f"variance of {place}" for place in places)]
    columns += ["variance of combinations", "p (no interaction)"]
    rows = []
    for fit in parts.fits:
        variances = [number(fit.part_variance.get(place), 3) for place in places]
        whole = with_ends(fit.combination_variance, digits=3)
        rows.append([LINKS[fit.link], *variances, whole, p_in_words(fit.p)])
    note = (
        "Scores that are additive in log odds are not additive in logarithms, and the reverse. So the audit says that "
        "combinations matter only if every link shows it."
    )
    return Table("Both links" if len(rows) == 2 else "The link", columns, rows, note if len(rows) > 1 else "")


def inside_section(finding: ScoreFinding) -> Section | None:
    """What can be decoded from the layers."""
    inside = finding.decodability
    if inside is None:
        return None
    sites = []
    for site in inside.sites:
        accuracy = (site.score.estimate, site.score.low, site.score.high)
        sites.append(LayerRow(site.layer, site.factor, *accuracy, site.control, site.chance))
    info = audit_layers_info(sites, inside.chosen)
    figure = Figure("audit_layers", "Inside the model", info.caption, draw_audit_layers(info))
    return Section(
        "Inside the model",
        lead=() if inside.relation is None else (_relation(inside.relation),),
        figures=(figure,) if sites else (),
        tables=(_chosen(inside),) if inside.chosen else (),
        notes=(inside.note,) if inside.note else (),
        method=_methods([*(site.score for site in inside.sites), *inside.chosen_score.values(), inside.relation]),
        source="Decodability",
    )


def _relation(relation: Interval) -> str:
    direction = "lower" if relation.high < 0 else "higher"
    what = "Combinations" if relation.low > 0 or relation.high < 0 else "It is unclear whether combinations"
    finding = f"{what} whose values are easier to decode score {direction}"
    return f"{finding}: rank correlation {with_ends(relation, sign=True)} within coverage strata (observational)."


def _chosen(inside: DecodabilityFinding) -> Table:
    sites = {(site.factor, site.layer): site for site in inside.sites}
    rows = []
    for factor, layer in inside.chosen.items():
        site, unbiased = sites.get((factor, layer)), inside.chosen_score.get(factor)
        accuracy = with_ends(unbiased) if unbiased is not None else with_ends(site.score if site else None)
        rest = (getattr(site, name, None) for name in ("chance", "control", "selectivity"))
        rows.append((factor, layer, accuracy, *rest))
    columns = ["factor", "layer", "accuracy", "chance", "control task", "selectivity"]
    note = "Accuracy with the layer chosen anew in each fold, on other combinations. Selectivity is accuracy minus control."
    return Table("At the chosen layers", columns, rows, note, names=(0, 1))


def _methods(intervals: Iterable[Interval | None]) -> str:
    return _distinct(interval.method for interval in intervals if interval is not None)


def _distinct(words: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(word for word in words if word))
