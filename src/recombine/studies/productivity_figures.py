"""The figures of the study `productivity`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.lines import draw_lines, lines_info
from recombine.studies.base import Tables

if TYPE_CHECKING:
    from recombine.studies.productivity import Productivity

CONTROL = "control: independent functions"
SCORED = {"r2": "R²", "correlation": "correlation"}


def long_table(study: Productivity, tables: Tables) -> pd.DataFrame:
    """A row a run, number of parts and measure, with the network's name."""
    frame = study.by_parts(tables)
    if frame.empty:
        return pd.DataFrame(columns=["replicate", "network", "parts", "measure", "value"])
    width = frame["width"].map(lambda one: f"MLP, width {one}" if one else "")
    named = width.where(frame["model"] == "mlp", frame["model"])
    frame = frame.assign(network=named.where(frame["family"] != study.control.kind, CONTROL))
    return frame.melt(["replicate", "network", "parts"], list(SCORED), "measure", "value")


def figures(study: Productivity, tables: Tables) -> list[Figure]:
    """Scores against the number of parts, a line a network."""
    plain = [f"MLP, width {width}" for width in study.widths]
    structured = [] if study.structured is None else [study.structured.kind]
    info = lines_info(
        long_table(study, tables),
        x="parts",
        y="value",
        series="network",
        facet="measure",
        log=False,
        labels=[*plain, *structured, CONTROL],
        facet_labels=SCORED,
        controls=[CONTROL],
        floor=-0.25,
        ceiling=1.0,
        x_title="parts of the held-out combination",
        y_title="score",
        caption_lead=(
            f"Scores on combinations that were never trained, by their number of parts. Training combinations had at most "
            f"{study.trained}, so what stands right of {study.trained} has more parts than the network was ever shown "
            "together. R² is 1 where every answer is right and 0 where the mean of each task would do as well; the correlation "
            "within tasks says whether the answers still go with the truth when their size is wrong. In the control every "
            "combination is a function of its own, so that nothing can be recombined."
        ),
    )
    title = "What happens beyond the trained number of parts?"
    return [Figure("score_by_parts", title, info.caption, draw_lines(info))]
