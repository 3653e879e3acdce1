"""The findings of an audit as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recombine.audit.atoms import atoms_of
from recombine.audit.cells import NOTHING, Cells
from recombine.audit.coverage import part_scores, unmet_pairs
from recombine.audit.findings import Audit
from recombine.audit.strata import stratum_of
from recombine.stats.intervals import Interval

if TYPE_CHECKING:
    import pandas as pd


def audit_tables(audit: Audit, cells: Cells) -> dict[str, pd.DataFrame]:
    """All tables by name; those that would be empty are left out."""
    import pandas as pd

    made = {
        "combinations": _combinations(cells),
        "parts": _parts(cells),
        "unmet_pairs": _unmet(cells),
        "strata": pd.DataFrame(_strata(audit)),
        "hardest": pd.DataFrame(_hardest(audit)),
        "decodability": pd.DataFrame(_sites(audit)),
        "advice": pd.DataFrame(_advice(audit)),
    }
    return {name: frame for name, frame in made.items() if len(frame)}


def _combinations(cells: Cells) -> pd.DataFrame:
    """One row a combination; the values of a set stand in one column, apart by semicolons."""
    import pandas as pd

    values = np.array([value for factor in cells.factors for value in factor.values] + [""], dtype=object)
    words = values[cells.parts]
    columns: dict[str, Any] = {}
    for place in dict.fromkeys(cells.place):
        slots = [slot for slot, other in enumerate(cells.place) if other == place]
        told = words[:, slots[0]]
        if len(slots) > 1:
            held = cells.parts[:, slots] != NOTHING
            told = ["; ".join(row[full]) for row, full in zip(words[:, slots], held, strict=True)]
        columns[place] = told
    if cells.trained is not None:
        columns |= {"trained": cells.trained, "stratum": stratum_of(cells)}
    columns["rows"] = cells.count
    for index, name in enumerate(cells.scores):
        columns[f"mean {name}"] = cells.mean[:, index]
    return pd.DataFrame(columns)


def _parts(cells: Cells) -> pd.DataFrame:
    """One row a value: in how many combinations it stands, and how these score."""
    import pandas as pd

    names = [factor.name for factor in cells.factors for _ in factor.values]
    values = [value for factor in cells.factors for value in factor.values]
    columns: dict[str, Any] = {"factor": names, "value": values}
    if cells.trained is not None:
        columns["trained combinations"] = part_scores(cells, 0, cells.trained)[1]
    for index, name in enumerate(cells.scores):
        scored = cells.evaluated & np.isfinite(cells.mean[:, index])
        mean, count = part_scores(cells, index, scored)
        columns |= {f"combinations with {name}": count, f"mean {name}": mean}
    return pd.DataFrame(columns)


def _unmet(cells: Cells) -> pd.DataFrame:
    import pandas as pd

    if cells.trained is None:
        return pd.DataFrame()
    atoms, found = atoms_of(cells), unmet_pairs(cells)
    labels = np.array(atoms.labels, dtype=object)[found.pairs]
    return pd.DataFrame(
        {
            "first": labels[:, 0],
            "second": labels[:, 1],
            "combinations": found.combinations,
            f"mean {cells.scores[0]}": found.score,
        }
    )


def _ends(interval: Interval | None) -> dict[str, Any]:
    if interval is None:
        return {"estimate": None, "low": None, "high": None, "method": None}
    return {
        "estimate": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "method": interval.method,
    }


def _strata(audit: Audit) -> list[dict[str, Any]]:
    rows = []
    for score in audit.scores:
        first = {"score": score.score}
        rows.append(
            first
            | {"what": "all", "combinations": audit.combinations, "rows": score.rows}
            | _ends(score.overall)
        )
        if score.gap is None:
            continue
        rows += [
            first | {"what": one.name, "combinations": one.combinations, "rows": one.rows} | _ends(one.score)
            for one in score.gap.strata
        ]
        gaps = {
            "trained less held out": score.gap.raw,
            "the same with the parts held still": score.gap.adjusted,
        }
        rows += [
            first | {"what": what, "combinations": interval.replicates} | _ends(interval)
            for what, interval in gaps.items()
            if interval is not None
        ]
    return rows


def _hardest(audit: Audit) -> list[dict[str, Any]]:
    return [
        {"score": score.score, "what": what, "name": one.name, "scale": one.scale, "q": one.q}
        | _ends(one.effect)
        for score in audit.scores
        for what, found in (("part", score.parts.hardest_parts), ("pair", score.parts.hardest_pairs))
        for one in found
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
            "rule": one.rule,
            "advice": one.sentence,
            "because": one.because,
            "collect": " | ".join(" + ".join(combination) for combination in one.collect),
        }
        for score in audit.scores
        for one in score.advice
    ]
