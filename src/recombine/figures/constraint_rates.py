"""Figures of the measurement `constraint-rates`: which constraints of an optimisation problem hold, by size, type and tolerance.

Titles are the questions that the figures answer, captions say what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from recombine.figures.axes import Reference
from recombine.figures.base import Figure
from recombine.figures.study import SCORE, dots, lines, with_columns

GROUPS = {
    "bounds": "bounds of single numbers",
    "hard": "what depends on the question",
    "total": "all constraints",
    "every": "instances without any violation",
}
"""Groups of constraints in words."""
TYPES = {
    "p-bounds": "active power within bounds",
    "q-bounds": "reactive power within bounds",
    "voltage-bounds": "voltage within bounds",
    "reference": "angle of the reference bus",
    "line-limits": "limits of lines",
    "p-balance-unloaded": "active balance, no load",
    "q-balance-unloaded": "reactive balance, no load",
    "p-balance-loaded": "active balance, loaded",
    "q-balance-loaded": "reactive balance, loaded",
}
"""Types of constraints of power flow in words."""
SOURCES = {
    "network": "network",
    "mean": "mean of training answers",
    "nearest": "answer to the nearest training question",
    "network_repaired": "network, after a repair",
}
"""Whose answers they are, in words."""
COLUMNS = ("replicate", "answers", "tolerance", "constraints", "rate")


def rates_by_size(runs: pd.DataFrame, *, x: str, facet: str, title: str, caption: str, **style: Any) -> Figure:
    """The rate of each group of constraints against the size of the network, beside that of the mean answer.

    Args:
        runs: One row per run: `replicate`, x, the facet, and the summary numbers of the measurement.
        x: The column of sizes.
        facet: The column whose levels have a panel each.
        **style: What `lines` takes besides.
    """
    runs = with_columns(runs, *(f"{group}_network" for group in GROUPS))
    long = runs.rename(columns={f"{group}_network": group for group in GROUPS})
    means = {"mean answer, balance": "hard_mean", "mean answer, all": "total_mean"}
    known = {words: runs[name].astype(float).mean() for words, name in means.items() if name in runs}
    return lines(
        long.melt(["replicate", facet, x], list(GROUPS), "group", "rate"),
        x=x,
        y="rate",
        series="group",
        facet=facet,
        labels=GROUPS,
        name="by_size",
        title=title,
        caption=caption,
        references=[Reference(float(value), words) for words, value in known.items() if pd.notna(value)],
        **{"y_title": "share of constraints that hold"} | SCORE | style,
    )


def rates_by_type(rates: pd.DataFrame, *, title: str, caption: str) -> Figure:
    """The rate of each type of constraint of power flow at the strictest tolerance, by whose answers they are.

    `rates` is the table `constraint-rates` of one network per replicate.
    """
    rates = with_columns(rates, *COLUMNS)
    rates = rates[rates["constraints"].isin(list(TYPES)) & (rates["tolerance"] == rates["tolerance"].min())]
    keys = ["replicate", "constraints"]
    wide = rates.pivot_table(index=keys, columns="answers", values="rate").reset_index()
    return dots(
        wide.reindex(columns=[*keys, *SOURCES]),
        category="constraints",
        measures=SOURCES,
        labels=TYPES,
        name="by_type",
        title=title,
        caption=caption,
        x_title="share of constraints that hold",
        **SCORE,
    )


def rates_by_tolerance(
    rates: pd.DataFrame, *, facet: str, facet_labels: Mapping[Any, str], title: str, caption: str
) -> Figure:
    """The rate of constraints that depend on the question, against the violation that is tolerated.

    Args:
        rates: The table `constraint-rates`.
        facet: The column whose levels have a panel each, for instance the problem.
        facet_labels: The levels in words.
    """
    rates = with_columns(rates, *COLUMNS)
    # The axis is logarithmic: it has no zero.
    chosen = (rates["constraints"] == "hard") & rates["answers"].isin(list(SOURCES)) & (rates["tolerance"] > 0)
    return lines(
        rates[chosen],
        x="tolerance",
        y="rate",
        series="answers",
        facet=facet,
        labels=SOURCES,
        facet_labels=facet_labels,
        title=title,
        caption=caption,
        y_title="share that holds",
        **SCORE,
    )
