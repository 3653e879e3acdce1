"""A user's table, read into cells: a database filters and counts, and only combinations reach Python."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from recombine.audit import reading_notes as notes
from recombine.audit.cells import Cells, Factor
from recombine.audit.reading_cells import about_training, cells_of
from recombine.audit.reading_filter import check_filter
from recombine.audit.reading_levels import Levels
from recombine.audit.reading_query import Asked, Groups, Query
from recombine.audit.reading_tables import open_table
from recombine.errors import BadInput

Source = Any
"""The path of a table (CSV, TSV, Parquet, JSON Lines, Arrow), or a frame of pandas, polars or Arrow."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """The scored rows of a table, in its order."""

    cell: Int[np.ndarray, " row"]
    """The cell of each."""
    scores: Float[np.ndarray, "row score"]
    row: Int[np.ndarray, " row"]
    """Its place in the table before the filter, from 0."""
    total: int
    """Rows of the table before the filter."""
    key: tuple[str | None, ...] | None = None
    """What the key column holds, if one was named."""


def read_cells(
    source: Source,
    *,
    factors: Sequence[str],
    roles: Mapping[str, Sequence[str]] | None = None,
    scores: Sequence[str],
    where: str | None = None,
    train: Source | None = None,
    split: tuple[str, str | Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    key: str | None = None,
    memory: int | None = None,
) -> Cells:
    """The table by combination.

    `roles` names the columns of factors that stand in several roles, `sets` the columns that hold sets; both are
    factors whether or not `factors` lists them. `split` is a column and the value (or values) that mean trained;
    `train` a table with the same factor columns. `memory` bounds the database, in bytes.
    """
    asked = _asked(factors, roles or {}, scores, where, train, split, sets, key)
    with _gathered(source, asked, train, memory) as gathered:
        return gathered.cells


def read_rows(
    source: Source,
    *,
    factors: Sequence[str],
    roles: Mapping[str, Sequence[str]] | None = None,
    scores: Sequence[str],
    where: str | None = None,
    train: Source | None = None,
    split: tuple[str, str | Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    key: str | None = None,
    memory: int | None = None,
) -> tuple[Cells, Rows]:
    """As `read_cells`, and the cell of each row: for activations, which come by row."""
    asked = _asked(factors, roles or {}, scores, where, train, split, sets, key)
    with _gathered(source, asked, train, memory) as gathered:
        return gathered.cells, gathered.rows()


def _asked(
    factors: Sequence[str],
    roles: Mapping[str, Sequence[str]],
    scores: Sequence[str],
    where: str | None,
    train: Source | None,
    split: tuple[str, str | Sequence[str]] | None,
    sets: Sequence[str],
    key: str | None,
) -> Asked:
    """What the user named, checked as far as it can be without the table."""
    made = []
    for name in dict.fromkeys([*factors, *roles, *sets]):
        if name in roles and name in sets:
            raise BadInput(f"Factor {name!r} has roles and is a set.", fix="choose one of the two")
        columns = tuple(roles[name]) if name in roles else (name,)
        if name in roles and len(columns) < 2:
            raise BadInput(
                f"Factor {name!r} has {len(columns)} role column.", fix="roles need two columns or more"
            )
        made.append(
            Factor(name, (), columns, "roles" if name in roles else "set" if name in sets else "value")
        )
    if not made:
        raise BadInput(
            "No factor is named.", fix="name the columns that make a combination: --factors colour,object"
        )
    if not scores:
        raise BadInput("No score is named.", fix="name a column of numbers: --score success")
    if train is not None and split is not None:
        raise BadInput("Both a training table and a split column are named.", fix="choose one of the two")
    used = [column for factor in made for column in factor.columns] + list(scores)
    twice = sorted({column for column in used if used.count(column) > 1})
    if twice:
        raise BadInput(
            f"Column {twice[0]!r} is named more than once.", fix="each column is one factor, role or score"
        )
    if where is not None and not where.strip():
        where = None
    if where is not None:
        check_filter(where)
    values = None if split is None else (split[1],) if isinstance(split[1], str) else tuple(split[1])
    divided = None if split is None or values is None else (split[0], values)
    return Asked(tuple(made), tuple(scores), where, divided, key)


@dataclasses.dataclass
class _Gathered:
    """The cells, and what is needed to find the cell of a row while the table is open."""

    cells: Cells
    query: Query
    levels: dict[str, Levels]
    codes: Int[np.ndarray, "group column"]
    cell: Int[np.ndarray, " group"]

    def rows(self) -> Rows:
        made = self.query.rows(self.levels)
        whole = (made["codes"] >= 0).all(axis=1)
        codes = made["codes"][whole]
        _, number = np.unique(np.concatenate([self.codes, codes]), axis=0, return_inverse=True)
        number = number.reshape(-1)
        cell_of = np.zeros(number.max() + 1, dtype=np.int64)
        cell_of[number[: len(self.codes)]] = self.cell
        key = tuple(made["key"][whole]) if "key" in made else None
        return Rows(
            cell_of[number[len(self.codes) :]],
            made["scores"][whole],
            made["row"][whole],
            self.query.total(),
            key,
        )


@contextlib.contextmanager
def _gathered(source: Source, asked: Asked, train: Source | None, memory: int | None) -> Iterator[_Gathered]:
    levels = {factor.name: Levels() for factor in asked.factors}
    title = _title(source, "the table")
    with open_table(source, title=title, wanted=asked.wanted, where=asked.where, memory=memory) as table:
        query = Query(table, asked)
        groups = query.groups(levels)
        _check_columns(groups, asked, title)
        said = notes.missing_factors(groups, asked, title) + notes.missing_scores(groups, asked)
        if asked.split is not None:
            said += _check_split(query, groups, asked)
        studied = None
        if train is not None:
            studied, more = _training(train, asked, levels, memory)
            said += more
        cells, codes, cell = cells_of(groups, studied, asked, levels, title)
        cells = dataclasses.replace(
            cells, notes=(*said, *about_training(cells, groups, cell), *notes.shape(cells))
        )
        yield _Gathered(cells, query, levels, codes, cell)


def _title(source: Source, otherwise: str) -> str:
    return Path(source).name if isinstance(source, str | Path) else otherwise


def _check_columns(groups: Groups, asked: Asked, title: str) -> None:
    """Every factor must have a value somewhere, and some row all of them with a score."""
    kept = "" if asked.where is None else " that the filter keeps"
    for number, name in enumerate(asked.columns):
        if (groups.codes[:, number] < 0).all():
            raise BadInput(
                f"Column {name!r} is empty in all {int(groups.rows.sum()):,} rows of {title}{kept}.",
                fix="leave the factor out, or keep rows that have it",
            )
    if not groups.whole.any():
        raise BadInput(
            f"No row of {title}{kept} has a value of every factor.",
            fix="leave out a factor that is mostly empty",
        )
    if asked.scores and not (groups.count[groups.whole] > 0).any():
        raise BadInput(
            f"No row of {title}{kept} has all of the scores {', '.join(asked.scores)}.", fix="name others"
        )
    if not (np.isfinite(groups.variance) & np.isfinite(groups.mean))[groups.count > 0].all():
        raise BadInput(f"The scores of {title} are too large to be averaged.", fix="rescale them")


def _check_split(query: Query, groups: Groups, asked: Asked) -> list[str]:
    assert asked.split is not None
    column, values = asked.split
    if not groups.trained.sum():
        raise BadInput(
            f"No row has {' or '.join(map(repr, values))} in column {column!r}, so nothing was trained on.",
            fix="it holds: " + (", ".join(map(repr, query.splits())) or "nothing"),
        )
    return []


def _training(
    train: Source, asked: Asked, levels: dict[str, Levels], memory: int | None
) -> tuple[Groups, list[str]]:
    """The combinations of a training table. The filter holds for it too, if it has the filter's columns."""
    title = _title(train, "the training table")
    plain = Asked(asked.factors, where=asked.where)
    said = []
    with open_table(train, title=title, wanted=plain.wanted, where=plain.where, memory=memory) as table:
        try:
            query = Query(table, plain)
        except BadInput as error:
            if plain.where is None or not error.message.startswith("The filter"):
                raise
            query = Query(table, dataclasses.replace(plain, where=None))
            said.append(f"The filter was not applied to {title}, which lacks its columns.")
        groups = query.groups(levels)
    if not groups.whole.any():
        raise BadInput(
            f"No row of {title} has a value of every factor.", fix="give it the same factor columns"
        )
    return groups, said + notes.missing_factors(groups, asked, title)
