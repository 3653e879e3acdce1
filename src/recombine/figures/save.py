"""Figures as files, written without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vl_convert
from altair.typing import ChartType

from recombine.errors import BadInput
from recombine.figures.embed import chart_json, figure_page, vega_lite_version
from recombine.figures.files import write_whole
from recombine.figures.png import packed_png


def save_figure(chart: ChartType, path: str | Path, *, title: str = "", caption: str = "") -> Path:
    """Save a chart. The suffix of the path decides the format.

    Args:
        chart: The chart.
        path: A path that ends in .png, .svg, .pdf, .html or .json (the Vega-Lite specification).
        title: The title of an .html page. Default: the file's name.
        caption: The text below the chart of an .html page.

    Returns:
        The path.
    """
    path = Path(path)
    content: str | bytes
    match path.suffix.lower():
        case ".png":
            content = packed_png(vl_convert.vegalite_to_png(chart_json(chart), scale=2, **_settings()))
        case ".svg":
            content = chart_svg(chart)
        case ".pdf":
            content = vl_convert.vegalite_to_pdf(chart_json(chart), **_settings())
        case ".html":
            content = figure_page(chart, title or path.stem, caption)
        case ".json":
            content = chart_json(chart)
        case suffix:
            raise BadInput(
                f"A figure cannot be saved as {suffix or 'a file without a suffix'!r}.",
                fix="end the path in .png, .svg, .pdf, .html or .json",
            )
    return write_whole(path, content)


def chart_svg(chart: ChartType) -> str:
    """A chart as SVG text."""
    return vl_convert.vegalite_to_svg(chart_json(chart), **_settings())


def _settings() -> dict[str, Any]:
    # No base URL is allowed: a chart that refers to remote data fails instead of fetching them.
    return {"vl_version": vega_lite_version(), "allowed_base_urls": []}
