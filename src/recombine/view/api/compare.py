"""The Compare page: two runs, or two groups of runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.store.comparison import Side, compare, side
from recombine.store.requests import requests
from recombine.store.store import Store
from recombine.store.tags import tags
from recombine.view.viewer import Viewer

MOST_COMBINATIONS = 300


def sides(viewer: Viewer) -> dict[str, list[str]]:
    """What can be compared by its name: tags, studies and sweeps."""
    names = [request["name"] for request in requests(viewer.store)]
    return {"tags": sorted(tags(viewer.store)), "requests": sorted(dict.fromkeys(names))}


def comparison(
    viewer: Viewer, a: str, b: str, score: str = "score_held_out", margin: str = "0.05", solved: str = "0.5"
) -> dict[str, Any]:
    """The second side against the first: settings that differ, the difference of a score, combinations that flipped."""
    index, store = viewer.index(), viewer.store
    found = compare(
        _side(store, a),
        _side(store, b),
        score=index.column(score),
        margin=_number("margin", margin),
        solved=_number("solved", solved),
    )
    record = found.record()
    flips = sum(each.flips > 0 for each in found.combinations)
    shown = record["combinations"][:MOST_COMBINATIONS]
    counts = {"flipped": flips, "compared": len(found.combinations)}
    return record | counts | {"combinations": shown}


def _side(store: Store, what: str) -> Side:
    """The runs that a text means; unlike on the command line, it is never a folder."""
    what = what.strip()
    if not what:
        raise BadInput("Name both sides.", fix="a run, a tag, a study or sweep, or a filter such as width = 64")
    if "\0" in what or Path(what).exists():
        raise BadInput(f"{what[:100]!r} is a path.", fix="`recombine compare A B` compares stores, in a terminal")
    return side(store, what)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadInput(f"{name} is {text[:30]!r}; expected a number.")
    return value
