"""The Runs page: rows, groups and plots of the index."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from recombine.errors import BadInput
from recombine.view.viewer import Viewer

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 500
"""Rows of one answer; a page asks for the next ones when they come into view."""
MOST_POINTS = 2_000
"""Points that a plot draws one by one."""
FAINT = 0.3
"""The opacity of single replicates."""
SHOWN_VALUES = 40
FIRST = ("run", "family", "model")
SCORES = ("score_in", "score_held_out")
LAST = ("status", "made")
HIDDEN = ("seeds.",)
"""Settings that always vary and say little; they can be chosen all the same."""


def columns(viewer: Viewer) -> dict[str, Any]:
    """The columns of the index: kind, number of values, the values themselves where they are few, and which to show first."""
    index = viewer.index()
    return viewer.kept(("columns", viewer.revision), lambda: _columns(index))


def _columns(index: Any) -> dict[str, Any]:
    frame, kinds = index.frame(refresh=False), index.kinds
    found = []
    for name in frame.columns:
        values = frame[name].dropna()
        text = kinds.get(name) == "text"
        distinct = values.astype(str).unique() if values.dtype == object else values.unique()
        few = sorted(_plain(value) for value in distinct) if len(distinct) <= SHOWN_VALUES else []
        found.append(
            {
                "name": name,
                "kind": "text" if text else kinds.get(name, "text"),
                "values": few,
                "distinct": len(distinct),
            }
        )
    return {"columns": found, "shown": _shown(found), "runs": len(frame)}


def _shown(found: list[dict[str, Any]]) -> list[str]:
    """Columns to show first: what the runs are, the settings in which they differ, and their scores."""
    names = [column["name"] for column in found]
    status = names.index("reached") if "reached" in names else 0
    settings = found[status + 1 : names.index("metric") if "metric" in names else None]
    varied = [
        column["name"]
        for column in settings
        if column["distinct"] > 1 and not column["name"].startswith(HIDDEN) and column["name"] not in FIRST
    ]
    several = [name for name in ("support", "encoding", "recipe") if name in varied]
    chosen = [*FIRST, *several, *[name for name in varied if name not in several][:5], *SCORES, "tags", "note", *LAST]
    return [name for name in dict.fromkeys(chosen) if name in names]


def rows(
    viewer: Viewer, where: str = "", sort: str = "", columns: str = "", limit: str = "100", offset: str = "0"
) -> dict[str, Any]:
    """Runs that a filter keeps, in order. Names of columns are apart by commas."""
    index = viewer.index()
    shown = _names(columns) or _columns_shown(viewer)
    kept = index.frame(where=where.strip() or None, sort=_names(sort), columns=["run", *shown], refresh=False)
    start, count = _whole("offset", offset), min(_whole("limit", limit), MOST_ROWS)
    part = kept.iloc[start : start + count]
    return {"columns": list(part.columns), "rows": values(part), "found": len(kept), "runs": len(index)}


def _columns_shown(viewer: Viewer) -> list[str]:
    return columns(viewer)["shown"]


def groups(viewer: Viewer, by: str, columns: str = "", where: str = "", sort: str = "") -> dict[str, Any]:
    """Groups of runs: number of runs, and for each number its mean with the 95 % interval."""
    index = viewer.index()
    frame = index.frame(
        where=where.strip() or None, sort=_names(sort), columns=_names(columns) or None, group=_names(by), refresh=False
    )
    return {"columns": list(frame.columns), "rows": values(frame.iloc[:MOST_ROWS]), "found": len(frame)}


def plot(viewer: Viewer, x: str, y: str, by: str = "", where: str = "") -> dict[str, Any]:
    """A figure of the runs that a filter keeps: means with intervals over replicates."""
    from recombine.figures.embed import chart_json
    from recombine.figures.study import of_runs

    index = viewer.index()
    x, y, by = index.column(x), index.column(y), index.column(by) if by else ""
    seeds = [name for name in index.columns if name.startswith("seeds.")]
    wanted: list[str] = ["run", *seeds, x, y, *([by] if by else [])]
    frame = index.frame(where=where.strip() or None, columns=wanted, refresh=False)
    figure = of_runs(frame, x, y, by=by or None)
    spec = json.loads(chart_json(figure.chart))
    thinned = thin(spec, MOST_POINTS)
    note = f" Of the single replicates, {MOST_POINTS:,} are drawn." if thinned else ""
    return {"title": figure.title, "caption": figure.caption + note, "spec": spec, "runs": len(frame)}


def thin(spec: dict[str, Any], most: int) -> bool:
    """Keep at most so many of the faint points of a chart, evenly spread; whether some were left out.

    Args:
        spec: A Vega-Lite specification, which is changed.
        most: The number of points to keep. Means and intervals are layers of their own and stay as they are.
    """
    thinned = False
    for layer in _layers(spec):
        mark, data = layer.get("mark"), layer.get("data", {})
        rows = spec.get("datasets", {}).get(data.get("name"), data.get("values"))
        if isinstance(mark, dict) and mark.get("opacity") == FAINT and isinstance(rows, list) and len(rows) > most:
            layer["data"] = {"values": [rows[index * len(rows) // most] for index in range(most)]}
            thinned = True
    return thinned


def _layers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield spec
    for key in ("layer", "concat", "hconcat", "vconcat"):
        for part in spec.get(key, ()):
            yield from _layers(part)


# Values


def values(frame: pd.DataFrame) -> list[list[Any]]:
    """The rows of a frame as plain values."""
    columns = [[_plain(value) for value in frame[name].tolist()] for name in frame.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _whole(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise BadInput(f"{name} is {text[:20]!r}; expected a whole number.")
    return int(text)
