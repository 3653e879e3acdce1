"""A map of the combinations in a user's data: which were scored, how well, and which were trained on."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy import sparse

from recombine.figures.axes import colour_ends
from recombine.figures.theme import unique_labels
from recombine.figures.wording import cut
from recombine.plain import plain

MOST = 36
"""Largest number of rows or columns: the values with the lowest scores and the most frequent ones."""
MOST_PANELS = 6
MOST_SLOTS = 12
"""Pairs are selected among at most this many slots."""
PRIOR = 2.0
"""Each value has this many additional combinations with the mean score: one failure does not make it the worst value."""


class Combinations(NamedTuple):
    """Combinations as numbers of *atoms*: a value in a slot."""

    slots: tuple[str, ...]
    """Names of the slots: factors, roles, sets."""
    slot: Int[np.ndarray, " atom"]
    """The slot of each atom."""
    value: Int[np.ndarray, " atom"]
    """The number of its value. A value that can fill several slots has one number."""
    names: tuple[str, ...]
    """The name of the value of each atom."""
    rows: Int[np.ndarray, "cell slot"]
    """The atoms of each combination, negative where a slot is empty."""
    score: Float[np.ndarray, " cell"]
    """Mean score; NaN if there is none."""
    repeats: Int[np.ndarray, " cell"]
    """Number of scored rows."""
    trained: Bool[np.ndarray, " cell"] | None


class MapAxis(NamedTuple):
    """The rows or the columns of a panel."""

    slot: str
    labels: tuple[str, ...]
    """Unique."""
    values: int
    """Number of values, shown or not."""
    ordered: bool
    """The values are numbers in their order. Otherwise they run from the lowest score to the highest."""


class MapPanel(NamedTuple):
    """The map of two slots, or of one slot with itself."""

    down: MapAxis
    across: MapAxis
    cells: pd.DataFrame
    """Columns: row, column, score, combinations, rows, scored, trained. One row per square that is not empty. `row` and
    `column` count from 0."""
    same: bool
    """Both axes are the same slot: values of a set."""


class AuditMapInfo(NamedTuple):
    """The content of the figure."""

    panels: tuple[MapPanel, ...]
    pairs: int
    """Number of pairs of slots, shown or not."""
    single: bool
    """A square is one combination, not all combinations that contain two values."""
    training_known: bool
    """The training combinations are known."""
    domain: tuple[float, float]
    score: str

    @property
    def caption(self) -> str:
        """How to read the figure."""
        if not self.panels:
            return "No combination has a score."
        words = [self._squares()]
        if self.training_known:
            what = "the combination was" if self.single else "some of these combinations were"
            words.append(f"A frame means that {what} trained on. A square without a frame was held out.")
        axes = [axis for panel in self.panels for axis in (panel.down, panel.across) if axis.slot]
        if not all(axis.ordered for axis in axes):
            numbers = "; numbers are in their order" if any(axis.ordered for axis in axes) else ""
            words.append(f"Values are sorted from the lowest mean to the highest{numbers}.")
        short = {axis.slot: axis for axis in axes if axis.values > len(axis.labels)}
        if short:
            many = [f"{len(axis.labels)} of {axis.values:,} {cut(name, 40)}" for name, axis in short.items()]
            words.append(
                f"The map shows {' and '.join(many)}: one half has the lowest scores (values with few combinations count "
                "less), the other half occurs in most combinations."
            )
        if self.pairs > len(self.panels):
            words.append(
                f"{len(self.panels)} of {self.pairs:,} pairs of slots are shown: those with most held-out pairs of "
                "values, then those whose squares differ most."
            )
        return " ".join(words)

    def _squares(self) -> str:
        mean = f"mean {self.score}"
        bright = f"Dark is low, bright is high. Hover over a square for names, {mean} and rows."
        if self.single:
            return f"Each square is one combination, coloured by its {mean}. Combinations without a square were not scored. {bright}"
        if all(len(panel.across.labels) == 1 and not panel.across.slot for panel in self.panels):
            return f"Each square is a value, coloured by its {mean}. {bright}"
        text = f"Each square represents all combinations that contain two values, coloured by their {mean}. {bright}"
        if any(panel.same for panel in self.panels):
            text += " On the diagonal: all combinations that contain one value."
        return text


def audit_map_info(
    combinations: Combinations, score: str = "score", *, domain: tuple[float, float] | None = None
) -> AuditMapInfo:
    """Mean scores of all pairs of values. With two slots of single values, these are the combinations themselves.

    Args:
        combinations: The combinations with their scores.
        score: The name of the score.
        domain: The ends of the colour scale. Default: the range of the scores.

    Returns:
        The input of `draw_audit_map`.
    """
    scored = np.isfinite(combinations.score)
    holds = _holding(combinations)
    held, scores = holds[np.nonzero(scored)[0]], combinations.score[scored]
    overall = float(scores.mean()) if len(scores) else 0.0
    means = _Means(holds.sum(0), held.sum(0), held.T @ scores, overall)
    every = _pairs(combinations, holds)
    pairs = _among(every, combinations, means)
    axes = {slot: _chosen(combinations, means, slot) for pair in pairs for slot in pair if slot is not None}
    panels = [_panel(combinations, holds, scored, axes, *pair) for pair in pairs]
    panels = [panel for panel in panels if len(panel.cells)]
    shown = sorted(panels, key=_worth, reverse=True)[:MOST_PANELS] if len(panels) > MOST_PANELS else panels
    two = bool(((combinations.rows >= 0).sum(1) == 2).all())
    return AuditMapInfo(
        panels=tuple(shown),
        pairs=len(every),
        single=two and len(every) == 1 and every[0][0] != every[0][1],
        training_known=combinations.trained is not None,
        domain=colour_ends(combinations.score.tolist(), domain),
        score=cut(plain(score), 40),
    )


def _holding(combinations: Combinations) -> sparse.csr_array:
    """Which combination contains which atom."""
    cell, slot = np.nonzero(combinations.rows >= 0)
    atoms = combinations.rows[cell, slot]
    shape = (len(combinations.rows), len(combinations.slot))
    return sparse.csr_array((np.ones(len(cell)), (cell, atoms)), shape=shape)


def _pairs(combinations: Combinations, holds: sparse.csr_array) -> list[tuple[int, int | None]]:
    """Pairs of slots. A slot with several values is paired with itself, a single slot with nothing."""
    number = len(combinations.slots)
    several = [
        slot for slot in range(number) if holds[:, np.nonzero(combinations.slot == slot)[0]].sum(1).max(initial=0) > 1
    ]
    pairs: list[tuple[int, int | None]] = [(slot, slot) for slot in several]
    pairs += itertools.combinations(range(number), 2)
    return pairs or [(slot, None) for slot in range(number)]


class _Means(NamedTuple):
    """Scores of the combinations of each atom."""

    seen: Float[np.ndarray, " atom"]
    """Number of its combinations, scored or not."""
    number: Float[np.ndarray, " atom"]
    total: Float[np.ndarray, " atom"]
    overall: float

    def mean(self, groups: np.ndarray | None = None) -> np.ndarray:
        """Shrunken means of atoms, or of groups of them: one of few combinations is close to the overall mean."""
        number, total = self.number, self.total
        if groups is not None:
            number, total = np.bincount(groups, number), np.bincount(groups, total)
        return (total + PRIOR * self.overall) / (number + PRIOR)


def _among(
    pairs: list[tuple[int, int | None]], combinations: Combinations, means: _Means
) -> list[tuple[int, int | None]]:
    """The pairs of the slots whose values differ most; all pairs unless there are very many slots."""
    mean = means.mean()
    spread = [float(np.ptp(mean[combinations.slot == slot])) for slot in range(len(combinations.slots))]
    kept = set(np.argsort(spread)[::-1][:MOST_SLOTS].tolist())
    return [pair for pair in pairs if pair[0] in kept and (pair[1] is None or pair[1] in kept)]


def _chosen(combinations: Combinations, means: _Means, slot: int) -> tuple[Int[np.ndarray, " n"], MapAxis]:
    """The atoms of a slot that are shown, in order."""
    kept = atoms = np.nonzero(combinations.slot == slot)[0]
    if len(atoms) > MOST:
        mean = means.mean()
        worst = atoms[np.lexsort((-means.number[atoms], mean[atoms]))]
        frequent = atoms[np.lexsort((mean[atoms], -means.seen[atoms]))]
        picked = dict.fromkeys(worst[: MOST // 2].tolist())
        rest = [atom for atom in frequent.tolist() if atom not in picked]
        kept = np.array([*picked, *rest[: MOST - len(picked)]], dtype=np.int64)
    names = [combinations.names[atom] for atom in kept.tolist()]
    numbers = [_as_number(name) for name in names]
    ordered = all(math.isfinite(number) for number in numbers)
    # A value that can fill two slots has the same rank in both.
    rank = numbers if ordered else means.mean(combinations.value)[combinations.value[kept]].tolist()
    order = sorted(range(len(kept)), key=lambda index: (rank[index], names[index]))
    labels = unique_labels([cut(plain(names[index])) for index in order])
    name = cut(plain(combinations.slots[slot]))
    return kept[order], MapAxis(name, tuple(labels), len(atoms), ordered)


def _as_number(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return math.nan


def _panel(
    combinations: Combinations,
    holds: sparse.csr_array,
    scored: Bool[np.ndarray, " cell"],
    axes: dict[int, tuple[np.ndarray, MapAxis]],
    down: int,
    across: int | None,
) -> MapPanel:
    atoms, rows = axes[down]
    first = holds[:, atoms]
    second, columns = sparse.csr_array(np.ones((len(scored), 1))), MapAxis("", ("",), 1, True)
    if across is not None:
        atoms, columns = axes[across]
        second = holds[:, atoms]

    def together(weight: np.ndarray) -> np.ndarray:
        return (first.T @ sparse.diags_array(weight.astype(float)) @ second).toarray()

    trained = np.zeros(len(scored)) if combinations.trained is None else combinations.trained
    number, total = together(scored), together(np.where(scored, combinations.score, 0.0))
    count, seen = together(np.where(scored, combinations.repeats, 0)), together(trained)
    inside = (number > 0) | (seen > 0)
    if down == across:
        inside &= np.tri(len(rows.labels), dtype=bool)
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
        }
    )
    return MapPanel(rows, columns, cells, down == across)


def _worth(panel: MapPanel) -> tuple[int, float]:
    """The priority of a panel: held-out pairs first, then the variance of its squares."""
    scored = panel.cells[panel.cells["scored"]]
    held_out = int((~scored["trained"]).sum()) if panel.cells["trained"].any() else 0
    spread = float(np.average((scored["score"] - scored["score"].mean()) ** 2)) if len(scored) else 0.0
    return held_out, spread
