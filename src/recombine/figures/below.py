"""Means that lie below the axis: each series has a row of triangles under it, with the values in words."""

from __future__ import annotations

import pandas as pd

from recombine.figures.wording import number as in_words


def axis_floor(summary: pd.DataFrame, floor: float) -> float:
    """Where the axis begins: at a negative floor only when something is negative, else at zero."""
    if floor >= 0:
        return floor
    lowest = min(summary["mean"].min(), summary["low"].min()) if len(summary) else 0.0
    return floor if lowest < 0 else 0.0


def below_axis(
    summary: pd.DataFrame, by: list[str], floor: float, strip: float
) -> tuple[pd.DataFrame, float]:
    """The means below `floor` with the height at which each is `shown` and its `label`; how deep the rows go.

    `strip` is the height of a row in units of the axis.
    """
    clipped = summary.loc[summary["mean"] < floor, [*by, "mean"]].reset_index(drop=True)
    # Two series below the axis would hide each other, so each has a row of its own, the lowest last.
    row = clipped.groupby("series")["mean"].transform("mean").rank(method="dense", ascending=False) - 1
    clipped = clipped.assign(shown=floor - strip * (row + 0.35), label=[in_words(m) for m in clipped["mean"]])
    return clipped, strip * (float(row.max()) + 1.1) if len(clipped) else 0.0


def below_in_words(floor: float, labelled: bool = True) -> str:
    """What the triangles are, for a caption."""
    where = "the number below each is its value" if labelled else "point at one for its value"
    return f" Triangles under the axis stand for means below {in_words(floor)}; {where}."
