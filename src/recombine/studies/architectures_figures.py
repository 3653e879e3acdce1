"""The figures of the study `architectures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.extent import Reference
from recombine.figures.lines import draw_lines, lines_info
from recombine.studies.architectures import SAID
from recombine.studies.base import Tables

if TYPE_CHECKING:
    from recombine.studies.architectures import Architectures


def figures(study: Architectures, tables: Tables) -> list[Figure]:
    """Held-out R2 against the number of combinations, and the numbers at which the threshold is reached."""
    columns = ["replicate", "family", "network", "number", "r2_in", "r2_held_out"]
    runs = tables.runs.reindex(columns=columns)
    runs = runs[runs["family"] == study.base.family.kind]
    both = pd.concat(
        [
            runs.assign(where="held-out combinations", r2=runs["r2_held_out"]),
            runs.assign(where="trained combinations", r2=runs["r2_in"]),
        ],
        ignore_index=True,
    )
    info = lines_info(
        both,
        x="number",
        y="r2",
        series="network",
        facet="where",
        labels=SAID,
        floor=-0.25,
        ceiling=1.0,
        references=[Reference(study.threshold, "", "held-out combinations")],
        x_title="training combinations",
        y_title="R²",
        caption_lead=(
            "R² on combinations that were never trained (left; one common test for all) and on those that were (right), "
            f"against the number of training combinations. The number at which a curve on the left reaches the dashed line, "
            f"{study.threshold:g}, is what that architecture needs. All have the same recipe and number of steps; in a "
            "replicate they have the same teacher and combinations."
        ),
    )
    return [
        Figure(
            "score_by_architecture",
            "Which network needs fewer combinations?",
            info.caption,
            draw_lines(info),
        ),
        _needed(study, tables),
    ]


def _needed(study: Architectures, tables: Tables) -> Figure:
    rows, beyond = [], 0
    for network in SAID:
        for seed, one in zip(study.seeds, study.needed(tables, network), strict=True):
            if one is not None:
                rows.append((seed, network, one.size))
                beyond += one.censored != "no"
    info = dots_info(
        pd.DataFrame(rows, columns=["replicate", "network", "number"]),
        category="network",
        measures={"number": "training combinations"},
        labels=SAID,
        floor=0.0,
        x_title=f"training combinations for a held-out R² of {study.threshold:g}",
        caption_lead=(
            f"How many training combinations each network needs until held-out R² is {study.threshold:g}, interpolated between "
            f"the numbers that were tried ({study.numbers[0]} to {study.numbers[-1]}): left is better."
            + (
                f" {beyond} of {len(rows)} lie beyond these numbers and are shown at their end."
                if beyond
                else ""
            )
        ),
    )
    return Figure(
        "combinations_needed", "How many combinations does each need?", info.caption, draw_dots(info)
    )
