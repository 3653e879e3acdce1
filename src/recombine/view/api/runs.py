"""The Runs page: rows, groups and plots of the index."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from recombine.errors import BadInput
from recombine.view.viewer import Viewer

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 500
"""Rows of one answer; a page asks for the next ones when they come into view."""
MOST_POINTS = 2_000
"""Points that a plot draws one by one."""
FEW = 12
"""A number with at most this many values makes lines of means; one with more makes points."""
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
    """A figure of the runs that a filter keeps: means along a number with few values, points otherwise."""
    wanted = [name for name in (x, y, by) if name]
    frame = viewer.index().frame(where=where.strip() or None, columns=["run", *wanted], refresh=False)
    kinds = viewer.index().kinds
    named = [name for name in frame.columns if name != "run"]
    x, y, by = (_meant(name, named) for name in (x, y, by))
    frame = frame.dropna(subset=[x, y]).reset_index(drop=True)
    if kinds.get(y) != "number":
        raise BadInput(f"{y!r} is no number.", fix="choose a number for the y axis")
    if not len(frame):
        raise BadInput("No run has both values.", fix="choose other axes, or a wider filter")
    from recombine.figures.embed import chart_json

    figure = _figure(frame, x, y, by, kinds.get(x) == "number")
    spec = json.loads(chart_json(figure.chart))
    return {"title": figure.title, "caption": figure.caption, "spec": spec, "runs": len(frame)}


def _figure(frame: pd.DataFrame, x: str, y: str, by: str, numeric: bool) -> Any:
    from recombine.figures.study import dots, lines, scatter

    frame = frame.assign(replicate=range(len(frame)))
    title = f"{y} by {x}" + (f" and {by}" if by else "")
    note = ""
    if numeric and frame[x].nunique() <= FEW:
        # Each run is a replicate of its own: means with intervals over runs.
        return lines(frame, x=x, y=y, title=title, series=by or None, log=_spread(frame[x]))
    if not numeric:
        return dots(frame, category=x, measures=y, title=title, columns=None)
    if len(frame) > MOST_POINTS:
        note = f"{MOST_POINTS:,} of {len(frame):,} runs are drawn, chosen at random."
        frame = frame.sample(MOST_POINTS, random_state=0)
    return scatter(frame, x=x, y=y, title=title, group=by or None, point_name="run", caption=note)


def _spread(numbers: pd.Series) -> bool:
    """Whether numbers are spread over so much that a logarithmic axis shows them better."""
    return bool(numbers.min() > 0 and numbers.max() / numbers.min() >= 8)


def _meant(name: str, names: list[str]) -> str:
    """The full name of a column; the index has checked that there is one."""
    matches = [full for full in names if full == name or full.endswith(f".{name}")]
    return matches[0] if matches else name


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
