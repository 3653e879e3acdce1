"""A map of the combination space: trained and held-out combinations with their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.summary import require
from recombine.figures.theme import message_chart, quality_colour, themed, tooltips, unique_labels, values
from recombine.figures.wording import number as in_words, sentences

MOST = 40
"""Largest number of rows. More constituents than this are grouped."""

COLUMNS = ("run", "replicate", "number", "constituents", "region", "stratum", "error", "spread")
CELL_COLUMNS = ["number", "row", "column", "part", "r2", "combinations", "met", "marked"]
LOWER = "M-1,-1L1,1L-1,1Z"
UPPER = "M-1,-1L1,-1L1,1Z"
CROSS = "M-1,-1L1,1M1,-1L-1,1"
GAP = 0.08
MOST_ACROSS = 4
CAPTION = (
    "Each square represents two constituents and all combinations that contain both. Below the diagonal: training "
    "combinations. Above the diagonal: held-out combinations. On the diagonal: all combinations that contain one "
    "constituent, trained (lower half) and held out (upper half). The colour is the {score} of these combinations; "
    "negative values are drawn as 0. A cross marks two constituents that never occur together in training: the square "
    "below the diagonal is empty, and the square above it shows the score on the new pair. Each map shows the first "
    "replicate of its size."
)
PANEL = 236
"""Width of one map in pixels, unless its cells would be too small."""


class Panel(NamedTuple):
    """One map: the first replicate of one training-set size."""

    number: int
    r2_trained: float
    r2_held_out: float


class CombinationMapInfo(NamedTuple):
    """The content of the figure."""

    labels: tuple[str, ...]
    panels: tuple[Panel, ...]
    cells: pd.DataFrame
    """Columns: `CELL_COLUMNS`. One row per cell that is not empty. `row` and `column` count from 0. `part` is trained
    (below the diagonal) or held out (above it); the diagonal has both. `met`: both constituents occur together in
    training. `marked`: they do not, but could."""
    group: int
    """Number of constituents per row: 1, unless there are too many to show."""
    caption: str
    score: str = "R²"
    """What the colours show."""


def combination_map_info(
    combinations: pd.DataFrame, labels: Sequence[str] | None = None, score: str = "R²"
) -> CombinationMapInfo:
    """Pooled scores of all pairs of constituents, for the first replicate of each training-set size.

    Args:
        combinations: The store's table of combinations: one row per run and combination.
        labels: The names of the constituents.
        score: What is one minus the pooled error over the pooled spread, for the caption and the legend.

    Returns:
        The input of `draw_combination_map`.
    """
    require(combinations, COLUMNS, "combinations")
    named = [str(label) for label in labels or ()]
    highest = max((int(part) for parts in combinations["constituents"] for part in parts), default=-1)
    count = max(len(named), highest + 1)
    named += [str(part) for part in range(len(named), count)]
    group = max(1, math.ceil(count / MOST))
    panels, cells = [], []
    for number in sorted({int(size) for size in combinations["number"]}):
        chosen = combinations[combinations["number"] == number]
        # One run only: each replicate has other training combinations.
        chosen = chosen[chosen["replicate"] == chosen["replicate"].min()]
        chosen = chosen[chosen["run"] == chosen["run"].iloc[0]]
        panel, panel_cells = _panel(chosen, number, count, group)
        panels.append(panel)
        cells.append(panel_cells)
    every = pd.concat(cells, ignore_index=True) if cells else pd.DataFrame(columns=CELL_COLUMNS)
    ends = [(named[start], named[min(start + group, count) - 1]) for start in range(0, count, group)]
    shown = [first if first == last else f"{first} \N{HORIZONTAL ELLIPSIS} {last}" for first, last in ends]
    many = (
        f"There are {count} constituents, too many to draw: each row represents up to {group} neighbours, and a cross "
        "marks groups without any pair in training."
    )
    caption = sentences(CAPTION.format(score=f"pooled {score}"), many if group > 1 else "")
    return CombinationMapInfo(tuple(unique_labels(shown)), tuple(panels), every, group, caption, score)


def _panel(frame: pd.DataFrame, number: int, count: int, group: int) -> tuple[Panel, pd.DataFrame]:
    """The cells of one run."""
    members = np.zeros((len(frame), count))
    for index, parts in enumerate(frame["constituents"]):
        members[index, [int(part) for part in parts]] = 1
    # The number of members of each group in each combination.
    counts = np.add.reduceat(members, np.arange(0, count, group), axis=1)
    region, stratum = frame["region"].to_numpy(), frame["stratum"].to_numpy()
    error, spread = frame["error"].to_numpy(float), frame["spread"].to_numpy(float)
    finite = np.isfinite(error) & np.isfinite(spread)
    # A sample of a large support may lack some pairs of the training set. The strata are exact.
    trained = counts[(region == "trained") | (stratum == "all_pairs_met")]
    met = trained.T @ trained > 0
    marked = (counts.T @ counts > 0) & ~met & ~np.eye(len(met), dtype=bool)
    below = np.tri(len(met), dtype=bool)
    cells, pooled = [], []
    for part, name, inside in (("trained", "trained", below), ("held out", "held_out", below.T)):
        chosen = (region == name) & finite
        held = (counts[chosen] > 0).astype(float)
        r2 = _r2((held.T * error[chosen]) @ held, (held.T * spread[chosen]) @ held)
        holding = (held.T @ held).astype(int)
        row, column = shown = np.nonzero(inside & ((holding > 0) | marked))
        scores = {"part": part, "r2": r2[shown], "combinations": holding[shown]}
        pairs = {"number": number, "row": row, "column": column}
        cells.append(pd.DataFrame(pairs | scores | {"met": met[shown], "marked": marked[shown]}))
        pooled.append(float(_r2(error[chosen].sum(), spread[chosen].sum())))
    return Panel(number, *pooled), pd.concat(cells, ignore_index=True)


def _r2(error: np.ndarray, spread: np.ndarray) -> np.ndarray:
    return np.where(spread > 0, 1 - error / np.where(spread > 0, spread, 1), np.nan)


def draw_combination_map(info: CombinationMapInfo) -> ChartType:
    """Draw one map per training-set size, from few training combinations to many."""
    if not info.panels or not len(info.cells):
        return message_chart("No scores of combinations yet: there is no map to show.")
    # Larger cells do not help.
    step = min(max(PANEL / len(info.labels), 11.0), 34.0)
    frame = info.cells.assign(
        down=[info.labels[row] for row in info.cells["row"]],
        across=[info.labels[column] for column in info.cells["column"]],
        shown=info.cells["r2"].clip(0, 1),
        words=["never" if marked else "yes" for marked in info.cells["marked"]],
    )
    across = max(1, min(MOST_ACROSS, int(MOST_ACROSS * PANEL / (step * len(info.labels)) + 0.01)))
    panels = [
        _draw_panel(frame[frame["number"] == panel.number], panel, info, step, first=index % across == 0)
        for index, panel in enumerate(info.panels)
    ]
    chart = alt.concat(*panels, columns=across, spacing=22)
    return themed(chart, "Scores of pairs of constituents, trained and held out, for each training-set size")


def _draw_panel(cells: pd.DataFrame, panel: Panel, info: CombinationMapInfo, step: float, first: bool) -> ChartType:
    labels, score = info.labels, info.score
    # Short labels are horizontal, longer ones are vertical.
    short = max(len(label) for label in labels) <= 2
    size = min(12, max(step, 12))
    position = alt.Scale(domain=list(labels), paddingInner=GAP, paddingOuter=GAP / 2)
    plain: dict[str, Any] = {"ticks": False, "domain": False, "labelOverlap": True, "labelPadding": 4}
    x = alt.X("across:N", scale=position, title=None, sort=None)
    x = x.axis(labelAngle=0 if short else -90, labelFontSize=size, labelLimit=110, labelSeparation=3, **plain)
    y = alt.Y("down:N", scale=position, title=None, sort=None)
    y = y.axis(labels=first, labelFontSize=size, labelLimit=150, **plain)
    ticks = {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2~f"}
    colour = quality_colour("shown:Q", f"{score} of the combinations", (0, 1), gradientLength=300, **ticks)
    tooltip = [
        *tooltips({"part:N": "combinations", "down:N": "constituent", "across:N": "with"}),
        *tooltips({"r2:Q": f"pooled {score}"}, ".3f"),
        *tooltips({"combinations:Q": "number of combinations", "words:N": "together in training"}),
    ]

    def layer(kept: pd.Series) -> alt.Chart:
        return alt.Chart(values(cells[kept])).encode(x=x, y=y, tooltip=tooltip)

    scored, diagonal = cells["r2"].notna(), cells["row"] == cells["column"]
    half = {"filled": True, "opacity": 1, "strokeWidth": 0, "size": (step * (1 - GAP)) ** 2}
    cross = {"shape": CROSS, "filled": False, "opacity": 0.95, "strokeWidth": 1.4, "size": (step * 0.36) ** 2}
    bright = scored & (cells["shown"] > 0.6)
    lines = [
        f"above: held out, {score} {in_words(panel.r2_held_out)}",
        f"below: trained, {score} {in_words(panel.r2_trained)}",
    ]
    title = alt.TitleParams(f"{panel.number} training combinations", subtitle=lines)
    return alt.layer(
        layer(scored & ~diagonal).mark_rect().encode(color=colour),
        layer(scored & diagonal & (cells["part"] == "trained")).mark_point(shape=LOWER, **half).encode(color=colour),
        layer(scored & diagonal & (cells["part"] == "held out")).mark_point(shape=UPPER, **half).encode(color=colour),
        # With equal scores on both sides, only this line separates them.
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_rule(color="#1c1f24", opacity=0.6, strokeWidth=1)
        .encode(x=alt.value(0), y=alt.value(0), x2=alt.value("width"), y2=alt.value("height")),
        # A cross must be visible on a bright cell, on a dark cell and on none.
        layer(cells["marked"] & bright).mark_point(color="#1c1f24", **cross),
        layer(cells["marked"] & scored & ~bright).mark_point(color="#ffffff", **cross),
        layer(cells["marked"] & ~scored).mark_point(color="#8a9199", **cross),
    ).properties(width=step * len(labels), height=step * len(labels), title=title)
