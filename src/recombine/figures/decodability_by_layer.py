"""How readable the constituents are at each layer, with both controls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.summary import replicates_in_words, require, summarise
from recombine.figures.theme import (
    CONTROL,
    HEIGHT,
    UNTRAINED,
    WIDTH,
    message_chart,
    size_colours,
    size_name,
    themed,
    values,
)
from recombine.figures.wording import number as in_words

FLOOR = -0.2
COLUMNS = ("replicate", "number", "site", "network", "form", "strength", "r2", "control")
UNTRAINED_NAME = "untrained network"
CONTROL_NAME = "control task"

FORMS = {
    "intrinsic": "read-out fitted on one half of the held-out combinations, tested on the other",
    "transfer": "read-out fitted on trained combinations, tested on held-out ones",
    "in_distribution": "read-out fitted and tested on trained combinations",
}


class DecodabilityInfo(NamedTuple):
    """What the figure shows."""

    form: str
    sizes: tuple[int, ...]
    sites: tuple[str, ...]
    series: tuple[str, ...]
    """In the order of the legend: the largest size first, then the controls."""
    summary: pd.DataFrame
    """series, site, mean, low, high, replicates, shown, clipped; a row for each series and site."""
    floor: float

    @property
    def caption(self) -> str:
        """How to read the figure."""
        text = (
            "How well a linear read-out finds the constituents at the encoding and after each hidden layer "
            f"({FORMS.get(self.form, self.form)}); 1 is perfect. One line for each number of training "
            f"combinations. Dashed are the controls, averaged over the sizes: {UNTRAINED_NAME}, the same "
            f"network before training; {CONTROL_NAME}, the same read-out asked for random labels, which "
            "shows how much it could learn by heart. " + replicates_in_words(self.summary)
        )
        if self.summary["clipped"].any():
            text += f" Triangles stand for means below {in_words(self.floor)}; point at them for the value."
        return text


def site_order(sites: Iterable[str]) -> tuple[str, ...]:
    """Sites from the input to the output: the encoding, the hidden layers by number, then any others."""
    found = list(dict.fromkeys(str(site) for site in sites))

    def key(site: str) -> tuple[int, int, int]:
        layer = re.fullmatch(r"hidden[ _]?(\d{1,9})", site)
        if site == "encoding":
            return (0, 0, 0)
        return (1, int(layer[1]), 0) if layer else (2, 0, found.index(site))

    return tuple(sorted(found, key=key))


def decodability_by_layer_info(
    probes: pd.DataFrame, form: str = "intrinsic", strength: str = "chosen", floor: float = FLOOR
) -> DecodabilityInfo:
    """Mean decodability at each site, for each size and for the two controls, over replicates."""
    require(probes, COLUMNS, "probes")
    chosen = probes[(probes["form"] == form) & (probes["strength"].astype(str) == strength)]
    trained = chosen[chosen["network"] == "trained"]
    untrained = chosen[chosen["network"] == "untrained"]
    parts = [
        trained.assign(series=[size_name(size) for size in trained["number"]], value=trained["r2"]),
        untrained.assign(series=UNTRAINED_NAME, value=untrained["r2"]),
        trained.assign(series=CONTROL_NAME, value=trained["control"]),
    ]
    every = pd.concat([part[["series", "site", "replicate", "number", "value"]] for part in parts])
    every = every[np.isfinite(every["value"].astype(float))]
    # Summarising averages within a replicate first, so the controls count once a replicate, not once a size.
    summary = summarise(every, ["series", "site"], "value")
    summary["shown"] = summary["mean"].clip(lower=floor)
    summary["clipped"] = summary["mean"] < floor
    present = set(summary["series"])
    sizes = tuple(size for size in sorted(set(trained["number"])) if size_name(size) in present)
    controls = [name for name in (UNTRAINED_NAME, CONTROL_NAME) if name in present]
    return DecodabilityInfo(
        form=form,
        sizes=sizes,
        sites=site_order(summary["site"]),
        series=(*(size_name(size) for size in reversed(sizes)), *controls),
        summary=summary,
        floor=floor,
    )


def draw_decodability_by_layer(info: DecodabilityInfo) -> ChartType:
    """The figure: a line for each size, dashed lines for the controls."""
    if not len(info.summary):
        return message_chart("No probes yet: there is no decodability to show.")
    names = [size_name(size) for size in info.sizes]
    colours = dict(zip(names, size_colours(len(names)), strict=True))
    colours |= {UNTRAINED_NAME: UNTRAINED, CONTROL_NAME: CONTROL}
    dashes = {UNTRAINED_NAME: [6, 4], CONTROL_NAME: [2, 3]}
    # Bars at one site would lie on each other: each series stands a little aside.
    side = dict(zip(info.series, np.linspace(1, -1, len(info.series)).tolist(), strict=True))
    floor = info.floor if float(info.summary[["mean", "low"]].min().min()) < 0 else 0.0
    top = max(1.0, float(info.summary["mean"].max()))
    frame = info.summary.assign(
        side=[side[name] for name in info.summary["series"]],
        bottom=info.summary["low"].clip(floor, top),
        top=info.summary["high"].clip(floor, top),
    )
    names = list(info.series)
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
        sort=None,
        legend=alt.Legend(title=None, symbolType="stroke", symbolSize=420, orient="right"),
    )
    dash = alt.StrokeDash(
        "series:N", scale=alt.Scale(domain=names, range=[dashes.get(name, [1, 0]) for name in names])
    )
    x = alt.X(
        "site:N",
        sort=list(info.sites),
        title=None,
        scale=alt.Scale(type="point", padding=0.35),
        axis=alt.Axis(labelAngle=0, labelFontSize=14, grid=False, labelLimit=220),
    )
    aside = alt.XOffset("side:Q", scale=alt.Scale(domain=[-1, 1], range=[-9, 9]))
    scale = alt.Scale(domain=[floor, top], nice=False)
    title = "decodability of the constituents (R²)"
    y = alt.Y("shown:Q", scale=scale, title=title, axis=alt.Axis(format=".1f", tickCount=6))
    tooltip = [
        alt.Tooltip("series:N", title="network"),
        alt.Tooltip("site:N", title="site"),
        alt.Tooltip("mean:Q", title="mean R²", format=".3f"),
        alt.Tooltip("low:Q", title="interval from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("replicates:Q", title="replicates"),
    ]
    base = alt.Chart(values(frame)).encode(x=x, xOffset=aside, color=colour)
    inside = alt.Chart(values(frame[~frame["clipped"]])).encode(x=x, xOffset=aside, color=colour)
    below = alt.Chart(values(frame[frame["clipped"]])).encode(x=x, xOffset=aside, color=colour)
    chart = alt.layer(
        base.mark_line(strokeWidth=2.5).encode(y=y, strokeDash=dash),
        inside.mark_rule(strokeWidth=2).encode(y=alt.Y("bottom:Q", scale=scale, title=title), y2="top:Q"),
        inside.mark_point(filled=True, size=70, opacity=1).encode(y=y, tooltip=tooltip),
        below.mark_point(filled=True, size=110, opacity=1, shape="triangle-down").encode(
            y=y, tooltip=tooltip
        ),
    ).properties(width=WIDTH - 150, height=HEIGHT)
    return themed(chart, "Linear decodability of the constituents at each layer, with its controls")
