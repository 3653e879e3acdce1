"""A user's table, read into cells. A database filters and groups rows, and only combinations reach Python."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from recombine.audit.cells import Cells, Factor
from recombine.audit.logs.log import Log
from recombine.audit.possible import read_possible, with_possible
from recombine.audit.reading.combining import about_training, cells_of, missing_factors, missing_scores, shape_notes
from recombine.audit.reading.levels import Levels
from recombine.audit.reading.ordered import parse_orderings
from recombine.audit.reading.query import Columns, Groups, Query
from recombine.audit.reading.scoring import Meaning
from recombine.audit.reading.tables import open_table
from recombine.errors import BadInput, did_you_mean
from recombine.filters import check_filter

Source = Any
"""The path of a table (CSV, TSV, Parquet, JSON Lines, Arrow) or of a log, a `Log`, or a frame of pandas, polars or Arrow."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """The scored rows of a table, in the table's order."""

    cell: Int[np.ndarray, " row"]
    """The cell of each row."""
    scores: Float[np.ndarray, "row score"]
    row: Int[np.ndarray, " row"]
    """The row number before the filter, from 0."""
    total: int
    """The number of rows of the table before the filter."""
    key: tuple[str | None, ...] | None = None
    """The values of the key column, if one is named."""


def read_cells(source: Source, **columns: Any) -> Cells:
    """Read a table and group its rows by combination.

    Args:
        source: The table: a file (CSV, TSV, Parquet, JSON Lines, Arrow) or a pandas, polars or Arrow frame.
        columns: What the columns hold, as in `audit_table`: `factors`, `roles`, `sets`, `scores`, `where`, `train`,
            `split`, `scale`, `numeric`, `space`, `key`, `memory`, ... Scores are a sequence of names.

    Example:
        ```python
        cells = read_cells("results.csv", factors=["colour", "shape"], scores=["success"])
        ```
    """
    with _gathered(source, **columns) as gathered:
        return gathered.cells


def read_rows(source: Source, **columns: Any) -> tuple[Cells, Rows]:
    """Like `read_cells`, with the same arguments, and also the cell of each row, which activations need."""
    with _gathered(source, **columns) as gathered:
        return gathered.cells, gathered.rows()


