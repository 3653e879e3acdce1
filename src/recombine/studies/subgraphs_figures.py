"""The figures of the study `subgraphs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recombine.figures.base import Figure
from recombine.figures.computation_graph import computation_graph_info, draw_computation_graph
from recombine.figures.lines import draw_lines, lines_info
from recombine.graphs.dynamic_programming import maximum_sum_graph
from recombine.graphs.labels import LABELS
from recombine.graphs.scratchpad import MISSING
from recombine.studies.base import Tables
from recombine.studies.subgraphs import ARMS, STEPS

if TYPE_CHECKING:
    from recombine.studies.subgraphs import Subgraphs

NAMES = {
    "correct": "correct",
    "restoration": "restored",
    "propagation": "wrong because of wrong ones before",
    "local": "wrong by itself",
}
"""The labels of steps in words."""


def figures(study: Subgraphs, tables: Tables) -> list[Figure]:
    """Accuracy by length, labels by depth, and one answer as a graph."""
    return [_by_length(study, tables), _by_depth(study, tables), _example(study, tables)]


def _by_length(study: Subgraphs, tables: Tables) -> Figure:
    info = lines_info(
        study.by_length(tables)[["replicate", "arm", "length", "right"]],
        x="length",
        y="right",
        series="arm",
        log=False,
        labels={arm: arm for arm in ARMS},
        floor=0.0,
        ceiling=1.0,
        x_title="numbers in the list",
        y_title="exact match, held out",
        caption_lead=(
            f"Held-out lists that are answered wholly right, by their length. Lists of up to {study.longest} numbers are trained on."
        ),
    )
    return Figure("by_length", "How far does it go?", info.caption, draw_lines(info))


def _by_depth(study: Subgraphs, tables: Tables) -> Figure:
    wide = study.by_depth(tables).reindex(columns=["replicate", "depth", *LABELS])
    long = wide.melt(["replicate", "depth"], list(LABELS), "label", "share")
    info = lines_info(
        long,
        x="depth",
        y="share",
        series="label",
        log=False,
        labels=NAMES,
        floor=0.0,
        ceiling=1.0,
        x_title="depth of the step in the graph",
        y_title="share of steps",
        caption_lead=(
            "Steps in lists that are longer than those trained on, by how deep they lie in the graph of the solution. Correct: right, "
            "as is all that it follows from; restored: right though something before it is not."
        ),
    )
    return Figure("by_depth", "Where do the steps go wrong?", info.caption, draw_lines(info))


def _example(study: Subgraphs, tables: Tables) -> Figure:
    frame = tables.others["graph-steps"].reindex(columns=["arm", "replicate", "length", "entries", "stated"])
    own = frame[(frame["arm"] == STEPS) & (frame["replicate"] == study.seeds[0])].dropna()
    graph, stated, said = None, None, ""
    if len(own):
        row = own[own["length"] == own["length"].max()].iloc[0]
        graph = maximum_sum_graph([int(one) for one in str(row["entries"]).split()])
        stated = np.array([MISSING if one == "?" else int(one) for one in str(row["stated"]).split()])
        said = f"The first held-out list of the greatest length, {row['entries']}, as the first replicate answers it with steps."
    info = computation_graph_info(graph, stated, caption_lead=said)
    return Figure("one_answer", "One answer as a graph", info.caption, draw_computation_graph(info))
