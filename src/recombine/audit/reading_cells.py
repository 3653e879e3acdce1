"""Groups of rows as cells: the same combination once, with its moments."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.cells import Cells, Factor
from recombine.audit.reading_levels import Levels, name_values
from recombine.audit.reading_query import Asked, Groups
from recombine.errors import BadInput


def used(groups: Groups) -> Bool[np.ndarray, " group"]:
    """Which groups become cells: all factors have a value, and there is a score or training."""
    return groups.whole & ((groups.count > 0) | (groups.trained > 0))


def cells_of(
    groups: Groups, studied: Groups | None, asked: Asked, levels: dict[str, Levels], title: str
) -> tuple[Cells, Int[np.ndarray, "group column"], Int[np.ndarray, " group"]]:
    """Groups as cells. Different texts can be the same combination, as sets in another order are."""
    kept = used(groups)
    more = (
        np.zeros((0, len(asked.columns)), dtype=np.int64) if studied is None else studied.codes[studied.whole]
    )
    codes = np.concatenate([groups.codes[kept], more])
    parts, place, factors = _parts(asked.factors, levels, codes)
    rows, cell = np.unique(parts, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    number = int(kept.sum())
    count, mean, spread = _moments(groups, kept, cell[:number], len(rows))
    trained = None
    if asked.split is not None or studied is not None:
        trained = np.zeros(len(rows), dtype=bool)
        trained[cell[:number][groups.trained[kept] > 0]] = True
        trained[cell[number:]] = True
    made = Cells(factors, rows, place, asked.scores, groups.binary, count, mean, spread, trained)
    if (count > 0).sum() < 2:
        only = made.name(int(np.flatnonzero(count > 0)[0]))
        raise BadInput(
            f"{title} has scores of one combination only ({only}): there is nothing to compare.",
            fix="name factors that differ between rows, or widen the filter",
        )
    return made, groups.codes[kept], cell[:number]


def _parts(
    factors: tuple[Factor, ...], levels: dict[str, Levels], codes: Int[np.ndarray, "group column"]
) -> tuple[Int[np.ndarray, "group slot"], tuple[str, ...], tuple[Factor, ...]]:
    """The constituents of each group, numbered through all factors."""
    first, offset, named = 0, 0, []
    blocks = []
    for factor in factors:
        one = name_values(factor, levels[factor.name], codes[:, first : first + len(factor.columns)])
        blocks.append(np.where(one.parts < 0, one.parts, one.parts + offset))
        named.append(one)
        first += len(factor.columns)
        offset += len(one.factor.values)
    place = tuple(slot for one in named for slot in one.place)
    return np.concatenate(blocks, axis=1), place, tuple(one.factor for one in named)


def _moments(
    groups: Groups, kept: Bool[np.ndarray, " group"], cell: Int[np.ndarray, " kept"], size: int
) -> tuple[Int[np.ndarray, " cell"], Float[np.ndarray, "cell score"], Float[np.ndarray, "cell score"]]:
    """Counts, means and sums of squared deviations of groups that are put together."""
    number = groups.count[kept]
    scored = (number > 0)[:, None]
    mean_of = np.where(scored, groups.mean[kept], 0.0)
    spread_of = np.where(scored, groups.variance[kept] * number[:, None], 0.0)
    count = np.zeros(size, dtype=np.int64)
    np.add.at(count, cell, number)
    share = number / np.maximum(count[cell], 1)
    mean = np.zeros((size, groups.mean.shape[1]))
    np.add.at(mean, cell, mean_of * share[:, None])
    spread = np.zeros_like(mean)
    np.add.at(spread, cell, spread_of + number[:, None] * np.where(scored, mean_of - mean[cell], 0.0) ** 2)
    mean[count == 0] = np.nan
    return count, mean, spread


def about_training(cells: Cells, groups: Groups, cell: Int[np.ndarray, " kept"]) -> list[str]:
    """Combinations that are trained and evaluated, and what is not evaluated at all."""
    if cells.trained is None:
        return []
    said = []
    kept = used(groups)
    rows, trained = np.zeros((2, len(cells.count)), dtype=np.int64)
    np.add.at(rows, cell, groups.rows[kept])
    np.add.at(trained, cell, groups.trained[kept])
    both = int(((trained > 0) & (trained < rows)).sum())
    if both:
        verb = "combination has" if both == 1 else "combinations have"
        said.append(
            f"{both:,} {verb} trained and held-out rows and {'counts' if both == 1 else 'count'} as trained."
        )
    alone = int((cells.trained & ~cells.evaluated).sum())
    if alone:
        said.append(f"{alone:,} trained combination{' has' if alone == 1 else 's have'} no score.")
    if (cells.trained | ~cells.evaluated).all():
        said.append("Every combination with a score was trained on: nothing is held out.")
    if not (cells.trained & cells.evaluated).any():
        said.append("No combination with a score was trained on.")
    return said
