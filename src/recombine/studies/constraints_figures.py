"""The figures of the study `constraints`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.extent import Reference
from recombine.figures.lines import draw_lines, lines_info
from recombine.figures.scatter import draw_scatter, scatter_info
from recombine.probes.constraint_rates import BOUNDS, EVERY, HARD, TOTAL
from recombine.studies.base import Tables
from recombine.studies.constraints_claims import PLAIN, PROBLEMS, SMALL

if TYPE_CHECKING:
    from recombine.studies.constraints import Constraints

KINDS = {
    BOUNDS: "bounds of single numbers",
    HARD: "what depends on the question",
    TOTAL: "all constraints",
    EVERY: "instances without any violation",
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
"""Whose answers they are."""


def figures(study: Constraints, tables: Tables) -> list[Figure]:
    """Rates by size, by type, over tolerances, and against the error of numbers."""
    rates = tables.others["constraint-rates"].reindex(
        columns=[*study.cells, "replicate", "answers", "tolerance", "constraints", "rate"]
    )
    return [
        _by_size(study, tables.runs),
        _by_type(study, rates),
        _by_arm(study, tables.runs),
        _by_tolerance(study, rates),
        _by_error(tables.runs),
    ]


def _plain(study: Constraints, frame: pd.DataFrame) -> pd.DataFrame:
    """The largest plain network of each problem."""
    widest = {problem: study.widths[-1] if problem == SMALL else study.usual for problem in PROBLEMS}
    chosen = (frame["arm"] == PLAIN) & (frame["model"] == "decoder")
    return frame[chosen & (frame["width"] == frame["problem"].map(widest))]


def _by_size(study: Constraints, runs: pd.DataFrame) -> Figure:
    names = {f"{kind}_network": kind for kind in KINDS}
    columns = ["replicate", "problem", "model", "width", "arm", *names, *(f"{kind}_mean" for kind in KINDS)]
    own = runs.reindex(columns=columns)
    own = own[(own["problem"] == SMALL) & (own["arm"] == PLAIN)]
    long = own.rename(columns=names).melt(["replicate", "model", "width"], list(KINDS), "kind", "rate")
    references = [
        Reference(float(own[f"{kind}_mean"].mean()), f"mean answer, {word}")
        for kind, word in ((HARD, "balance"), (TOTAL, "all"))
        if own[f"{kind}_mean"].notna().any()
    ]
    info = lines_info(
        long,
        x="width",
        y="rate",
        series="kind",
        facet="model",
        labels=KINDS,
        floor=0.0,
        ceiling=1.0,
        references=references,
        x_title="width of the network",
        y_title="share of constraints that hold",
        caption_lead=(
            "Held-out instances of the 9-bus network, answered by networks of three sizes, at the strictest tolerance (0.01 per unit). "
            "Dashed: the answer that is the mean of training, whatever is asked."
        ),
    )
    return Figure("by_size", "Does size bring feasibility?", info.caption, draw_lines(info))


def _by_type(study: Constraints, rates: pd.DataFrame) -> Figure:
    own = _plain(study, rates)
    own = own[(own["problem"] == SMALL) & own["constraints"].isin(list(TYPES))]
    own = own[own["tolerance"] == own["tolerance"].min()]
    wide = own.pivot_table(index=["replicate", "constraints"], columns="answers", values="rate").reset_index()
    info = dots_info(
        wide.reindex(columns=["replicate", "constraints", *SOURCES]),
        category="constraints",
        measures=SOURCES,
        labels=TYPES,
        floor=0.0,
        ceiling=1.0,
        x_title="share of constraints that hold",
        caption_lead=(
            "Constraints of the 9-bus network by their type, at the strictest tolerance: the largest decoder, two answers that need no "
            "network, and the decoder's answers after a Newton solve that keeps their controls."
        ),
    )
    return Figure("by_type", "Which constraints hold?", info.caption, draw_dots(info))


def _by_arm(study: Constraints, runs: pd.DataFrame) -> Figure:
    measures = {
        "hard_network": "what depends on the question",
        "total_network": "all constraints",
        "total_mean": "all constraints, mean answer",
        "total_network_repaired": "all constraints, after a repair",
    }
    own = runs.reindex(columns=["replicate", "problem", "model", "width", "arm", *measures])
    own = own[(own["model"] == "decoder") & (own["width"] == study.usual)]
    names = own["problem"].astype(str) + ", " + own["arm"].astype(str)
    info = dots_info(
        own.assign(cell=names),
        category="cell",
        measures=measures,
        labels={name: name for name in dict.fromkeys(names)},
        floor=0.0,
        ceiling=1.0,
        x_title="share of constraints that hold",
        caption_lead=(
            "Decoders of the middle size on three problems: only the answer, with intermediate steps, and with a reward for constraints "
            "that hold."
        ),
    )
    return Figure("by_arm", "Do steps or a reward help?", info.caption, draw_dots(info))


def _by_tolerance(study: Constraints, rates: pd.DataFrame) -> Figure:
    own = _plain(study, rates)
    own = own[(own["constraints"] == HARD) & own["answers"].isin(list(SOURCES))]
    # A tolerance of nothing has no place on this axis.
    own = own[own["tolerance"] > 0]
    info = lines_info(
        own[["replicate", "tolerance", "rate", "answers", "problem"]],
        x="tolerance",
        y="rate",
        series="answers",
        facet="problem",
        labels=SOURCES,
        facet_labels={problem: problem for problem in PROBLEMS},
        floor=0.0,
        ceiling=1.0,
        x_title="tolerance",
        y_title="share that holds",
        caption_lead=(
            "Constraints that depend on the question (balance at loaded buses; capacities) by how much they may be violated: in per unit, "
            "of which 0.01 is 1 MW, or as a share of the capacity."
        ),
    )
    return Figure("by_tolerance", "How far off are they?", info.caption, draw_lines(info))


def _by_error(runs: pd.DataFrame) -> Figure:
    columns = ["replicate", "problem", "model", "width", "arm", "error_network", "hard_network"]
    own = runs.reindex(columns=columns)
    own = own[own["problem"] == SMALL]
    arms = own["model"].astype(str).where(own["arm"] == PLAIN, own["arm"].astype(str))
    info = scatter_info(
        own.assign(group=arms, name="width " + own["width"].astype(str)),
        "error_network",
        "hard_network",
        "group",
        name="name",
        x_title="error of the numbers (about 1: as far off as the mean answer)",
        y_title="balance at loaded buses",
        caption_lead=(
            "Each point is a network on the 9-bus problem: how far its numbers are from the best ones, in units of how much those "
            "differ, against the share of loaded buses at which power balances within 0.01 per unit."
        ),
    )
    return Figure("by_error", "Does a smaller error bring balance?", info.caption, draw_scatter(info))
