"""Draws the map of the combinations in a user's data."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.figures.audit.combination_map import AuditMapInfo, MapPanel
from recombine.figures.theme import INK, TRAINED, WIDTH, message_chart, panelled, quality_colour, unique_labels, values
from recombine.figures.wording import number as in_words

LETTER = 6.8
NAMES = 150
"""Largest width of the names of rows and columns in pixels."""
GAP = 0.16
"""The gap between squares, as a fraction of their distance. The frame is drawn there."""
BETWEEN = 34
SMALLEST, LARGEST = 15.0, 48.0
TALLEST = 580.0
FRAMES = ("trained on", "held out")


def draw_audit_map(info: AuditMapInfo) -> ChartType:
    """Draw one map, or one map per pair of slots."""
    if not info.panels:
        return message_chart("No combination has a score: there is no map to show.")
    across, step = _layout(info)
    description = f"Mean {info.score} of combinations by their values"
    return panelled(lambda panel, _: _panel(info, panel, step), info.panels, across, BETWEEN, description)


def _layout(info: AuditMapInfo) -> tuple[int, float]:
    """The number of maps side by side, and the distance between squares."""
    columns = max(len(panel.across.labels) for panel in info.panels)
    rows = max(len(panel.down.labels) for panel in info.panels)
    longest = max(len(label) for panel in info.panels for label in panel.down.labels)
    names = min(longest * LETTER + 8, NAMES) + 26
    room = {
        count: (WIDTH + 60 - BETWEEN * (count - 1)) / count - names for count in (3, 2, 1) if count <= len(info.panels)
    }
    across = next((count for count, width in room.items() if width / columns >= 22), 1)
    # A long map has smaller squares, so that it fits the screen.
    largest = min(LARGEST if across == 1 else 34.0, max(TALLEST / rows, 22.0))
    return across, min(max(room[across] / columns, SMALLEST), largest)


def _panel(info: AuditMapInfo, panel: MapPanel, step: float) -> ChartType:
    cells = panel.cells.assign(
        down=[panel.down.labels[row] for row in panel.cells["row"]],
        across=[panel.across.labels[column] for column in panel.cells["column"]],
        shown=panel.cells["score"].clip(*info.domain),
        frame=np.where(panel.cells["trained"], *FRAMES),
    )
    low, high = info.domain
    digits = 2 if high - low < 20 else 0
    cells["text"] = [in_words(score, digits) for score in cells["score"]]
    x, y = _axes(panel, step)
    legend = {"gradientLength": 280, "tickCount": 5, "titleLimit": 400, "offset": 16}
    colour = quality_colour("shown:Q", f"mean {info.score}", info.domain, **legend)
    tooltip = _tooltip(info, panel)

    def over(kept: pd.Series) -> alt.Chart:
        return alt.Chart(values(cells[kept])).encode(x=x, y=y, tooltip=tooltip)

    scored = cells["scored"]
    layers = [over(scored).mark_rect(cornerRadius=2).encode(color=colour)]
    if cells["trained"].any():
        layers.append(_frames(over(cells["trained"]), step))
    if step >= 30:
        bright = (cells["shown"] - low) / (high - low) > 0.55
        for part, ink in ((scored & bright, INK), (scored & ~bright, "#ffffff")):
            words = over(part).mark_text(color=ink, fontSize=11 if step < 38 else 12)
            layers.append(words.encode(text="text:N"))
    size = {"width": step * len(panel.across.labels), "height": step * len(panel.down.labels)}
    return alt.layer(*layers).properties(**size)


def _frames(base: alt.Chart, step: float) -> alt.Chart:
    """A frame around trained combinations, in the gap between squares."""
    scale = alt.Scale(domain=list(FRAMES), range=[TRAINED, "transparent"])
    symbol: dict[str, Any] = {"symbolType": "square", "symbolSize": 190, "symbolStrokeWidth": 2.2}
    legend = alt.Legend(title=None, orient="top", direction="horizontal", values=[FRAMES[0]], offset=10, **symbol)
    size, width = (step * (1 - GAP / 2)) ** 2, min(2.2, max(1.4, step / 15))
    mark = base.mark_point(shape="square", size=size, strokeWidth=width, fill="transparent", opacity=1)
    return mark.encode(stroke=alt.Stroke("frame:N", scale=scale, sort=None, legend=legend))


def _axes(panel: MapPanel, step: float) -> tuple[alt.X, alt.Y]:
    # If most squares are missing, lines lead from the names to the existing ones.
    sparse = len(panel.cells) < 0.4 * len(panel.down.labels) * len(panel.across.labels)
    plain: dict[str, Any] = {"ticks": False, "domain": False, "grid": sparse, "labelPadding": 5, "zindex": 0}
    plain |= {"labelFontSize": 13 if step >= 20 else 11, "labelLimit": NAMES, "titleLimit": 400, "labelOverlap": False}
    flat = max(len(label) for label in panel.across.labels) * 7 <= step
    turned: dict[str, Any] = {"labelAngle": 0 if flat else -50, "labelAlign": "center" if flat else "left"}
    across, down = alt.Axis(orient="top", **turned, **plain), alt.Axis(**plain)
    gaps: dict[str, Any] = {"paddingInner": GAP, "paddingOuter": GAP / 2}
    x = alt.X("across:N", sort=None, title=panel.across.slot or None, axis=across)
    y = alt.Y("down:N", sort=None, title=panel.down.slot or None, axis=down)
    return x.scale(domain=list(panel.across.labels), **gaps), y.scale(domain=list(panel.down.labels), **gaps)


def _tooltip(info: AuditMapInfo, panel: MapPanel) -> list[alt.Tooltip]:
    other = "with" if panel.same else panel.across.slot
    fields = {"down:N": panel.down.slot, **({"across:N": other} if other else {})}
    fields |= {"text:N": f"mean {info.score}", "rows:Q": "rows"}
    if not info.single:
        fields["combinations:Q"] = "combinations"
    if info.training_known:
        fields["frame:N"] = "in training"
    # Titles are keys: equal ones would hide each other, and a browser draws a field called `image` as a picture.
    titles = unique_labels([f"{title} " if title in ("title", "image") else title for title in fields.values()])
    return [alt.Tooltip(field, title=title) for field, title in zip(fields, titles, strict=True)]
