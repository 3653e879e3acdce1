"""A map of somebody's combination space: which combinations were scored, how well, and which were trained on."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy import sparse

from recombine.figures.audit_names import cut
from recombine.figures.theme import unique_labels
from recombine.figures.wording import count_of
from recombine.plain import plain

MOST = 36
"""So many rows or columns are shown; of more values, the worst and the most frequent."""
MOST_PANELS = 6
MOST_PLACES = 12
"""Pairs are looked for among so many places."""
PRIOR = 2.0
"""A value counts as if it stood in so many combinations more, of the mean score: one failure makes no worst value."""

CELL_COLUMNS = ["row", "column", "score", "combinations", "rows", "scored", "trained"]


class Combinations(NamedTuple):
    """Combinations as numbers of *atoms*: values with the place in which they stand."""

    places: tuple[str, ...]
    """Names of places: factors, roles, sets."""
    place: Int[np.ndarray, " atom"]
    """The place of each atom."""
    value: Int[np.ndarray, " atom"]
    """The number of its value: values that can stand in several places have one number."""
    names: tuple[str, ...]
    """The name of the value of each atom."""
    rows: Int[np.ndarray, "cell slot"]
    """The atoms of each combination, negative where a slot is empty."""
    score: Float[np.ndarray, " cell"]
    """Mean score; not a number where there is none."""
    repeats: Int[np.ndarray, " cell"]
    """Scored rows."""
    trained: Bool[np.ndarray, " cell"] | None


class MapAxis(NamedTuple):
    """The rows or the columns of a panel."""

    place: str
    labels: tuple[str, ...]
    """No two are equal."""
    values: int
    """How many there are, shown or not."""
    ordered: bool
    """Numbers, in their order; else from the lowest score to the highest."""


class MapPanel(NamedTuple):
    """The map of two places, or of one place with itself."""

    down: MapAxis
    across: MapAxis
    cells: pd.DataFrame
    """`CELL_COLUMNS`; a row for each square that holds something. `row`, `column` count from 0."""
    same: bool
    """Both axes are one place: values of a set."""

    @property
    def cut(self) -> bool:
        """Some values are not shown."""
        return any(axis.values > len(axis.labels) for axis in (self.down, self.across))


class AuditMapInfo(NamedTuple):
    """What the figure shows."""

    panels: tuple[MapPanel, ...]
    pairs: int
    """How many pairs of places there are, shown or not."""
    single: bool
    """A square is a combination, and not all that hold two values."""
    told: bool
    """Somebody said what was trained on."""
    domain: tuple[float, float]
    score: str

    @property
    def caption(self) -> str:
        """How to read the figure."""
        if not self.panels:
            return "No combination has a score."
        return " ".join([self._squares(), *self._frames(), *self._order(), *self._left_out()])

    def _squares(self) -> str:
        mean = f"mean {self.score}"
        bright = f"Dark is low, bright is high. Point at one for names, {mean} and rows."
        if self.single:
            return f"Each square is a combination, coloured by its {mean}; where there is none, nobody scored it. {bright}"
        if all(len(panel.across.labels) == 1 and not panel.across.place for panel in self.panels):
            return f"Each square is a value, coloured by its {mean}. {bright}"
        text = f"Each square stands for all combinations that hold two values, coloured by their {mean}. {bright}"
        if any(panel.same for panel in self.panels):
            text += " On the diagonal: all combinations that hold the one value."
        return text

    def _frames(self) -> list[str]:
        if not self.told:
            return []
        what = "The combination was" if self.single else "Some of these combinations were"
        return [f"A frame: {what[0].lower()}{what[1:]} trained on. A square without a frame was held out."]

    def _order(self) -> list[str]:
        axes = [axis for panel in self.panels for axis in (panel.down, panel.across) if axis.place]
        if all(axis.ordered for axis in axes):
            return []
        numbers = ", numbers in their order" if any(axis.ordered for axis in axes) else ""
        return [f"Values stand from the lowest mean to the highest{numbers}."]

    def _left_out(self) -> list[str]:
        text = []
        short = {
            axis.place: axis
            for panel in self.panels
            for axis in (panel.down, panel.across)
            if axis.values > len(axis.labels)
        }
        if short:
            many = " and ".join(
                f"{len(axis.labels)} of {axis.values:,} {cut(name, 40)}" for name, axis in short.items()
            )
            text.append(
                f"Shown are {many}: one half are those with the lowest scores (few combinations count less), the other "
                "those in most combinations."
            )
        if self.pairs > len(self.panels):
            text.append(
                f"Of {self.pairs:,} pairs of places the {count_of(len(self.panels), 'one')} are shown in which most "
                "pairs of values were held out, then those whose squares differ most."
            )
        return text


def audit_map_info(
    combinations: Combinations,
    score: str = "score",
    *,
    domain: tuple[float, float] | None = None,
    most: int = MOST,
    most_panels: int = MOST_PANELS,
) -> AuditMapInfo:
    """Mean scores of all pairs of values: for two places of single values these are the combinations themselves.

    `domain` gives the ends of the colours; without it they follow the scores.
    """
    scored = np.isfinite(combinations.score)
    holds = _holding(combinations)
    means = _means(combinations, holds, scored)
    every = _pairs(combinations, holds)
    pairs = _among(every, combinations, means)
    axes = {
        place: _chosen(combinations, means, place, most)
        for place in {place for pair in pairs for place in pair if place is not None}
    }
    panels = [_panel(combinations, holds, scored, axes, *pair) for pair in pairs]
    panels = [panel for panel in panels if len(panel.cells)]
    shown = sorted(panels, key=_worth, reverse=True)[:most_panels] if len(panels) > most_panels else panels
    values = combinations.score[scored]
    ends = domain or ((float(values.min()), float(values.max())) if len(values) else (0.0, 1.0))
    if ends[0] == ends[1]:
        ends = (ends[0] - 0.5, ends[1] + 0.5)
    two = bool(((combinations.rows >= 0).sum(1) == 2).all())
    return AuditMapInfo(
        panels=tuple(shown),
        pairs=len(every),
        single=two and len(every) == 1 and every[0][0] != every[0][1],
        told=combinations.trained is not None,
        domain=ends,
        score=cut(plain(score), 40),
    )


def _holding(combinations: Combinations) -> sparse.csr_array:
    """Which combination holds which atom."""
    cell, slot = np.nonzero(combinations.rows >= 0)
    atoms = combinations.rows[cell, slot]
    shape = (len(combinations.rows), len(combinations.place))
    return sparse.csr_array((np.ones(len(cell)), (cell, atoms)), shape=shape)


def _pairs(combinations: Combinations, holds: sparse.csr_array) -> list[tuple[int, int | None]]:
    """Pairs of places; a place that takes several values is paired with itself, a single place with nothing."""
    number = len(combinations.places)
    several = [
        place
        for place in range(number)
        if holds[:, np.nonzero(combinations.place == place)[0]].sum(1).max(initial=0) > 1
    ]
    pairs: list[tuple[int, int | None]] = [(place, place) for place in several]
    pairs += itertools.combinations(range(number), 2)
    return pairs or [(place, None) for place in range(number)]


class _Means(NamedTuple):
    """How the combinations of each atom score."""

    seen: Float[np.ndarray, " atom"]
    """In how many combinations it stands, scored or not."""
    number: Float[np.ndarray, " atom"]
    total: Float[np.ndarray, " atom"]
    overall: float

    def mean(self, number: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Shrunken: a value in few combinations is near the mean of all."""
        return (total + PRIOR * self.overall) / (number + PRIOR)


