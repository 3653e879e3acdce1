"""A scaling law fitted on small runs, with the results of larger runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.axes import NumericAxis, Reference, extent, log_ticks, reference_layers
from recombine.figures.palette import (
    CONTROL_DASHES,
    RULE,
    SOLID,
    Labels,
    Style,
    colour_by,
    dash_by,
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
    panel_title,
    side_by_side,
    themed,
    tooltips,
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
    """The content of the figure."""

    facets: tuple[str, ...]
    """Titles of the panels. Without facets: one empty title."""
    points: pd.DataFrame
    """Columns: facet, series (`FITTED` or `ACTUAL`), x, y."""
    curve: pd.DataFrame
    """Columns: facet, x, predicted, low, high."""
    baselines: pd.DataFrame
    """Columns: facet, series, x, predicted."""
    styles: tuple[Style, ...]
    """The points, the law and the baselines, in the order of the legend."""
    law: str
    """The name of the law."""
    level: float
    """The level of the prediction band."""
    inside: int
    """Number of held-out points within the band."""
    counted: int
    """Number of held-out points that have a band."""
    begins: dict[str, float]
    """The x at which the forecast begins in each panel: between the last fitted and the first held-out point."""
    domain: tuple[float, float]
    log_y: bool
    references: tuple[Reference, ...]
    x_title: str
    y_title: str
    lead: str
    """The first sentences of the caption."""

    @property
    def x_axis(self) -> NumericAxis:
        """The x axis of every panel."""
        across = min(len(self.facets), MOST_ACROSS)
        shown = {*self.points["x"], *self.curve["x"], *self.baselines["x"]}
        width = round((WIDTH - GAP * (across - 1)) / max(across, 1))
        return NumericAxis(tuple(sorted(shown)), True, width, ticks=tuple(sorted(set(self.points["x"]))))

    @property
    def caption(self) -> str:
        """How to read the figure."""
        words = [self.lead] if self.lead else []
        band = f"{self.level * 100:.0f} %"
        words.append(
            f"The law ({self.law}) was fitted on the round points only. The band should contain {band} of new "
            "runs. Diamonds are runs that were not used for the fit."
        )
        if self.begins:
            words.append("To the right of the vertical line, the law is a forecast.")
        if self.counted:
            words.append(f"{self.inside} of {count_of(self.counted, 'held-out point')} lie within the band.")
        if len(self.baselines):
            words.append("Dashed lines are the baselines that the law must beat.")
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
    """Runs, a law fitted on some of them, and its forecast of the others.

    Args:
        points: The runs, with the columns x, y, and fitted (the law was fitted on this run).
        curve: The law, with the columns x, predicted, low, high.
        baselines: Other predictions, with the columns name, x, predicted.
        facet: A column of all three tables whose levels are panels.
        facet_labels: The titles of the panels, in order.
        law: The name of the law.
        level: The level of the band between `low` and `high`.
        log_y: The y axis is logarithmic.
        ceiling: The end of the y axis.
        references: Horizontal lines with labels.
        x_title: The title of the x axis.
        y_title: The title of the y axis.
        caption_lead: The first sentences of the caption.

    Returns:
        The input of `draw_forecast`.
    """
    extra = [facet] if facet else []
    require(points, ["x", "y", "fitted", *extra], "points")
    require(curve, ["x", "predicted", "low", "high", *extra], "the curve")
    others = pd.DataFrame(columns=["name", "x", "predicted", *extra]) if baselines is None else baselines
    require(others, ["name", "x", "predicted", *extra], "baselines")
    panels = levels([*points[facet], *curve[facet]], facet_labels) if facet else {"": ""}

    def placed(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
        table = pd.DataFrame({name: frame[name].to_numpy(float) for name in columns})
        table.insert(0, "facet", named_as(frame[facet], panels) if facet else [""] * len(frame))
        fits = np.isfinite(table["x"]) & np.isfinite(table[columns[1]]) & (table["x"] > 0) & table["facet"].notna()
        return table[fits & ((table[columns[1]] > 0) | (not log_y))]

    runs = placed(points, ["x", "y"])
    kinds = [FITTED if fitted else ACTUAL for fitted in points["fitted"]]
    runs = runs.assign(series=[kinds[index] for index in runs.index])[["facet", "series", "x", "y"]]
    law_curve = placed(curve, ["x", "predicted", "low", "high"]).sort_values(["facet", "x"])
    lines = placed(others, ["x", "predicted"])
    names = levels(others["name"])
    # A law or a baseline may have the name of the points: names in the legend must differ.
    _, _, law, *apart = unique_labels([FITTED, ACTUAL, law, *names.values()])
    names = dict(zip(names, apart, strict=True))
    named = named_as(others["name"], names)
    lines = lines.assign(series=named[lines.index.to_numpy()])[["facet", "series", "x", "predicted"]]
    inside, counted = _covered(runs[runs["series"] == ACTUAL], law_curve)
    seen = [*runs["y"], *law_curve["predicted"], *(line.value for line in references)]
    low, high = extent(seen, [*law_curve["low"], *law_curve["high"], *lines["predicted"]], log_y)
    high = high if ceiling is None else max([ceiling, *runs["y"]]) + 0.03 * (ceiling - low)
    present = {*runs["facet"], *law_curve["facet"]}
    return ForecastInfo(
        facets=tuple(name for name in panels.values() if name in present),
        points=runs.reset_index(drop=True),
        curve=law_curve.reset_index(drop=True),
        baselines=lines.reset_index(drop=True),
        styles=_styles(runs, law, list(names.values())),
        law=law,
        level=level,
        inside=inside,
        counted=counted,
        begins=_begins(runs),
        domain=(low, high),
        log_y=log_y,
        references=tuple(references),
        x_title=x_title,
        y_title=y_title,
        lead=caption_lead,
    )


def _styles(runs: pd.DataFrame, law: str, baselines: list[str]) -> tuple[Style, ...]:
    present = set(runs["series"])
    styles = [
        Style(kind, kind, colour, SOLID) for kind, colour in ((FITTED, TRAINED), (ACTUAL, HELD_OUT)) if kind in present
    ]
    styles.append(Style(law, law, TRAINED, SOLID))
    for index, name in enumerate(baselines):
        colour = BASELINE_COLOURS[index % len(BASELINE_COLOURS)]
        styles.append(Style(name, name, colour, CONTROL_DASHES[index % len(CONTROL_DASHES)]))
    return tuple(styles)


def _covered(actual: pd.DataFrame, curve: pd.DataFrame) -> tuple[int, int]:
    """The number of points within the band (interpolated in log x), and the number of points that have a band."""
    inside = counted = 0
    for name, part in actual.groupby("facet", observed=True):
        band = curve[(curve["facet"] == name) & np.isfinite(curve["low"]) & np.isfinite(curve["high"])]
        if not len(band):
            continue
        here = part[part["x"].between(band["x"].min() * (1 - 1e-9), band["x"].max() * (1 + 1e-9))]
        at, known = np.log(here["x"]), np.log(band["x"])
        low, high = np.interp(at, known, band["low"]), np.interp(at, known, band["high"])
        counted += len(here)
        inside += int(((here["y"] >= low) & (here["y"] <= high)).sum())
    return inside, counted


def _begins(runs: pd.DataFrame) -> dict[str, float]:
    begins = {}
    for name, part in runs.groupby("facet", observed=True):
        last = part.loc[part["series"] == FITTED, "x"].max()
        first = part.loc[part["series"] == ACTUAL, "x"].min()
        if last < first:
            begins[str(name)] = float(np.sqrt(last * first))
    return begins


def draw_forecast(info: ForecastInfo) -> ChartType:
    """Draw the law with its band, fitted points and held-out points, one panel per facet."""
    if not len(info.points) and not len(info.curve):
        return message_chart("No law was fitted yet: there is no forecast to show.")
    across = min(len(info.facets), MOST_ACROSS)
    panels = [_panel(info, name, index % across == 0) for index, name in enumerate(info.facets)]
    description = f"A law's forecast of {info.y_title} against {info.x_title}, with the results"
    return themed(side_by_side(panels, across, GAP), description)


def _panel(info: ForecastInfo, name: str, first: bool) -> ChartType:
    low, high = info.domain
    x_axis, height = info.x_axis, HEIGHT if len(info.facets) == 1 else 310
    x = x_axis.encoding(info.x_title, "x:Q")
    scale = alt.Scale(domain=[low, high], nice=False, type="log" if info.log_y else "linear")
    title = info.y_title if first else None
    ticks: dict[str, Any] = {"values": log_ticks(low, high)} if info.log_y else {"tickCount": 6}
    turned: dict[str, Any] = {"titleAngle": 0} if len(info.y_title) <= 3 else {}
    axis = alt.Axis(format=".6~g", labels=first, ticks=first, domain=first, **ticks, **turned)
    y = alt.Y("shown:Q", scale=scale, title=title, axis=axis)
    names = [style.name for style in info.styles]
    shapes = ["circle" if name == FITTED else "diamond" if name == ACTUAL else "stroke" for name in names]
    legend = legend_above(info.styles, symbol=None, size=150)
    colour, dash = colour_by(info.styles, legend), dash_by(info.styles, legend)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=names, range=shapes), sort=None, legend=legend)

    def over(frame: pd.DataFrame, value: str) -> alt.Chart:
        here = frame[frame["facet"] == name]
        return alt.Chart(values(here.assign(shown=here[value]).drop(columns="facet"))).encode(x=x, y=y, color=colour)

    curve = info.curve.assign(series=info.law)
    band = curve.assign(top=curve["high"].clip(low, high), bottom=curve["low"].clip(low, high))
    tooltip = [
        *tooltips({"series:N": "point", "x:Q": info.x_title}),
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
        layers.append(points.mark_point(filled=True, size=size, opacity=0.9).encode(shape=shape, tooltip=tooltip))
    return alt.layer(*layers).properties(width=x_axis.width, height=height, **panel_title(name))
