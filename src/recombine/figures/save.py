"""A figure as a file, without a network."""

from __future__ import annotations

from pathlib import Path

import vl_convert
from altair.typing import ChartType

from recombine.errors import BadInput
from recombine.figures.embed import chart_json, figure_page, vega_lite_version
from recombine.figures.files import write_whole
from recombine.figures.png import packed_png


def save_figure(chart: ChartType, path: str | Path, scale: float = 2) -> Path:
    """Save a chart as .png, .svg, .pdf or .html: the ending decides. `scale` is the sharpness of a .png."""
    path = Path(path)
    # No base URL is allowed: a chart that asks for data from elsewhere fails instead of fetching them.
    settings = {"vl_version": vega_lite_version(), "allowed_base_urls": []}
    content: str | bytes
    match path.suffix.lower():
        case ".png":
            content = packed_png(vl_convert.vegalite_to_png(chart_json(chart), scale=scale, **settings))
        case ".svg":
            content = vl_convert.vegalite_to_svg(chart_json(chart), **settings)
        case ".pdf":
            content = vl_convert.vegalite_to_pdf(chart_json(chart), **settings)
        case ".html":
            content = figure_page(chart, path.stem)
        case other:
            raise BadInput(
                f"A figure cannot be saved as {other or 'a file without an ending'!r}.",
                fix="end the path in .png, .svg, .pdf or .html",
            )
    return write_whole(path, content)
