"""One row per category: mean, interval and single replicates of one or several measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.axes import LABEL, Reference, dodge, extent, vertical_lines
from recombine.figures.palette import NOTE, Labels, Style, colour_by, legend_above, levels, named_as, series_styles
from recombine.figures.summary import replicates_in_words, require, summarise
from recombine.figures.theme import WIDTH, mean_tooltips, message_chart, panel_title, panelled, row_axis, values
from recombine.figures.wording import number as in_words, sentences

STEP = 15
"""Pixels between the measures of one row."""
GAP = 26
"""Pixels between columns."""
LETTER = 6.6
"""Approximate width of a letter in pixels."""


class DotsInfo(NamedTuple):
    """The content of the figure."""

    rows: tuple[str, ...]
    """Categories from top to bottom."""
    styles: tuple[Style, ...]
    """The measures."""
    summary: pd.DataFrame
    """Columns: row, series, mean, low, high, replicates."""
    points: pd.DataFrame
    """Columns: row, series, replicate, value. Only values within the axis."""
    published: pd.DataFrame
    """Columns: row, series, value. Published values."""
    notes: tuple[str, ...]
    """Text at the right of each row."""
    references: tuple[Reference, ...]
    """Vertical lines."""
    domain: tuple[float, float]
    columns: bool
    """Each measure has its own column. Otherwise the measures differ by colour."""
    x_title: str
    caption: str


def dots_info(
    frame: pd.DataFrame,
    category: str,
    measures: Mapping[str, str] | Sequence[str],
    *,
    labels: Labels = None,
    published: Mapping[str, Mapping[Any, float]] | None = None,
    notes: Mapping[Any, str] | None = None,
    references: Sequence[Reference] = (),
    columns: bool = False,
    floor: float | None = None,
    ceiling: float | None = None,
    x_title: str = "",
    caption_lead: str = "",
) -> DotsInfo:
    """Means of each measure over replicates, for each category.

    Args:
        frame: One row per run, with a column `replicate`.
        category: The column whose levels are rows of the figure.
        measures: The columns to average, with their names.
        labels: The names of the categories, from top to bottom.
        published: Published values by measure and category.
        notes: Text at the right of a row, by category.
        references: Vertical lines with labels.
        columns: Show each measure in its own column instead of its own colour.
        floor: Means below this value become triangles at the left edge.
        ceiling: The end of the axis.
        x_title: The title of the axis.
        caption_lead: The first sentences of the caption.

    Returns:
        The input of `draw_dots`.
    """
    named = dict(measures) if isinstance(measures, Mapping) else {name: name for name in measures}
    require(frame, ["replicate", category, *named], "runs")
    styles = series_styles(named, named)
    titles = {style.key: style.name for style in styles}
    names = levels(frame[category], labels)
    parts = []
    for measure, title in titles.items():
        part = pd.DataFrame({"row": named_as(frame[category], names), "replicate": frame["replicate"].to_numpy()})
        parts.append(part.assign(series=title, value=frame[measure].to_numpy(float)))
    table = pd.concat(parts, ignore_index=True).dropna(subset=["row"])
    table = table[np.isfinite(table["value"])]
    summary = summarise(table, ["row", "series"], "value")
    rows = tuple(name for name in names.values() if name in set(summary["row"]))
    known = pd.DataFrame(
        [
            (names[key], titles[measure], float(value))
            for measure, by_category in (published or {}).items()
            for key, value in by_category.items()
            if measure in titles and names.get(key) in rows and np.isfinite(value)
        ],
        columns=["row", "series", "value"],
    )
    seen = [*summary["mean"], *table["value"], *known["value"], *(line.value for line in references)]
    if floor is not None:
        seen = [floor, *(value for value in seen if value >= floor)]
    low, high = extent(seen, [*summary["low"], *summary["high"]])
    low = low if floor is None else floor
    high = high if ceiling is None else max(ceiling, max(seen, default=ceiling)) + 0.02 * (ceiling - low)
    texts = {names[key]: str(text) for key, text in (notes or {}).items() if key in names}
    inside = summary[summary["mean"] >= low]
    cut = (inside["low"] < low).any() or (inside["high"] > high).any()
    below = f"Triangles mark means below {in_words(low)}; the number beside each is its value."
    caption = sentences(
        caption_lead,
        "Large points are means, faint points are single replicates." if (summary["replicates"] > 1).any() else "",
        replicates_in_words(summary),
        "Hollow diamonds are published values." if len(known) else "",
        below if (summary["mean"] < low).any() else "",
        "Bars that extend beyond the axis are cut off." if cut else "",
    )
    return DotsInfo(
        rows=rows,
        styles=styles,
        summary=summary,
        points=_shown(table, summary, low),
        published=known,
        notes=tuple(texts.get(name, "") for name in rows),
        references=tuple(references),
        domain=(low, high),
        columns=columns and len(styles) > 1,
        x_title=x_title,
        caption=caption,
    )


def _shown(table: pd.DataFrame, summary: pd.DataFrame, low: float) -> pd.DataFrame:
    """The single values within the axis, without those of means below it: they would cover its number."""
    below = set(summary.loc[summary["mean"] < low, ["row", "series"]].itertuples(index=False, name=None))
    seen = [pair not in below for pair in zip(table["row"], table["series"], strict=True)]
    kept = table[np.array(seen, bool) & (table["value"] >= low).to_numpy()]
    return kept[["row", "series", "replicate", "value"]].reset_index(drop=True)


def draw_dots(info: DotsInfo) -> ChartType:
    """Draw one row per category, with measures as colours or as columns."""
    if not info.rows:
        return message_chart("No runs yet: there is nothing to compare.")
    groups = [[style] for style in info.styles] if info.columns else [list(info.styles)]
    names = min(max(len(name) for name in info.rows) * LETTER, 260)
    notes = min(max(len(note) for note in info.notes) * LETTER, 340)
    width = max((WIDTH + 60 - names - notes - GAP * (len(groups) - 1)) / len(groups), 150)
    description = f"{', '.join(style.name for style in info.styles)} for each category"
    return panelled(
        lambda group, first: _panel(info, group, round(width), first), groups, len(groups), GAP, description
    )


def _panel(info: DotsInfo, styles: list[Style], width: int, first: bool) -> ChartType:
    low, high = info.domain
    step = max(34, STEP * len(styles) + 16)
    shift = dict(zip((style.name for style in styles), dodge(len(styles), STEP, step), strict=True))
    reach = max(1.0, *map(abs, shift.values()))
    position = alt.Scale(type="point", padding=0.5, domain=list(info.rows))
    axis = row_axis(labels=first, grid=True, labelLimit=260)
    y = alt.Y("row:N", scale=position, sort=None, title=None, axis=axis)
    aside = alt.YOffset("side:Q", scale=alt.Scale(domain=[-reach, reach], range=[-reach, reach]))
    scale = alt.Scale(domain=[low, high], nice=False)
    x = alt.X("shown:Q", scale=scale, title=info.x_title or None)
    x = x.axis(tickCount=max(3, min(8, width // 80)), format=".6~g", grid=True)
    # Labels of vertical lines stand above the plot, and the legend above them.
    above = 14 + LABEL * len([line for line in info.references if line.label])
    several = len(info.styles) > 1 and not info.columns
    colour = colour_by(info.styles, legend_above(info.styles, symbol="circle", offset=above) if several else None)

    def over(frame: pd.DataFrame) -> alt.Chart:
        here = frame[frame["series"].isin(list(shift))]
        sided = here.assign(side=[shift[name] for name in here["series"]])
        return alt.Chart(values(sided)).encode(y=y, yOffset=aside, color=colour)

    summary = info.summary.assign(
        shown=info.summary["mean"].clip(low, high),
        start=info.summary["low"].clip(low, high),
        end=info.summary["high"].clip(low, high),
        label=[in_words(mean) for mean in info.summary["mean"]],
    )
    below = summary["mean"] < low
    tooltip = mean_tooltips({"row:N": "category", "series:N": "measure"}, ".3~f")
    layers: list[alt.Chart] = vertical_lines(info.references, x, info.domain)
    if (summary["replicates"] > 1).any():
        faint = over(info.points.assign(shown=info.points["value"])).encode(x=x)
        layers.append(faint.mark_point(filled=True, size=26, opacity=0.3))
    bar = over(summary[~below]).mark_rule(strokeWidth=2.5)
    layers.append(bar.encode(x=alt.X("start:Q", scale=scale), x2="end:Q"))
    layers.append(over(summary[~below]).mark_point(filled=True, size=95, opacity=1).encode(x=x, tooltip=tooltip))
    if below.any():
        edge = over(summary[below]).encode(x=x)
        layers.append(edge.mark_point(filled=True, size=110, opacity=1, shape="triangle-left").encode(tooltip=tooltip))
        layers.append(edge.mark_text(align="left", dx=10, fontSize=12).encode(text="label:N"))
    if len(info.published):
        known = over(info.published.assign(shown=info.published["value"].clip(low, high))).encode(x=x)
        shape = {"shape": "diamond", "size": 150, "opacity": 1, "strokeWidth": 2, "fill": "transparent"}
        hints = [alt.Tooltip("row:N", title="category"), alt.Tooltip("value:Q", title="published")]
        layers.append(known.mark_point(**shape).encode(tooltip=hints))
    if styles[-1] in info.styles[-1:] and any(info.notes):
        notes = alt.Chart(values(pd.DataFrame({"row": info.rows, "note": info.notes})))
        text = notes.mark_text(align="left", dx=16, color=NOTE, limit=340)
        layers.append(text.encode(x=alt.value("width"), y=y, text="note:N"))
    title = panel_title(styles[0].name if info.columns else "")
    return alt.layer(*layers).properties(width=width, height=step * len(info.rows), **title)
