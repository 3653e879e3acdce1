"""Accuracy of linear probes for each factor at each layer of a model, with chance and the control task."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.axes import finite
from recombine.figures.palette import CONTROL_DASHES, NOTE, Style, stroke_by
from recombine.figures.theme import CONTROL, TRAINED, WIDTH, message_chart, panelled, tooltips, unique_labels, values
from recombine.figures.wording import cut, sentences
from recombine.plain import plain

MOST_LAYERS = 24
"""Largest number of layers shown: an even selection, with the best layer of each factor."""
MOST_FACTORS = 9
ACCURACY, TASK, CHANCE = "accuracy", "control task", "chance"
STYLES = (
    Style("accuracy", ACCURACY, TRAINED),
    Style("control", TASK, CONTROL, CONTROL_DASHES[0]),
    Style("chance", CHANCE, NOTE, CONTROL_DASHES[1]),
)
CAPTION = (
    "Accuracy of a linear probe for each factor at each layer, on combinations that the probe was not fitted on. Each "
    "value has the same weight. Bars are 95 % intervals. Control task: the same probe, fitted to values assigned to "
    "combinations at random. It shows how well a layer identifies single combinations. The ringed layer was chosen on "
    "combinations other than those it is scored on."
)
GAP = 34
COLUMNS = ["layer", "factor", "accuracy", "low", "high", "control", "chance", "chosen"]


class LayerRow(NamedTuple):
    """One factor at one layer."""

    layer: str
    factor: str
    accuracy: float
    low: float
    high: float
    control: float
    chance: float


class AuditLayersInfo(NamedTuple):
    """The content of the figure."""

    layers: tuple[str, ...]
    """From the first to the last, in the order of the data."""
    factors: tuple[str, ...]
    rows: pd.DataFrame
    """Columns: `COLUMNS`. One row per factor and layer that is shown."""
    domain: tuple[float, float]
    caption: str


def audit_layers_info(rows: Sequence[LayerRow], chosen: Mapping[str, str] | None = None) -> AuditLayersInfo:
    """The accuracies to show.

    Args:
        rows: One row per factor and layer, with layers from first to last.
        chosen: The chosen layer of each factor.

    Returns:
        The input of `draw_audit_layers`.
    """
    chosen = chosen or {}
    layers = list(dict.fromkeys(row.layer for row in rows))
    factors = list(dict.fromkeys(row.factor for row in rows))
    best = {name: max((row for row in rows if row.factor == name), key=lambda row: row.accuracy) for name in factors}
    some = factors
    if len(factors) > MOST_FACTORS:
        worst = sorted(factors, key=lambda name: best[name].accuracy)[:MOST_FACTORS]
        some = [name for name in factors if name in worst]
    few = layers
    if len(layers) > MOST_LAYERS:
        wanted = {best[name].layer for name in some} | {chosen[name] for name in some if name in chosen}
        even = np.linspace(0, len(layers) - 1, max(MOST_LAYERS - len(wanted), 2)).round().astype(int)
        few = [name for index, name in enumerate(layers) if name in wanted or index in even]
    named = dict(zip(few, unique_labels([cut(plain(name)) for name in few]), strict=True))
    titled = dict(zip(some, unique_labels([cut(plain(name)) for name in some]), strict=True))
    kept = [
        (named[row.layer], titled[row.factor], *row[2:], chosen.get(row.factor) == row.layer)
        for row in rows
        if row.layer in named and row.factor in titled
    ]
    frame = pd.DataFrame(kept, columns=COLUMNS)
    seen = [0.0, 1.0, *finite([*frame["accuracy"], *frame["control"]])]
    fewer = f"{len(few)} of {len(layers):,} layers are shown, including the best layer of each factor."
    lowest = f"{len(some)} of {len(factors):,} factors are shown: those with the lowest accuracy."
    caption = sentences(CAPTION, fewer if len(few) < len(layers) else "", lowest if len(some) < len(factors) else "")
    return AuditLayersInfo(tuple(named.values()), tuple(titled.values()), frame, (min(seen), max(seen)), caption)


def draw_audit_layers(info: AuditLayersInfo) -> ChartType:
    """Draw one panel per factor."""
    if not len(info.rows):
        return message_chart("No layer was probed.")
    across = min(len(info.factors), 3 if len(info.layers) <= 12 else 2)
    width = min((WIDTH - 20 - GAP * (across - 1)) / across, max(70.0 * len(info.layers), 240.0))
    description = "Accuracy of linear probes for each factor at each layer, with control task and chance"
    return panelled(functools.partial(_panel, info, width), info.factors, across, GAP, description)


def _panel(info: AuditLayersInfo, width: float, name: str, first: bool) -> ChartType:
    here = info.rows[info.rows["factor"] == name]
    flat = max(len(layer) for layer in info.layers) * 6.8 <= width / len(info.layers)
    axis = alt.Axis(labelAngle=0 if flat else -50, grid=False, labelLimit=130, labelOverlap=False)
    x = alt.X("layer:N", sort=None, title=None, axis=axis)
    x = x.scale(type="point", padding=0.35, domain=list(info.layers))
    scale = alt.Scale(domain=list(info.domain), nice=False)
    title = "accuracy" if first else None
    y = alt.Y("value:Q", scale=scale, title=title, axis=alt.Axis(format=".2~f", tickCount=6, labels=first))
    legend = alt.Legend(title=None, orient="top", symbolType="stroke", symbolSize=420, columnPadding=22, offset=14)
    colour, dash = stroke_by(STYLES, legend)
    long = pd.concat([here.assign(series=style.name, value=here[style.key]) for style in STYLES])
    points = here.assign(series=ACCURACY, value=here["accuracy"])
    numbers = {"accuracy:Q": ACCURACY, "low:Q": "interval from", "high:Q": "to"}
    numbers |= {"control:Q": TASK, "chance:Q": CHANCE}
    tooltip = tooltips({"layer:N": "layer", "factor:N": "factor"} | numbers, ".3f")

    def over(frame: pd.DataFrame) -> alt.Chart:
        return alt.Chart(values(frame)).encode(x=x, color=colour)

    ring: dict[str, Any] = {"size": 260, "opacity": 1, "strokeWidth": 2, "fill": "transparent"}
    layers = [
        over(long).mark_line(strokeWidth=2.5).encode(y=y, strokeDash=dash),
        over(points).mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale, title=title), y2="high:Q"),
        over(points).mark_point(filled=True, size=70, opacity=1).encode(y=y, tooltip=tooltip),
        over(points[points["chosen"]]).mark_point(**ring).encode(y=y),
    ]
    panel = alt.TitleParams(name, anchor="middle", limit=round(width))
    return alt.layer(*layers).properties(width=width, height=240, title=panel)