def _means(combinations: Combinations, holds: sparse.csr_array, scored: Bool[np.ndarray, " cell"]) -> _Means:
    score = combinations.score[scored]
    held = holds[np.nonzero(scored)[0]]
    overall = float(score.mean()) if len(score) else 0.0
    return _Means(holds.sum(0), held.sum(0), held.T @ score, overall)


def _among(
    pairs: list[tuple[int, int | None]], combinations: Combinations, means: _Means
) -> list[tuple[int, int | None]]:
    """The pairs of the places whose values differ most; all of them unless there are very many places."""
    mean = means.mean(means.number, means.total)
    spread = [float(np.ptp(mean[combinations.place == place])) for place in range(len(combinations.places))]
    kept = set(np.argsort(spread)[::-1][:MOST_PLACES].tolist())
    return [pair for pair in pairs if pair[0] in kept and (pair[1] is None or pair[1] in kept)]


class _Axis(NamedTuple):
    atoms: Int[np.ndarray, " n"]
    axis: MapAxis


def _chosen(combinations: Combinations, means: _Means, place: int, most: int) -> _Axis:
    """The atoms of a place that are shown, in their order."""
    atoms = np.nonzero(combinations.place == place)[0]
    mean = means.mean(means.number, means.total)
    kept = atoms
    if len(atoms) > most:
        worst = atoms[np.lexsort((-means.number[atoms], mean[atoms]))]
        frequent = atoms[np.lexsort((mean[atoms], -means.seen[atoms]))]
        picked = dict.fromkeys(worst[: most // 2].tolist())
        rest = [atom for atom in frequent.tolist() if atom not in picked]
        kept = np.array([*picked, *rest[: most - len(picked)]], dtype=np.int64)
    names = [combinations.names[atom] for atom in kept.tolist()]
    numbers = [_as_number(name) for name in names]
    ordered = all(math.isfinite(one) for one in numbers)
    # A value that can stand in two places has the same rank in both.
    value = combinations.value
    both = means.mean(np.bincount(value, means.number), np.bincount(value, means.total))
    rank = numbers if ordered else both[value[kept]].tolist()
    order = sorted(range(len(kept)), key=lambda index: (rank[index], names[index]))
    labels = unique_labels([cut(plain(names[index])) for index in order])
    name = cut(plain(combinations.places[place]))
    return _Axis(kept[order], MapAxis(name, tuple(labels), len(atoms), ordered))


def _as_number(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return math.nan


def _panel(
    combinations: Combinations,
    holds: sparse.csr_array,
    scored: Bool[np.ndarray, " cell"],
    axes: dict[int, _Axis],
    down: int,
    across: int | None,
) -> MapPanel:
    rows = axes[down]
    columns = None if across is None else axes[across]
    first = holds[:, rows.atoms]
    second = sparse.csr_array(np.ones((len(scored), 1))) if columns is None else holds[:, columns.atoms]

    def together(weight: np.ndarray) -> np.ndarray:
        return (first.T @ sparse.diags_array(weight.astype(float)) @ second).toarray()

    trained = np.zeros(len(scored)) if combinations.trained is None else combinations.trained
    number, total = together(scored), together(np.where(scored, combinations.score, 0.0))
    count, seen = together(np.where(scored, combinations.repeats, 0)), together(trained)
    inside = (number > 0) | (seen > 0)
    if down == across:
        inside &= np.tri(len(rows.atoms), dtype=bool)
    row, column = np.nonzero(inside)
    with np.errstate(invalid="ignore"):
        mean = (total / number)[row, column]
    cells = pd.DataFrame(
        {
            "row": row,
            "column": column,
            "score": mean,
            "combinations": number[row, column].astype(int),
            "rows": count[row, column].astype(int),
            "scored": number[row, column] > 0,
            "trained": seen[row, column] > 0,
        },
        columns=CELL_COLUMNS,
    )
    other = MapAxis("", ("",), 1, True) if columns is None else columns.axis
    return MapPanel(rows.axis, other, cells, down == across)


def _worth(panel: MapPanel) -> tuple[int, float]:
    """Why to show a panel rather than others: pairs that were held out, then how far its squares differ."""
    scored = panel.cells[panel.cells["scored"]]
    held_out = int((~scored["trained"]).sum()) if panel.cells["trained"].any() else 0
    spread = float(np.average((scored["score"] - scored["score"].mean()) ** 2)) if len(scored) else 0.0
    return held_out, spread
