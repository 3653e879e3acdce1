"""A scaling law fitted on small runs, with the results of larger runs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.axes import NumericAxis, Reference, extent, reference_layers, y_axis
from recombine.figures.palette import (
    COLOURS,
    RULE,
    Labels,
    Style,
    legend_above,
    levels,
    named_as,
    series_styles,
    shape_by,
    stroke_by,
)
from recombine.figures.summary import require
from recombine.figures.theme import HEIGHT, WIDTH, message_chart, panel_title, panelled, tooltips, unique_labels, values
from recombine.figures.wording import count_of, sentences

FITTED = "fitted on"
ACTUAL = "held out"
SHAPES = {FITTED: "circle", ACTUAL: "diamond"}
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
    begins: dict[str, float]
    """The x at which the forecast begins in each panel: between the last fitted and the first held-out point."""
    domain: tuple[float, float]
    log_y: bool
    references: tuple[Reference, ...]
    x_title: str
    y_title: str
    caption: str

    @property
    def across(self) -> int:
        """Number of panels side by side."""
        return min(len(self.facets), MOST_ACROSS)

    @property
    def x_axis(self) -> NumericAxis:
        """The x axis of every panel."""
        shown = {*self.points["x"], *self.curve["x"], *self.baselines["x"]}
        width = round((WIDTH - GAP * (self.across - 1)) / self.across)
        return NumericAxis(tuple(sorted(shown)), True, width, ticks=tuple(sorted(set(self.points["x"]))))


def forecast_info(
    points: pd.DataFrame,
    curve: pd.DataFrame,
    baselines: pd.DataFrame | None = None,
    *,
    facet: str | None = None,
    facet_labels: Labels = None,
    law: str = "the law",
    log_y: bool = False,
    references: Sequence[Reference] = (),
    x_title: str = "x",
    y_title: str = "y",
    caption_lead: str = "",
) -> ForecastInfo:
    """Runs, a law fitted on some of them, and its forecast of the others.

    Args:
        points: The runs, with the columns x, y, and fitted (the law was fitted on this run).
        curve: The law, with the columns x, predicted, and low and high: a band that should contain 80 % of new runs.
        baselines: Other predictions, with the columns name, x, predicted.
        facet: A column of all three tables whose levels are panels.
        facet_labels: The titles of the panels, in order.
        law: The name of the law.
        log_y: The y axis is logarithmic.
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
    names = levels(others["name"])
    # A law or a baseline may have the name of the points: names in the legend must differ.
    _, _, law, *apart = unique_labels([FITTED, ACTUAL, law, *names.values()])
    names = dict(zip(names, apart, strict=True))

    def placed(frame: pd.DataFrame, columns: list[str], **more: Any) -> pd.DataFrame:
        table = pd.DataFrame({name: frame[name].to_numpy(float) for name in columns}).assign(**more)
        table.insert(0, "facet", named_as(frame[facet], panels) if facet else [""] * len(frame))
        fits = np.isfinite(table["x"]) & np.isfinite(table[columns[1]]) & (table["x"] > 0) & table["facet"].notna()
        return table[fits & ((table[columns[1]] > 0) | (not log_y))].reset_index(drop=True)

    runs = placed(points, ["x", "y"], series=[FITTED if fitted else ACTUAL for fitted in points["fitted"]])
    law_curve = placed(curve, ["x", "predicted", "low", "high"]).sort_values(["facet", "x"], ignore_index=True)
    lines = placed(others, ["x", "predicted"], series=named_as(others["name"], names))
    inside, counted = _covered(runs[runs["series"] == ACTUAL], law_curve)
    seen = [*runs["y"], *law_curve["predicted"], *(line.value for line in references)]
    present, begins = {*runs["facet"], *law_curve["facet"]}, _begins(runs)
    kinds = [Style(kind, kind, colour) for kind, colour in zip(SHAPES, COLOURS, strict=False)]
    caption = sentences(
        caption_lead,
        f"The law ({law}) was fitted on the round points only. The band should contain 80 % of new runs. Diamonds are "
        "runs that were not used for the fit.",
        "To the right of the vertical line, the law is a forecast." if begins else "",
        f"{inside} of {count_of(counted, 'held-out point')} lie within the band." if counted else "",
        "Dashed lines are the baselines that the law must beat." if len(lines) else "",
    )
    return ForecastInfo(
        facets=tuple(name for name in panels.values() if name in present),
        points=runs[["facet", "series", "x", "y"]],
        curve=law_curve,
        baselines=lines[["facet", "series", "x", "predicted"]],
        styles=(
            *(style for style in kinds if style.key in set(runs["series"])),
            Style(law, law, COLOURS[0]),
            *series_styles(names, names, controls=list(names)),
        ),
        law=law,
        begins=begins,
        domain=extent(seen, [*law_curve["low"], *law_curve["high"], *lines["predicted"]], log_y),
        log_y=log_y,
        references=tuple(references),
        x_title=x_title,
        y_title=y_title,
        caption=caption,
    )


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
    description = f"A law's forecast of {info.y_title} against {info.x_title}, with the results"
    return panelled(functools.partial(_panel, info), info.facets, info.across, GAP, description)


def _panel(info: ForecastInfo, name: str, first: bool) -> ChartType:
    low, high = info.domain
    x_axis, height = info.x_axis, HEIGHT if len(info.facets) == 1 else 310
    x = x_axis.encoding(info.x_title, "x:Q")
    scale = alt.Scale(domain=[low, high], nice=False, type="log" if info.log_y else "linear")
    axis = y_axis(info.y_title, info.domain, info.log_y, first)
    y = alt.Y("shown:Q", scale=scale, title=info.y_title if first else None, axis=axis)
    legend = legend_above(info.styles, symbol=None, size=150)
    colour, dash = stroke_by(info.styles, legend)
    shape = shape_by(info.styles, legend, [SHAPES.get(style.name, "stroke") for style in info.styles])

    def over(frame: pd.DataFrame, value: str) -> alt.Chart:
        here = frame[frame["facet"] == name]
        return alt.Chart(values(here.assign(shown=here[value]).drop(columns="facet"))).encode(x=x, y=y, color=colour)

    curve = info.curve.assign(series=info.law)
    band = curve.assign(top=curve["high"].clip(low, high), bottom=curve["low"].clip(low, high))
    tooltip = tooltips({"series:N": "point", "x:Q": info.x_title})
    tooltip += tooltips({"y:Q": info.y_title}, ".3~g")
    layers: list[alt.Chart] = [
        over(band, "bottom").mark_area(opacity=0.16, clip=True).encode(y2="top:Q"),
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
