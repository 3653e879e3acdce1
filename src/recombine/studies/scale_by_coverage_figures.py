"""The figures of the study `scale-by-coverage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.lines import draw_lines, lines_info
from recombine.studies.base import Tables

if TYPE_CHECKING:
    from recombine.studies.scale_by_coverage import ScaleByCoverage

STRATA = {
    "r2_all_pairs_met": "all pairs met in training",
    "r2_some_pairs_unmet": "a pair never met",
    "r2_part_unseen": "a part never seen",
}
CONTROL = "control: independent functions"
FACETS = {"width": "wider network", "steps": "more examples", "number": "more combinations"}


def long_table(study: ScaleByCoverage, tables: Tables) -> pd.DataFrame:
    """A row a run, axis and stratum: `times` is the scale as a multiple of the smallest on its axis."""
    rows = []
    for axis, cells in study.axes.items():
        for width, steps, number in cells:
            runs = tables.runs[
                (tables.runs["width"] == width)
                & (tables.runs["steps"] == steps)
                & (tables.runs["number"] == number)
            ]
            place = {"width": width, "steps": steps, "number": number}[axis]
            smallest = {"width": study.widths, "steps": study.steps, "number": study.numbers}[axis][0]
            for family, columns in (
                (study.base.family.kind, STRATA),
                (study.control.kind, {"r2_held_out": CONTROL}),
            ):
                for column, name in columns.items():
                    part = runs[runs["family"] == family].reindex(columns=["replicate", column])
                    rows.append(
                        part.rename(columns={column: "r2"}).assign(
                            axis=axis, times=place / smallest, stratum=name
                        )
                    )
    return pd.concat(rows, ignore_index=True)


def figures(study: ScaleByCoverage, tables: Tables) -> list[Figure]:
    """Held-out R2 against scale, a curve a stratum, a panel for each thing that is scaled."""
    info = lines_info(
        long_table(study, tables),
        x="times",
        y="r2",
        series="stratum",
        facet="axis",
        labels={name: name for name in (*STRATA.values(), CONTROL)},
        facet_labels=FACETS,
        controls=[CONTROL],
        floor=-0.25,
        ceiling=1.0,
        x_title="scale, as a multiple of the smallest",
        y_title="held-out R²",
        caption_lead=(
            f"R² on held-out combinations, by what training showed of them. Width from {study.widths[0]} to "
            f"{study.widths[-1]}, steps from {study.steps[0]} to {study.steps[-1]} (every step brings fresh "
            f"examples), combinations from {study.numbers[0]} to {study.numbers[-1]}; what is not scaled is at its "
            "largest. In the control every combination is a function of its own, so that nothing can be recombined."
        ),
    )
    return [Figure("scale_by_coverage", "What does scale buy, and where?", info.caption, draw_lines(info))]
