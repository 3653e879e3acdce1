"""A figure: a chart with its title and caption."""

from __future__ import annotations

import base64
import dataclasses
from pathlib import Path

from altair.typing import ChartType

from recombine import _html
from recombine.plain import plain


@dataclasses.dataclass(frozen=True, repr=False)
class Figure:
    """A chart with its title and caption. A notebook shows all three.

    Example:
        ```python
        info = scatter_info(runs, x="r2_in", y="r2_held_out")
        figure = Figure("scatter", "Held-out against training score", info.caption, draw_scatter(info))
        figure.save("scatter.html")
        ```
    """

    name: str
    """A short name, used for files, for example `score_by_size`."""
    title: str
    caption: str
    """How to read the figure."""
    chart: ChartType
    """The Altair chart, for further changes."""

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file. No network is needed.

        Args:
            path: The suffix decides the format: .html (interactive, with title and caption), .png, .svg, .pdf, or .json
                (the Vega-Lite specification).

        Returns:
            The path.
        """
        from recombine.figures.save import save_figure

        return save_figure(self.chart, path, title=self.title, caption=self.caption)

    def __repr__(self) -> str:
        return f"Figure({plain(self.name)!r}, title={plain(self.title)!r})"

    def _repr_html_(self) -> str:
        from recombine.figures.save import chart_svg

        # As an image, an SVG cannot run scripts, and the names inside it cannot clash with those of the notebook.
        data = base64.b64encode(chart_svg(self.chart).encode("utf-8")).decode()
        image = f'<img style="max-width: 100%" alt="{_html.text(self.title)}" src="data:image/svg+xml;base64,{data}">'
        return _html.card(self.title, image, _html.paragraph(self.caption))
