"""How well each factor can be read off each layer of a model, with chance and the control task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.audit_names import cut
from recombine.figures.extent import finite
from recombine.figures.palette import NOTE
from recombine.figures.theme import CONTROL, TRAINED, WIDTH, message_chart, themed, unique_labels, values
from recombine.plain import plain

MOST_LAYERS = 24
"""So many layers are shown; of more, an even choice with the best of each factor."""
MOST_FACTORS = 9
ACCURACY, TASK, CHANCE = "accuracy", "control task", "chance"
SERIES = {ACCURACY: (TRAINED, [1, 0]), TASK: (CONTROL, [6, 4]), CHANCE: (NOTE, [2, 3])}
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
    """What the figure shows."""

    layers: tuple[str, ...]
    """From the first to the last, as they came."""
    factors: tuple[str, ...]
    rows: pd.DataFrame
    """`COLUMNS`; a row for each factor and layer that is shown."""
    domain: tuple[float, float]
    every: tuple[int, int]
    """How many layers and factors there are, shown or not."""

    @property
    def caption(self) -> str:
        """How to read the figure."""
        text = (
            "For each factor: how often a linear probe names its value right, layer by layer, on combinations that it "
            "was not fitted on; each value counts alike. Bars are 95 % intervals. Control task: the same probe asked for "
            "values dealt out to combinations at random, which shows how much a layer knows combinations by heart. "
            "The ringed layer was chosen on other combinations than those it is scored on."
        )
        if self.every[0] > len(self.layers):
            text += f" {len(self.layers)} of {self.every[0]:,} layers are shown, the best of each factor among them."
        if self.every[1] > len(self.factors):
            text += f" {len(self.factors)} of {self.every[1]:,} factors are shown, those read worst."
        return text


def audit_layers_info(
    rows: Sequence[LayerRow], chosen: Mapping[str, str] | None = None, most: int = MOST_LAYERS
) -> AuditLayersInfo:
    """The sites as they came; `chosen` names the layer of each factor."""
    chosen = chosen or {}
    layers = list(dict.fromkeys(row.layer for row in rows))
    factors = list(dict.fromkeys(row.factor for row in rows))
    best = {
        name: max((row for row in rows if row.factor == name), key=lambda row: row.accuracy)
        for name in factors
    }
    some = factors
    if len(factors) > MOST_FACTORS:
        worst = sorted(factors, key=lambda name: best[name].accuracy)[:MOST_FACTORS]
        some = [name for name in factors if name in worst]
    few = layers
    if len(layers) > most:
        wanted = {best[name].layer for name in some} | {chosen[name] for name in some if name in chosen}
        even = [
            layers[at]
            for at in np.linspace(0, len(layers) - 1, max(most - len(wanted), 2)).round().astype(int)
        ]
        few = [name for name in layers if name in wanted or name in even]
    named = dict(zip(few, unique_labels([cut(plain(name)) for name in few]), strict=True))
    titled = dict(zip(some, unique_labels([cut(plain(name)) for name in some]), strict=True))
    kept = [
        (named[row.layer], titled[row.factor], *row[2:], chosen.get(row.factor) == row.layer)
        for row in rows
        if row.layer in named and row.factor in titled
    ]
    frame = pd.DataFrame(kept, columns=COLUMNS)
    seen = [0.0, 1.0, *finite([*frame["accuracy"], *frame["control"]])]
    return AuditLayersInfo(
        layers=tuple(named.values()),
        factors=tuple(titled.values()),
        rows=frame,
        domain=(min(seen), max(seen)),
        every=(len(layers), len(factors)),
    )


def draw_audit_layers(info: AuditLayersInfo) -> ChartType:
    """The figure: a panel a factor."""
    if not len(info.rows):
        return message_chart("Nothing was read off any layer.")
    across = min(len(info.factors), 3 if len(info.layers) <= 12 else 2)
    width = (WIDTH - 20 - GAP * (across - 1)) / across
    width = min(width, max(70.0 * len(info.layers), 240.0))
    panels = [_panel(info, name, width, place % across == 0) for place, name in enumerate(info.factors)]
    chart = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=across, spacing=GAP)
    return themed(
        chart, "Accuracy of linear probes for each factor at each layer, with control task and chance"
    )


def _panel(info: AuditLayersInfo, name: str, width: float, first: bool) -> ChartType:
    here = info.rows[info.rows["factor"] == name]
    longest = max(len(layer) for layer in info.layers) * 6.8
    flat = longest <= width / len(info.layers)
    axis = alt.Axis(labelAngle=0 if flat else -50, grid=False, labelLimit=130, labelOverlap=False)
    x = alt.X("layer:N", sort=None, title=None, axis=axis)
    x = x.scale(type="point", padding=0.35, domain=list(info.layers))
    scale = alt.Scale(domain=list(info.domain), nice=False)
    title = "share read right" if first else None
    y = alt.Y("value:Q", scale=scale, title=title, axis=alt.Axis(format=".2~f", tickCount=6, labels=first))
    names = list(SERIES)
    legend = alt.Legend(
        title=None, orient="top", symbolType="stroke", symbolSize=420, columnPadding=22, offset=14
    )
    colour = alt.Color(
        "series:N",
        sort=None,
        legend=legend,
        scale=alt.Scale(domain=names, range=[SERIES[one][0] for one in names]),
    )
    dash = alt.StrokeDash(
        "series:N",
        sort=None,
        legend=legend,
        scale=alt.Scale(domain=names, range=[SERIES[one][1] for one in names]),
    )
    columns = dict(zip(names, ("accuracy", "control", "chance"), strict=True))
    long = pd.concat([here.assign(series=one, value=here[column]) for one, column in columns.items()])
    points = here.assign(series=ACCURACY, value=here["accuracy"])
    tooltip = [
        alt.Tooltip("layer:N", title="layer"),
        alt.Tooltip("factor:N", title="factor"),
        alt.Tooltip("accuracy:Q", title="accuracy", format=".3f"),
        alt.Tooltip("low:Q", title="interval from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("control:Q", title="control task", format=".3f"),
        alt.Tooltip("chance:Q", title="chance", format=".3f"),
    ]

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