def _columns(
    *,
    factors: Sequence[str],
    roles: Mapping[str, Sequence[str]] | None = None,
    scores: Sequence[str],
    where: str | None = None,
    train: Source | None = None,
    split: tuple[str, str | Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    key: str | None = None,
    scale: tuple[float, float] | None = None,
    lower_is_better: bool = False,
    chance: float | None = None,
    success: str | Sequence[str] | None = None,
    trials: str | None = None,
    cluster: str | None = None,
    numeric: Mapping[str, Any] | Sequence[str] = (),
    ordinal: Mapping[str, Sequence[str]] | None = None,
) -> Columns:
    """The named columns, checked as far as possible without the table."""
    roles, chosen = roles or {}, []
    for name in dict.fromkeys([*factors, *roles, *sets]):
        if name in roles and name in sets:
            raise BadInput(f"Factor {name!r} is named both as roles and as a set.", fix="choose one of the two")
        columns = tuple(roles.get(name, (name,)))
        if name in roles and len(columns) < 2:
            raise BadInput(
                f"Factor {name!r} has {len(columns)} role column.", fix="name at least two columns for its roles"
            )
        chosen.append(Factor(name, (), columns, "roles" if name in roles else "set" if name in sets else "value"))
    if not chosen:
        raise BadInput("No factor is named.", fix="name the columns that make a combination: --factors colour,object")
    if not scores:
        raise BadInput("No score is named.", fix="name a column of numbers: --score success")
    if train is not None and split is not None:
        raise BadInput("Both a training table and a split column are named.", fix="choose one of the two")
    used = [column for factor in chosen for column in factor.columns] + list(scores)
    twice = sorted({column for column in used if used.count(column) > 1})
    if twice:
        raise BadInput(
            f"Column {twice[0]!r} is named more than once.", fix="use each column for one factor, role or score"
        )
    where = where if where and where.strip() else None
    if where is not None:
        check_filter(where)
    if split is not None:
        split = split[0], (split[1],) if isinstance(split[1], str) else tuple(split[1])
    passed = (success,) if isinstance(success, str) else tuple(success or ())
    meaning = Meaning(scale, lower_is_better, chance, passed, trials, cluster)
    for what, name in (("trials", trials), ("cluster", cluster)):
        if name is not None and name in used:
            raise BadInput(
                f"Column {name!r} is named as {what}, but also as a factor or score.", fix="name another one"
            )
    orderings = parse_orderings(numeric, ordinal)
    values = [factor.name for factor in chosen if factor.kind != "set"]
    for name in orderings:
        if name not in values:
            raise BadInput(
                f"{name!r} is named as numeric or ordinal, but is no factor with values.",
                fix=did_you_mean(name, values),
            )
    return Columns(tuple(chosen), tuple(scores), where, split, key, meaning, orderings)


@dataclasses.dataclass
class _Gathered:
    """The cells, and the data that finds the cell of a row while the table is open."""

    cells: Cells
    query: Query
    levels: dict[str, Levels]
    codes: Int[np.ndarray, "group column"]
    cell: Int[np.ndarray, " group"]

    def rows(self) -> Rows:
        fetched = self.query.rows(self.levels)
        whole = (fetched["codes"] >= 0).all(axis=1)
        codes = fetched["codes"][whole]
        _, number = np.unique(np.concatenate([self.codes, codes]), axis=0, return_inverse=True)
        number = number.reshape(-1)
        cell_of = np.zeros(number.max() + 1, dtype=np.int64)
        cell_of[number[: len(self.codes)]] = self.cell
        key = tuple(fetched["key"][whole]) if "key" in fetched else None
        return Rows(
            cell_of[number[len(self.codes) :]], fetched["scores"][whole], fetched["row"][whole], self.query.total(), key
        )


@contextlib.contextmanager
def _gathered(
    source: Source,
    *,
    train: Source | None = None,
    memory: int | None = None,
    space: str | Path | None = None,
    **named: Any,
) -> Iterator[_Gathered]:
    columns = _columns(train=train, **named)
    possible = None if space is None else read_possible(space)
    levels = {factor.name: Levels() for factor in columns.factors}
    title = title_of(source, "the table")
    with open_table(source, title=title, wanted=columns.wanted, where=columns.where, memory=memory) as table:
        query = Query(table, columns)
        groups = query.groups(levels)
        _check_columns(query, groups, title)
        notes = [
            *table.notes,
            *groups.notes,
            *missing_factors(groups, columns, title),
            *missing_scores(groups, columns),
        ]
        training, more = (None, []) if train is None else _training(train, columns, levels, memory)
        notes += more
        cells, codes, cell = cells_of(groups, training, columns, levels, title)
        cells = dataclasses.replace(cells, notes=(*notes, *about_training(cells, groups, cell), *shape_notes(cells)))
        if possible is not None:
            cells = with_possible(cells, possible)
        yield _Gathered(cells, query, levels, codes, cell)


def title_of(source: Source, otherwise: str) -> str:
    """The name of a file or a log, or `otherwise` for a frame."""
    if isinstance(source, Log):
        return source.title
    return Path(source).name if isinstance(source, str | Path) else otherwise


def _check_columns(query: Query, groups: Groups, title: str) -> None:
    """Every factor needs a value in some row, some row all factors and all scores, and a split trained rows."""
    columns = query.columns
    kept = "" if columns.where is None else " that the filter keeps"
    for number, name in enumerate(columns.factor_columns):
        if (groups.codes[:, number] < 0).all():
            raise BadInput(
                f"Column {name!r} is empty in all {int(groups.rows.sum()):,} rows of {title}{kept}.",
                fix="leave the factor out, or keep rows that have it",
            )
    if not groups.whole.any():
        raise BadInput(
            f"No row of {title}{kept} has a value for every factor.", fix="leave out a factor that is mostly empty"
        )
    if columns.scores and not (groups.count[groups.whole] > 0).any():
        raise BadInput(
            f"No row of {title}{kept} has all of the scores {', '.join(columns.scores)}.",
            fix="name other score columns",
        )
    if not (np.isfinite(groups.variance) & np.isfinite(groups.mean))[groups.count > 0].all():
        raise BadInput(f"The scores of {title} are too large to average.", fix="rescale them")
    if columns.split is not None and not groups.trained.sum():
        column, values = columns.split
        raise BadInput(
            f"No row has {' or '.join(map(repr, values))} in column {column!r}, so no combination counts as trained.",
            fix="the column holds: " + (", ".join(map(repr, query.splits())) or "nothing"),
        )


def _training(
    train: Source, columns: Columns, levels: dict[str, Levels], memory: int | None
) -> tuple[Groups, list[str]]:
    """The combinations of a training table. The filter applies to it too, if it has the filter's columns."""
    title = title_of(train, "the training table")
    plain = Columns(columns.factors, where=columns.where, orderings=columns.orderings)
    notes = []
    with open_table(train, title=title, wanted=plain.wanted, where=plain.where, memory=memory) as table:
        try:
            query = Query(table, plain)
        except BadInput as error:
            if plain.where is None or not error.message.startswith("The filter"):
                raise
            query = Query(table, dataclasses.replace(plain, where=None))
            notes.append(f"The filter was not applied to {title}, because the filter's columns are missing there.")
        groups = query.groups(levels)
    if not groups.whole.any():
        raise BadInput(f"No row of {title} has a value for every factor.", fix="give it the same factor columns")
    return groups, notes + missing_factors(groups, columns, title)
