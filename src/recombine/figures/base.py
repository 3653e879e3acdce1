"""A figure: a chart with the words around it."""

from __future__ import annotations

import dataclasses

from altair.typing import ChartType


@dataclasses.dataclass(frozen=True)
class Figure:
    """A chart with what stands around it."""

    name: str
    """A short word for the figure, for instance `score_by_size`."""
    title: str
    caption: str
    """How to read it."""
    chart: ChartType
