"""Small images in a grid: a coloured frame shows the kind of each image, a cross marks wrong ones."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.errors import BadInput
from recombine.figures.palette import colour_by, legend_above, series_styles
from recombine.figures.png import encode_png
from recombine.figures.summary import require
from recombine.figures.theme import INK, WIDTH, message_chart, themed, values

LABELS = 120
"""Width of the row names in pixels."""
FRAME = 2
"""Width of a frame in pixels."""
LARGEST = 64
"""Largest side of a displayed image in pixels."""


class ImageGridInfo(NamedTuple):
    """The content of the figure."""

    cells: pd.DataFrame
    """Columns: x, y, url, series (the kind in words), right, name."""
    rows: tuple[str, ...]
    """Names from top to bottom."""
    groups: tuple[tuple[str, int, int], ...]
    """Names of groups of neighbouring columns, each with its first and last column."""
    kinds: tuple[str, ...]
    width: int
    """Number of columns."""
    caption: str


def image_grid_info(
    frame: pd.DataFrame,
    kinds: Mapping[str, str],
    caption_lead: str,
    rows: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
) -> ImageGridInfo:
    """The content of an image grid.

    Args:
        frame: One row per image, with the columns row, group, place (the column within its group, from 0), image (pixels
            row by row, 0 to 255), kind, right (may be missing) and name.
        kinds: The name of each kind in the legend.
        caption_lead: The first sentences of the caption.
        rows: The rows from top to bottom. Default: in the order of the data.
        groups: The groups from left to right. Default: in the order of the data.

    Returns:
        The input of `draw_image_grid`.
    """
    require(frame, ("row", "group", "place", "image", "kind", "right", "name"), "images")
    named_rows = list(rows if rows is not None else dict.fromkeys(frame["row"]))
    named_groups = list(groups if groups is not None else dict.fromkeys(frame["group"]))
    if not len(frame):
        return ImageGridInfo(frame.assign(x=[], y=[], url=[]), (), (), (), 0, caption_lead)
    each = int(frame["place"].max()) + 1
    first = {name: number * each for number, name in enumerate(named_groups)}
    cells = pd.DataFrame(
        {
            "x": [first[group] + int(column) for group, column in zip(frame["group"], frame["place"], strict=True)],
            "y": [named_rows.index(row) for row in frame["row"]],
            "url": [data_url(image) for image in frame["image"]],
            "series": [kinds[kind] for kind in frame["kind"]],
            "right": list(frame["right"]),
            "name": list(frame["name"]),
        }
    )
    spans = tuple((name, start, start + each - 1) for name, start in first.items())
    shown = tuple(words for words in kinds.values() if words in set(cells["series"]))
    crossed = " A cross marks a wrong image." if (cells["right"] == False).any() else ""  # noqa: E712
    return ImageGridInfo(cells, tuple(named_rows), spans, shown, each * len(named_groups), caption_lead + crossed)


def draw_image_grid(info: ImageGridInfo) -> ChartType:
    """Draw the grid of images."""
    if not len(info.cells):
        return message_chart("No image was generated.")
    step = min(LARGEST, (WIDTH - LABELS) // info.width)
    inside = step - 2 * FRAME - 2
    # Half a column more on either side, so that cells stay inside the plot.
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.5, info.width - 0.5], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-0.5, len(info.rows) - 0.5], nice=False, reverse=True))
    base = alt.Chart(values(info.cells)).encode(x=x, y=y, tooltip=alt.Tooltip("name:N", title=" "))
    styles = series_styles(info.kinds, info.kinds)
    frames = base.mark_square(size=(step - 2) ** 2, opacity=1).encode(
        color=colour_by(styles, legend_above(styles, symbol="square", offset=30) if len(styles) > 1 else None)
    )
    # No smoothing: it would make images look sharper than they are, and files many times larger.
    images = base.mark_image(width=inside, height=inside, smooth=False).encode(url="url:N")
    wrong = base.transform_filter("datum.right === false")
    arm = max(7, step // 5)
    # In the upper right corner of the image, in white with a dark edge: visible on any image.
    corner = inside / 2 - arm / 2 - 1
    cross = {"text": "✕", "fontSize": arm + 3, "dx": corner, "dy": -corner, "fontWeight": "bold"}
    crosses = [
        wrong.mark_text(**cross, color=ink, stroke=ink, strokeWidth=thick) for ink, thick in ((INK, 3), ("white", 0))
    ]
    rows = pd.DataFrame({"x": -0.5, "y": range(len(info.rows)), "name": info.rows})
    heads = pd.DataFrame([{"x": (first + last) / 2, "y": -0.5, "name": name} for name, first, last in info.groups])
    names = [
        alt.Chart(values(rows)).mark_text(align="right", dx=-8, fontSize=12),
        alt.Chart(values(heads)).mark_text(dy=-10, fontSize=12),
    ]
    names = [words.encode(x=x, y=y, text="name:N") for words in names]
    chart = alt.layer(frames, images, *crosses, *names)
    return themed(chart.properties(width=step * info.width, height=step * len(info.rows)), info.caption)


def data_url(image: Sequence[int]) -> str:
    """A square colour image as a data URL. The pixels are given row by row."""
    side = round((len(image) // 3) ** 0.5)
    if len(image) != 3 * side**2:
        raise BadInput(f"An image is a square of pixels with three channels each; got {len(image)} numbers.")
    pixels = np.asarray(image, np.uint8).reshape(side, side, 3)
    # Each pixel is repeated: programs that enlarge an image smooth it.
    larger = np.kron(pixels, np.ones((max(1, 64 // side), max(1, 64 // side), 1), np.uint8))
    return "data:image/png;base64," + base64.b64encode(encode_png(larger)).decode()
