"""The findings of an audit as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recombine.audit.atoms import atoms_of
from recombine.audit.cells import Cells
from recombine.audit.comparison.findings import Comparison
from recombine.audit.coverage import part_scores, unmet_pairs
from recombine.audit.findings import Audit
from recombine.audit.strata import stratum_of
from recombine.stats.intervals import Interval


def audit_tables(audit: Audit, cells: Cells) -> dict[str, pd.DataFrame]:
    """The findings and the combinations as data frames, by name; empty tables are left out.

    Args:
        audit: The findings.
        cells: The combinations they are about.
    """
    tables = {
        "combinations": _combinations(cells),
        "parts": _parts(cells),
        "unmet_pairs": _unmet(cells),
        "strata": pd.DataFrame(_strata(audit)),
        "slices": pd.DataFrame(_slices(audit)),
        "factors": pd.DataFrame(_effects(audit)),
        "hardest": pd.DataFrame(_hardest(audit)),
        "decodability": pd.DataFrame(_sites(audit)),
        "advice": pd.DataFrame(_advice(audit)),
        "collect": collect_table(audit, cells),
    }
    return {name: frame for name, frame in tables.items() if len(frame)}


def collect_table(audit: Audit, cells: Cells) -> pd.DataFrame:
    """The combinations that advice names for collection: a column per factor or role, most useful first.

    Args:
        audit: The findings.
        cells: The combinations they are about.
    """
    places = list(dict.fromkeys(cells.slots))
    asked = dict.fromkeys(each for score in audit.scores for advice in score.advice for each in advice.collect)
    rows = [values_by_slot(each, places) for each in asked]
    return pd.DataFrame(rows, columns=pd.Index(places), dtype=object).drop_duplicates(ignore_index=True)


def lost_table(comparison: Comparison | None) -> pd.DataFrame:
    """The combinations that were lost since the baseline of a gate, largest loss first: a column per factor or role.

    Args:
        comparison: The comparison with the baseline; None without one, which gives an empty table.
    """
    rows = [
        (score.score, *each.values, each.before, each.after, each.rows_before, each.rows_after)
        for score in (() if comparison is None else comparison.scores)
        for each in score.lost
    ]
    slots = () if comparison is None else comparison.slots
    return pd.DataFrame(rows, columns=pd.Index(["score", *slots, "before", "after", "rows before", "rows after"]))


def values_by_slot(labels: Sequence[str], places: Sequence[str]) -> dict[str, str]:
    """The values of a combination by slot, from labels such as colour=red; semicolons separate the members of a set."""
    values: dict[str, list[str]] = {}
    for label in labels:
        # The longest name, as one may begin with another.
        named = [name for name in places if label.startswith(f"{name}=")]
        if named:
            name = max(named, key=len)
            values.setdefault(name, []).append(label.removeprefix(f"{name}="))
    return {name: "; ".join(given) for name, given in values.items()}


def _combinations(cells: Cells) -> pd.DataFrame:
    """One row per combination. The values of a set are in one column, separated by semicolons."""
    values = np.array([value for factor in cells.factors for value in factor.values] + [""], dtype=object)
    words = values[cells.constituents]
    columns: dict[str, Any] = {}
    for place in dict.fromkeys(cells.slots):
        slots = [slot for slot, other in enumerate(cells.slots) if other == place]
        columns[place] = ["; ".join(filter(None, row)) for row in words[:, slots]]  # Empty slots hold no text.
    if cells.trained is not None:
        columns |= {"trained": cells.trained, "stratum": stratum_of(cells)}
    columns["rows"] = cells.count
    for index, name in enumerate(cells.scores):
        columns[f"mean {name}"] = cells.mean[:, index]
    return pd.DataFrame(columns)


def _parts(cells: Cells) -> pd.DataFrame:
    """One row per value: the number of combinations with it, and their mean score."""
    named = [(factor.name, value) for factor in cells.factors for value in factor.values]
    columns: dict[str, Any] = dict(zip(("factor", "value"), zip(*named, strict=True), strict=True))
    if cells.trained is not None:
        columns["trained combinations"] = part_scores(cells, 0, cells.trained)[1]
    for index, name in enumerate(cells.scores):
        scored = cells.evaluated & np.isfinite(cells.mean[:, index])
        mean, count = part_scores(cells, index, scored)
        columns |= {f"combinations with {name}": count, f"mean {name}": mean}
    return pd.DataFrame(columns)


def _unmet(cells: Cells) -> pd.DataFrame:
    if cells.trained is None:
        return pd.DataFrame()
    unmet = unmet_pairs(cells)
    first, second = np.array(atoms_of(cells).labels, dtype=object)[unmet.pairs].T
    columns = {"first": first, "second": second, "combinations": unmet.combinations}
    return pd.DataFrame(columns | {f"mean {cells.scores[0]}": unmet.score})


def _ends(interval: Interval | None) -> dict[str, Any]:
    return {name: getattr(interval, name, None) for name in ("estimate", "low", "high", "method")}


def _strata(audit: Audit) -> list[dict[str, Any]]:
    rows = []
    for score in audit.scores:
        strata = () if score.gap is None else score.gap.strata
        parts = [("all", audit.combinations, score.rows, score.overall)]
        for what, combinations, count, mean in parts + [(s.name, s.combinations, s.rows, s.score) for s in strata]:
            named = {"score": score.score, "what": what, "combinations": combinations, "rows": count}
            rows.append(named | _ends(mean))
        for what, name in (("trained minus held out", "raw"), ("the same with parts held constant", "adjusted")):
            if (gap := getattr(score.gap, name, None)) is not None:
                rows.append({"score": score.score, "what": what, "combinations": gap.replicates} | _ends(gap))
    return rows


def _slices(audit: Audit) -> list[dict[str, Any]]:
    return [
        {
            "score": score.score,
            "slice": each.name,
            "combinations": each.combinations,
            "rows": each.rows,
            "mean": each.mean,
        }
        | {f"worse by, {end}": getattr(each.worse, end, None) for end in ("estimate", "low", "high")}
        | {"certain": each.certain, "trained combinations": each.trained}
        for score in audit.scores
        for each in score.slices
    ]


def _effects(audit: Audit) -> list[dict[str, Any]]:
    return [
        {"score": score.score, "name": each.name, "kind": each.kind, "freedom": each.freedom, "contrast": each.contrast}
        | _ends(each.size)
        | {"p": each.p}
        for score in audit.scores
        for each in score.effects.effects
    ]


def _hardest(audit: Audit) -> list[dict[str, Any]]:
    return [
        {"score": score.score, "what": what, "name": each.name, "scale": each.scale, "q": each.q} | _ends(each.effect)
        for score in audit.scores
        for what, hardest in (("part", score.parts.hardest_parts), ("pair", score.parts.hardest_pairs))
        for each in hardest
    ]


def _sites(audit: Audit) -> list[dict[str, Any]]:
    return [
        {"score": score.score, "layer": site.layer, "factor": site.factor}
        | _ends(site.score)
        | {"chance": site.chance, "control": site.control, "selectivity": site.selectivity}
        for score in audit.scores
        if score.decodability is not None
        for site in score.decodability.sites
    ]


def _advice(audit: Audit) -> list[dict[str, Any]]:
    return [
        {
            "score": score.score,
            "rule": advice.rule,
            "advice": advice.sentence,
            "because": advice.because,
            "gain": advice.gain,
            "collect": " | ".join(" + ".join(combination) for combination in advice.collect),
        }
        for score in audit.scores
        for advice in score.advice
    ]
