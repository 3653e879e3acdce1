"""The figures of the study `construction`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.lines import draw_lines, lines_info
from recombine.studies.base import Tables

if TYPE_CHECKING:
    from recombine.studies.construction import Construction

ERRORS = {"sup_error": "largest error found", "bound": "bound of the theorem"}


def figures(study: Construction, tables: Tables) -> list[Figure]:
    """The error against knots and modules, trained against constructed, and what a memoriser needs."""
    return [
        _error_by(study, tables, "knots"),
        _error_by(study, tables, "modules"),
        _same_size(study, tables),
        _smallest_width(study, tables),
    ]


def _error_by(study: Construction, tables: Tables, along: str) -> Figure:
    fixed = {"knots": ("modules", study.base.space.width), "modules": ("knots", study.fixed)}[along]
    levels = {"knots": study.knots, "modules": study.modules}[along]
    runs = tables.runs
    runs = runs[(runs["part"] == "constructed") & (runs[fixed[0]] == fixed[1]) & runs[along].isin(levels)]
    table = runs.reindex(columns=["replicate", along, *ERRORS]).melt(
        ["replicate", along], list(ERRORS), "what", "error"
    )
    rest = f"{fixed[1]} {fixed[0]}"
    words = {
        "knots": f"Four times the knots should give a sixteenth of the error. All teachers have {rest}.",
        "modules": f"The network has the same hidden neurons everywhere, and {rest} in each square.",
    }[along]
    info = lines_info(
        table,
        x=along,
        y="error",
        series="what",
        labels=ERRORS,
        controls=["bound"],
        log_y=True,
        x_title={"knots": "knots of each square", "modules": "modules of the teacher"}[along],
        y_title="error",
        caption_lead=(
            "The largest difference between the constructed network and its teacher on sampled tasks and inputs, and the most "
            f"that the theorem allows. No weight is trained. {words}"
        ),
    )
    title = {
        "knots": "Does the error fall as the theorem says?",
        "modules": "Does the error grow with the number of modules?",
    }[along]
    return Figure(f"error_by_{along}", title, info.caption, draw_lines(info))


def _same_size(study: Construction, tables: Tables) -> Figure:
    runs = tables.runs.reindex(columns=[*tables.runs.columns.union(["sup_error", "rms_error"])])
    here = (runs["knots"] == study.same_size) & (runs["modules"] == study.base.space.width)
    runs = runs[here & runs["part"].isin(["constructed", "trained"])]
    with np.errstate(divide="ignore"):
        table = runs.assign(
            largest=np.log10(runs["sup_error"].astype(float)),
            usual=np.log10(runs["rms_error"].astype(float)),
        )
    info = dots_info(
        table,
        category="part",
        measures={"usual": "root mean square", "largest": "largest found"},
        labels={"constructed": "written down from the teacher", "trained": "trained"},
        x_title="log10 of the error",
        caption_lead=(
            f"Two networks of exactly the same widths (those of the construction with {study.same_size} knots) for the same "
            "teacher, on tasks of all combinations: left is better, and one unit is a factor of ten."
        ),
    )
    return Figure("same_size", "Does gradient descent find what exists?", info.caption, draw_dots(info))


def _smallest_width(study: Construction, tables: Tables) -> Figure:
    rows, censored = [], 0
    for family in (study.base.family, study.memorised):
        for number, found in study.smallest(tables, family).items():
            for seed, one in zip(study.seeds, found, strict=True):
                if one is not None:
                    rows.append((seed, family.kind, number, one.size))
                    censored += one.censored != "no"
    table = pd.DataFrame(rows, columns=["replicate", "family", "number", "width"])
    beyond = (
        f" {censored} of {len(rows)} lie beyond the widths that were tried and are shown at their end."
        if censored
        else ""
    )
    info = lines_info(
        table,
        x="number",
        y="width",
        series="family",
        labels={
            study.base.family.kind: "teacher with shared modules",
            study.memorised.kind: "independent functions",
        },
        controls=[study.memorised.kind],
        log_y=True,
        x_title="combinations to fit",
        y_title="smallest width",
        caption_lead=(
            f"The smallest width of {study.memory_depth} hidden layers at which a network trained for {study.memory_steps} steps "
            f"reaches R² {study.threshold:g} on the combinations that it was trained on, interpolated between widths.{beyond} "
            "Independent functions can only be memorised; a teacher's combinations share modules."
        ),
    )
    return Figure("smallest_width", "What does a memoriser need?", info.caption, draw_lines(info))
