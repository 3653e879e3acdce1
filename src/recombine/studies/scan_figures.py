"""The figures of the study `scan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.lines import draw_lines, lines_info
from recombine.figures.scatter import draw_scatter, scatter_info
from recombine.studies.base import Tables
from recombine.studies.scan_claims import CELLS

if TYPE_CHECKING:
    from recombine.studies.scan import Scan

MEASURES = {"accuracy_in": "trained commands", "accuracy_held_out": "held-out commands"}
EDGES = np.array([0, 4, 8, 12, 16, 22, 28, 36, 48])
"""Numbers of actions at which answers are grouped."""


def figures(study: Scan, tables: Tables) -> list[Figure]:
    """Accuracy by split, by size, by length of the answer, and against what was known before training."""
    runs = tables.runs[tables.runs["family"] == study.base.family.kind]
    usual = runs
    for name, value in study.usual.items():
        usual = usual[usual[name] == value]
    return [_by_split(usual), *_by_size(study, runs), _by_length(study, tables), _by_certificate(usual)]


def _by_split(runs: pd.DataFrame) -> Figure:
    info = dots_info(
        runs.reindex(columns=["replicate", "split", *MEASURES]),
        category="split",
        measures=MEASURES,
        labels=CELLS,
        floor=0.0,
        ceiling=1.0,
        x_title="exact match",
        caption_lead="How many commands are answered wholly right, trained and held out, by what was held out.",
    )
    return Figure("by_split", "Which commands does it fail on?", info.caption, draw_dots(info))


def _by_size(study: Scan, runs: pd.DataFrame) -> list[Figure]:
    """Held-out accuracy against one thing that grows, the others as usual."""
    found = []
    for name, title in (
        ("width", "width"),
        ("layers", "layers"),
        ("share", "share of the training commands"),
    ):
        chosen = runs
        for other, value in study.usual.items():
            chosen = chosen if other == name else chosen[chosen[other] == value]
        # Splits that have one size only make no line.
        sizes = chosen.groupby("split")[name].nunique()
        chosen = chosen[chosen["split"].isin(sizes.index[sizes > 1])]
        info = lines_info(
            chosen.reindex(columns=["replicate", "split", name, "accuracy_held_out"]),
            x=name,
            y="accuracy_held_out",
            series="split",
            labels=CELLS,
            floor=0.0,
            ceiling=1.0,
            x_title=title,
            y_title="exact match, held out",
            caption_lead=f"Held-out commands that are answered wholly right, by {title}; all else is as usual.",
        )
        found.append(Figure(f"by_{name}", f"Does more help? By {title}", info.caption, draw_lines(info)))
    return found


def _by_length(study: Scan, tables: Tables) -> Figure:
    frame = study.held_out(tables)
    # The middle of the group that an answer is in.
    place = np.clip(np.searchsorted(EDGES, frame["actions"]), 1, len(EDGES) - 1)
    middle = (EDGES[:-1] + 1 + EDGES[1:]) / 2
    # One number for each replicate: single commands are right or wrong.
    grouped = frame.assign(actions=middle[place - 1], right=frame["whole"])
    shown = grouped.groupby(["replicate", "split", "actions"])["right"].mean().reset_index()
    info = lines_info(
        shown,
        x="actions",
        y="right",
        series="split",
        log=False,
        labels=CELLS,
        floor=0.0,
        ceiling=1.0,
        x_title="actions in the right answer",
        y_title="exact match, held out",
        caption_lead=(
            "Held-out commands that are answered wholly right, by how many actions the answer has, in groups. Where longer "
            "answers were held out, training ended at 22 actions."
        ),
    )
    return Figure("by_length", "Do long answers fail?", info.caption, draw_lines(info))


def _by_certificate(runs: pd.DataFrame) -> Figure:
    info = scatter_info(
        runs.reindex(columns=["split", "compound_divergence", "accuracy_held_out", "replicate"]),
        "compound_divergence",
        "accuracy_held_out",
        "split",
        labels=CELLS,
        name="replicate",
        x_title="compound divergence, known before training",
        y_title="exact match, held out",
        caption_lead=(
            "What was known of a split before training against what came of it: how differently training and test put the same "
            "words together (0: alike, 1: nothing in common)."
        ),
    )
    return Figure("by_certificate", "Is the failure told beforehand?", info.caption, draw_scatter(info))
