"""A map of the combination space: what was trained, what was held out, and how well each did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from recombine.figures.summary import require
from recombine.figures.theme import unique_labels
from recombine.figures.wording import number as in_words

MOST = 40
"""So many rows can be told apart; more constituents than this are put into groups."""

COLUMNS = ("run", "replicate", "number", "constituents", "region", "stratum", "error", "spread")
CELL_COLUMNS = ["number", "row", "column", "part", "r2", "combinations", "met", "marked"]


class Panel(NamedTuple):
    """One map: the first replicate of one training-set size."""

    number: int
    run: str
    replicate: int
    r2_trained: float
    r2_held_out: float
    unmet: int
    """How many pairs that the held-out combinations hold never met in training."""


class CombinationMapInfo(NamedTuple):
    """What the figure shows."""

    labels: tuple[str, ...]
    panels: tuple[Panel, ...]
    cells: pd.DataFrame
    """`CELL_COLUMNS`; a row for each cell that holds something. `row`, `column` count from 0; `part` is
    trained (below the diagonal) or held out (above it), and the diagonal has both; `met`: the two met in
    training; `marked`: they did not, but could have."""
    group: int
    """How many constituents share a row: 1, unless there are too many to show."""
    constituents: int

    @property
    def caption(self) -> str:
        """How to read the figure."""
        text = (
            "Each square stands for two constituents and all combinations that hold both. Below the "
            "diagonal: combinations that were trained on. Above it: combinations held out. On the diagonal: "
            "all that hold the one constituent, trained (lower half) and held out (upper half). The colour "
            "is the pooled R² of those combinations, negative values drawn as 0. A cross marks "
            "two constituents that never met in training: below the diagonal there is then nothing to show, "
            "above it one sees how the network does with the new pair. Each map is the first replicate of "
            "its size."
        )
        if self.group > 1:
            text += (
                f" There are {self.constituents} constituents, too many to draw: each row stands for up to "
                f"{self.group} neighbours, and a cross for groups of which no two members met."
            )
        return text


def combination_map_info(
    combinations: pd.DataFrame, labels: Sequence[str] | None = None, most: int = MOST
) -> CombinationMapInfo:
    """The pooled scores of all pairs of constituents, for the first replicate of each training-set size."""
    require(combinations, COLUMNS, "combinations")
    named = [] if labels is None else [str(label) for label in labels]
    highest = max((int(part) for parts in combinations["constituents"] for part in parts), default=-1)
    count = max(len(named), highest + 1)
    named += [str(part) for part in range(len(named), count)]
    group = max(1, math.ceil(count / most))
    panels, cells = [], []
    for number in sorted({int(size) for size in combinations["number"]}):
        chosen = combinations[combinations["number"] == number]
        # One run only: averaging over replicates would blur what was trained.
        chosen = chosen[chosen["replicate"] == chosen["replicate"].min()]
        chosen = chosen[chosen["run"] == chosen["run"].iloc[0]]
        panel, panel_cells = _panel(chosen, number, count, group)
        panels.append(panel)
        cells.append(panel_cells)
    every = pd.concat(cells, ignore_index=True) if cells else pd.DataFrame(columns=CELL_COLUMNS)
    shown = [_group_label(named[at : at + group]) for at in range(0, count, group)]
    return CombinationMapInfo(tuple(unique_labels(shown)), tuple(panels), every, group, count)


def _group_label(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} \N{HORIZONTAL ELLIPSIS} {names[-1]}"


def _panel(frame: pd.DataFrame, number: int, count: int, group: int) -> tuple[Panel, pd.DataFrame]:
    """The cells of one run."""
    groups = math.ceil(count / group)
    members = np.zeros((len(frame), count), bool)
    for index, parts in enumerate(frame["constituents"]):
        members[index, [int(part) for part in parts]] = True
    region, stratum = frame["region"].to_numpy(), frame["stratum"].to_numpy()
    error, spread = frame["error"].to_numpy(float), frame["spread"].to_numpy(float)
    finite = np.isfinite(error) & np.isfinite(spread)
    trained, held_out = region == "trained", region == "held_out"
    # A listed sample of a large support need not show every pair that met: the strata know better.
    met = _together(members[trained | (stratum == "all_pairs_met")], group)
    possible = _together(members, group)
    cells = []
    for part, chosen in (("trained", trained & finite), ("held out", held_out & finite)):
        pooled, holding = _pooled(members[chosen], error[chosen], spread[chosen], group)
        for row, column in np.ndindex(groups, groups):
            inside = row >= column if part == "trained" else row <= column
            marked = bool(possible[row, column] and not met[row, column]) and row != column
            if inside and (holding[row, column] or marked):
                r2, held = float(pooled[row, column]), int(holding[row, column])
                cells.append((number, row, column, part, r2, held, bool(met[row, column]), marked))
    panel = Panel(
        number=number,
        run=str(frame["run"].iloc[0]),
        replicate=int(frame["replicate"].iloc[0]),
        r2_trained=_r2(error[trained & finite].sum(), spread[trained & finite].sum()),
        r2_held_out=_r2(error[held_out & finite].sum(), spread[held_out & finite].sum()),
        unmet=int(np.triu(possible & ~met, 1).sum()),
    )
    return panel, pd.DataFrame(cells, columns=CELL_COLUMNS)


def _grouped(members: np.ndarray, group: int) -> np.ndarray:
    """How many members of each group each combination has."""
    return np.add.reduceat(members.astype(float), np.arange(0, members.shape[1], group), axis=1)


def _together(members: np.ndarray, group: int) -> np.ndarray:
    """Which groups have two different members in one combination; on the diagonal, which occur at all."""
    counts = _grouped(members, group)
    return counts.T @ counts > 0


def _pooled(
    members: np.ndarray, error: np.ndarray, spread: np.ndarray, group: int
) -> tuple[np.ndarray, np.ndarray]:
    """The pooled R2 of the combinations that hold each pair of groups, and how many there are."""
    held = (_grouped(members, group) > 0).astype(float)
    errors, spreads = (held.T * error) @ held, (held.T * spread) @ held
    r2 = np.where(spreads > 0, 1 - errors / np.where(spreads > 0, spreads, 1), np.nan)
    return r2, (held.T @ held).astype(int)


def _r2(error: float, spread: float) -> float:
    return float(1 - error / spread) if spread > 0 else math.nan


def panel_title(panel: Panel) -> tuple[str, list[str]]:
    """What stands over one map: a title and the lines below it."""
    return f"{panel.number} training combinations", [
        f"above: held out, R² {in_words(panel.r2_held_out)}",
        f"below: trained, R² {in_words(panel.r2_trained)}",
    ]
