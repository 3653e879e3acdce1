"""The Plan page: a space as text becomes a plan, and its coverage grows row by row."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.plan.collected import as_rows, header
from recombine.plan.planner import Plan, make_plan
from recombine.plan.spec import PlanSpec, read_spec
from recombine.spaces import ProductSpace
from recombine.view.viewer import Viewer

LONGEST_SECONDS = 60.0
LONGEST_TEXT = 200_000
MOST_COUNTED = 3_000_000
"""Interactions that are counted for the curve of coverage."""
MOST_ROWS = 2_000
FORMATS = {"yaml": ".yaml", "toml": ".toml", "pict": ".pict", "acts": ".acts", "ctwedge": ".ctw"}


def made(viewer: Viewer, body: dict[str, Any]) -> dict[str, Any]:
    """The plan of a text: rows in the order in which they help most, and what each of them covers."""
    text, form = body.get("text"), body.get("format", "yaml")
    if not isinstance(text, str) or not text.strip():
        raise BadInput("There is no space to plan for.", fix="write factors and their levels")
    if len(text) > LONGEST_TEXT:
        raise BadInput(f"The text has more than {LONGEST_TEXT:,} characters.", fix="plan in the terminal")
    if form not in FORMATS:
        raise BadInput(f"There is no format {str(form)[:30]!r}.", fix=f"one of {', '.join(FORMATS)}")
    with tempfile.TemporaryDirectory(dir=viewer.scratch) as folder:
        path = Path(folder) / f"plan{FORMATS[form]}"
        path.write_text(text, encoding="utf-8")
        try:
            spec = read_spec(path)
        except BadInput as error:
            raise BadInput(error.message.replace(f"{folder}/", ""), fix=error.fix) from None
    if isinstance(spec.collected, Path):
        # A page must not read files that were not given to it.
        raise BadInput("On this page, what is collected is a list, not a file.", fix="collected: [[red, dog], ...]")
    result = make_plan(**vars(spec), progress=_within(LONGEST_SECONDS))
    return _document(result, spec)


def _within(seconds: float) -> Any:
    """A callback that ends a plan that takes too long."""
    end = time.monotonic() + seconds

    def check(*_: Any) -> None:
        if time.monotonic() > end:
            raise BadInput(
                f"This plan takes longer than {seconds:.0f} s.", fix="use `recombine plan FILE` in a terminal"
            )

    return check


def _document(result: Plan, spec: PlanSpec) -> dict[str, Any]:
    names = result.names
    return {
        "factors": header(result.space),
        "rows": names[:MOST_ROWS],
        "count": len(names),
        "costs": list(result.costs[:MOST_ROWS]),
        "cost": result.cost,
        "strength": result.strength,
        "covered_before": result.covered_before,
        "covered": result.covered,
        "coverable": result.coverable,
        "total": result.total,
        "growth": growth(result, spec),
        "notes": list(result.notes),
    }


def growth(result: Plan, spec: PlanSpec) -> list[int]:
    """The number of covered interactions after each row, with those that were collected before; empty if they are too many.

    Args:
        result: The plan.
        spec: What it was made from.
    """
    space = result.space
    if not isinstance(space, ProductSpace):
        return []
    before = as_rows(spec.collected, space) if isinstance(spec.collected, list) else []
    rows = [tuple(int(part) for part in row) for row in [*before, *result.combinations]]
    width = len(space.factors)
    groups = sum(1 for _ in itertools.combinations(range(width), result.strength))
    if groups * len(rows) > MOST_COUNTED:
        return []
    met: set[tuple[int, ...]] = set()
    counts = []
    for row in rows:
        met.update(_interactions(row, result.strength))
        counts.append(len(met))
    return counts[len(before) :]


def _interactions(row: Sequence[int], strength: int) -> itertools.combinations[tuple[int, ...]]:
    """The sets of constituents of this size in a row: constituents of different factors have different numbers."""
    return itertools.combinations(sorted(row), strength)
