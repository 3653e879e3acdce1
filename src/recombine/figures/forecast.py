"""A law fitted on small runs, and what larger runs then did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.along import Along, log_ticks
from recombine.figures.extent import Reference, extent, reference_layers
from recombine.figures.palette import (
    CONTROL_DASHES,
    RULE,
    SOLID,
    Labels,
    Style,
    legend_above,
    levels,
    named_as,
)
from recombine.figures.summary import require
from recombine.figures.theme import (
    CONTROL,
    HEIGHT,
    HELD_OUT,
    TRAINED,
    UNTRAINED,
    WIDTH,
    message_chart,
    themed,
    unique_labels,
    values,
)
from recombine.figures.wording import count_of

FITTED = "fitted on"
ACTUAL = "held out"
BASELINE_COLOURS = (CONTROL, UNTRAINED, "#12915e", "#c93fb0")
GAP = 30
MOST_ACROSS = 3


class ForecastInfo(NamedTuple):
    """What the figure shows."""

    facets: tuple[str, ...]
    """Titles of the panels; one empty title when there are no facets."""
    points: pd.DataFrame
    """facet, series, x, y; `series` is `FITTED` or `ACTUAL`."""
    curve: pd.DataFrame
    """facet, x, predicted, low, high."""
    baselines: pd.DataFrame
    """facet, series, x, predicted."""
    styles: tuple[Style, ...]
    """Points, the law, the baselines, in the order of the legend."""
    law: str
    """What the law is called."""
    level: float
    """Of the band."""
    inside: int
    """Held-out points within the band."""
    counted: int
    """Held-out points for which there is a band."""
    begins: dict[str, float]
    """For each panel where the forecast begins: between the last fitted point and the first held-out one."""
    domain: tuple[float, float]
    log_y: bool
    references: tuple[Reference, ...]
    x_title: str
    y_title: str
    lead: str
    """The first words of the caption: what is shown."""

    @property
    def along(self) -> Along:
        """The axis of x of every panel."""
        across = min(len(self.facets), MOST_ACROSS)
        found = {*self.points["x"], *self.curve["x"], *self.baselines["x"]}
        width = round((WIDTH - GAP * (across - 1)) / max(across, 1))
        return Along(tuple(sorted(found)), True, width, ticks=tuple(sorted(set(self.points["x"]))))

    @property
    def caption(self) -> str:
        """How to read the figure."""
        words = [self.lead] if self.lead else []
        band = f"{self.level * 100:.0f} %"
        words.append(
            f"The law ({self.law}) was fitted on the round points only; the band should hold {band} of new "
            "runs. Diamonds are runs that it never saw."
        )
        if self.begins:
            words.append("Right of the vertical line it is a forecast.")
        if self.counted:
            words.append(f"{self.inside} of {count_of(self.counted, 'held-out point')} lie within the band.")
        if len(self.baselines):
            words.append("Dashed lines are the baselines that it must beat.")
        return " ".join(words)


def forecast_info(
    points: pd.DataFrame,
    curve: pd.DataFrame,
    baselines: pd.DataFrame | None = None,
    *,
    facet: str | None = None,
    facet_labels: Labels = None,
    law: str = "the law",
    level: float = 0.8,
    log_y: bool = False,
    ceiling: float | None = None,
    references: Sequence[Reference] = (),
    x_title: str = "x",
    y_title: str = "y",
    caption_lead: str = "",
) -> ForecastInfo:
    """Runs and a law of them.

    `points` has the columns x, y, fitted; the law's `curve` x, predicted, low, high; `baselines` name, x,
    predicted. `facet` is a column of all three. `fitted` says whether the law was fitted on the point.
    """
    extra = [facet] if facet else []
    require(points, ["x", "y", "fitted", *extra], "points")
    require(curve, ["x", "predicted", "low", "high", *extra], "the curve")
    others = pd.DataFrame(columns=["name", "x", "predicted", *extra]) if baselines is None else baselines
    require(others, ["name", "x", "predicted", *extra], "baselines")
    panels = levels([*points[facet], *curve[facet]], facet_labels) if facet else {"": ""}

    def placed(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
        made = pd.DataFrame({name: frame[name].to_numpy(float) for name in columns})
        made.insert(0, "facet", named_as(frame[facet], panels) if facet else [""] * len(frame))
        fits = (
            np.isfinite(made["x"]) & np.isfinite(made[columns[1]]) & (made["x"] > 0) & made["facet"].notna()
        )
        return made[fits & ((made[columns[1]] > 0) | (not log_y))]

    found = placed(points, ["x", "y"])
    kinds = [FITTED if fitted else ACTUAL for fitted in points["fitted"]]
    found = found.assign(series=[kinds[at] for at in found.index])[["facet", "series", "x", "y"]]
    law_curve = placed(curve, ["x", "predicted", "low", "high"]).sort_values(["facet", "x"])
    lines = placed(others, ["x", "predicted"])
    names = levels(others["name"])
    # A law or a baseline may be called like the points: the legend must tell them apart.
    _, _, law, *apart = unique_labels([FITTED, ACTUAL, law, *names.values()])
    names = dict(zip(names, apart, strict=True))
    named = named_as(others["name"], names)
    lines = lines.assign(series=named[lines.index.to_numpy()])[["facet", "series", "x", "predicted"]]
    inside, counted = _covered(found[found["series"] == ACTUAL], law_curve)
    seen = [*found["y"], *law_curve["predicted"], *(one.value for one in references)]
    low, high = extent(seen, [*law_curve["low"], *law_curve["high"], *lines["predicted"]], log_y)
    high = high if ceiling is None else max([ceiling, *found["y"]]) + 0.03 * (ceiling - low)
    present = {*found["facet"], *law_curve["facet"]}
    return ForecastInfo(
        facets=tuple(name for name in panels.values() if name in present),
        points=found.reset_index(drop=True),
        curve=law_curve.reset_index(drop=True),
        baselines=lines.reset_index(drop=True),
        styles=_styles(found, law, list(names.values())),
        law=law,
        level=level,
        inside=inside,
        counted=counted,
        begins=_begins(found),
        domain=(low, high),
        log_y=log_y,
        references=tuple(references),
        x_title=x_title,
        y_title=y_title,
        lead=caption_lead,
    )


def _styles(found: pd.DataFrame, law: str, baselines: list[str]) -> tuple[Style, ...]:
    present = set(found["series"])
    made = [
        Style(kind, kind, colour, SOLID)
        for kind, colour in ((FITTED, TRAINED), (ACTUAL, HELD_OUT))
        if kind in present
    ]
    made.append(Style(law, law, TRAINED, SOLID))
    for place, name in enumerate(baselines):
        colour = BASELINE_COLOURS[place % len(BASELINE_COLOURS)]
        made.append(Style(name, name, colour, CONTROL_DASHES[place % len(CONTROL_DASHES)]))
    return tuple(made)


def _covered(actual: pd.DataFrame, curve: pd.DataFrame) -> tuple[int, int]:
    """How many points lie within the band, read off along the logarithm of x, and how many have one."""
    inside = counted = 0
    for name, part in actual.groupby("facet", observed=True):
        band = curve[(curve["facet"] == name) & np.isfinite(curve["low"]) & np.isfinite(curve["high"])]
        if not len(band):
            continue
        here = part[part["x"].between(band["x"].min() * (1 - 1e-9), band["x"].max() * (1 + 1e-9))]
        at, along = np.log(here["x"]), np.log(band["x"])
        low, high = np.interp(at, along, band["low"]), np.interp(at, along, band["high"])
        counted += len(here)
        inside += int(((here["y"] >= low) & (here["y"] <= high)).sum())
    return inside, counted


def _begins(found: pd.DataFrame) -> dict[str, float]:
    made = {}
    for name, part in found.groupby("facet", observed=True):
        last = part.loc[part["series"] == FITTED, "x"].max()
        first = part.loc[part["series"] == ACTUAL, "x"].min()
        if last < first:
            made[str(name)] = float(np.sqrt(last * first))
    return made


def draw_forecast(info: ForecastInfo) -> ChartType:
    """The figure: the law with its band, the points it was fitted on, those it was not; a panel a facet."""
    if not len(info.points) and not len(info.curve):
        return message_chart("No law was fitted yet: there is no forecast to show.")
    across = min(len(info.facets), MOST_ACROSS)
    panels = [_panel(info, name, place % across == 0) for place, name in enumerate(info.facets)]
    chart = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=across, spacing=GAP)
    return themed(chart, f"A law's forecast of {info.y_title} against {info.x_title}, and what came")


def _panel(info: ForecastInfo, name: str, first: bool) -> ChartType:
    low, high = info.domain
    along, height = info.along, HEIGHT if len(info.facets) == 1 else 310
    x = along.encoding(info.x_title, "x:Q")
    scale = alt.Scale(domain=[low, high], nice=False, type="log" if info.log_y else "linear")
    title = info.y_title if first else None
    ticks: dict[str, Any] = {"values": log_ticks(low, high)} if info.log_y else {"tickCount": 6}
    turned: dict[str, Any] = {"titleAngle": 0} if len(info.y_title) <= 3 else {}
    axis = alt.Axis(format=".6~g", labels=first, ticks=first, domain=first, **ticks, **turned)
    y = alt.Y("shown:Q", scale=scale, title=title, axis=axis)
    names = [style.name for style in info.styles]
    shapes = ["circle" if name == FITTED else "diamond" if name == ACTUAL else "stroke" for name in names]
    legend = legend_above(info.styles, symbol=None, size=150)
    colours = alt.Scale(domain=names, range=[style.colour for style in info.styles])
    colour = alt.Color("series:N", scale=colours, sort=None, legend=legend)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=names, range=shapes), sort=None, legend=legend)
    dashes = alt.Scale(domain=names, range=[list(style.dash) for style in info.styles])
    dash = alt.StrokeDash("series:N", scale=dashes, sort=None, legend=legend)

    def over(frame: pd.DataFrame, value: str) -> alt.Chart:
        here = frame[frame["facet"] == name]
        return alt.Chart(values(here.assign(shown=here[value]).drop(columns="facet"))).encode(
            x=x, y=y, color=colour
        )

    curve = info.curve.assign(series=info.law)
    band = curve.assign(top=curve["high"].clip(low, high), bottom=curve["low"].clip(low, high))
    tooltip = [
        alt.Tooltip("series:N", title="point"),
        alt.Tooltip("x:Q", title=info.x_title),
        alt.Tooltip("y:Q", title=info.y_title, format=".3~g"),
    ]
    area = over(band, "bottom").mark_area(opacity=0.16, clip=True).encode(y2="top:Q")
    layers: list[alt.Chart] = [
        area,
        *reference_layers(info.references, y, info.domain, height, info.log_y, outside=False),
        over(info.baselines, "predicted").mark_line(strokeWidth=2, clip=True).encode(strokeDash=dash),
        over(curve, "predicted").mark_line(strokeWidth=2.5, clip=True).encode(strokeDash=dash),
    ]
    if name in info.begins:
        edge = alt.Chart(values(pd.DataFrame({"x": [info.begins[name]]})))
        layers.append(edge.mark_rule(color=RULE, strokeDash=[2, 3]).encode(x=x))
    for kind, size in ((FITTED, 60), (ACTUAL, 110)):
        points = over(info.points[info.points["series"] == kind], "y")
        layers.append(
            points.mark_point(filled=True, size=size, opacity=0.9).encode(shape=shape, tooltip=tooltip)
        )
    titled = {"title": alt.TitleParams(name, anchor="middle")} if name else {}
    return alt.layer(*layers).properties(width=along.width, height=height, **titled)
