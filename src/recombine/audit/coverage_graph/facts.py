"""A user's table of facts, read into examples: which columns are the fragment, the context and the outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from recombine.audit.cells import NOTHING, Factor
from recombine.audit.reading.formats import literal
from recombine.audit.reading.levels import Levels, natural_order
from recombine.audit.reading.query import Columns, Query
from recombine.audit.reading.read import title_of
from recombine.audit.reading.tables import Table, open_table, places, plain
from recombine.audit.wording import counted, listed, short
from recombine.errors import BadInput, did_you_mean
from recombine.filters import check_filter
from recombine.plain import plain as visible

SHOWN = 3
"""How many wrong rows an error message names."""
INDEX = "__index_level_"
"""The prefix of pandas' row index in a Parquet file; it is only used if it is named."""


@dataclasses.dataclass(frozen=True)
class FactColumns:
    """Which columns are the fragment, the context and the outcome."""

    fragments: tuple[tuple[str, ...], ...]
    """The columns of the fragment, for each way to cut an example. The other columns are the context."""
    columns: tuple[str, ...]
    """The columns of an example's input, in the table's order."""
    outcome: str

    @property
    def positions(self) -> list[tuple[int, ...]]:
        """The fragments as indices into `columns`."""
        return [tuple(self.columns.index(name) for name in fragment) for fragment in self.fragments]


@dataclasses.dataclass(frozen=True)
class Facts:
    """Examples as numbers, with the texts of the numbers."""

    chosen: FactColumns
    inputs: Int[np.ndarray, "example column"]
    outcomes: Int[np.ndarray, " example"]
    test: Int[np.ndarray, "combination column"] | None
    """The combinations to examine, if a table lists them."""
    values: tuple[tuple[str, ...], ...]
    """The texts of each column, in their natural order."""
    outcome_values: tuple[str, ...]
    """The texts of the outcome."""
    rows: int
    alike: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Columns with values that differ only in white space, and these values."""
    answers: Int[np.ndarray, " combination"] | None = None
    """The true outcomes of the combinations to examine, if their table has them."""


def read_facts(
    source: Any,
    *,
    fragments: Sequence[Sequence[str]] = (),
    context: Sequence[str] = (),
    outcome: str | None = None,
    test: Any = None,
    where: str | None = None,
) -> Facts:
    """Read the examples of a table, and the combinations of a test table with the same input columns.

    The arguments are those of `audit_coverage_graph`.
    """
    if where is not None:
        check_filter(where)
    title = title_of(source, "the table")
    named = [*(name for fragment in fragments for name in fragment), *context, *([] if outcome is None else [outcome])]
    # Columns that are not named are chosen by position, so any column of a frame may be needed.
    wanted = named if isinstance(source, str | Path) else [str(name) for name in getattr(source, "columns", named)]
    with open_table(source, title=title, wanted=wanted, where=where, memory=None) as table:
        names = [column.name for column in table.columns]
        chosen = choose(names, fragments, context, outcome, title)
        levels = {name: Levels() for name in (*chosen.columns, chosen.outcome)}
        codes, rows = _read(table, (*chosen.columns, chosen.outcome), levels, where, chosen.outcome)
    combinations = answers = None
    if test is not None:
        name = title_of(test, "the test table")
        with open_table(test, title=name, wanted=(*chosen.columns, chosen.outcome), where=None, memory=None) as table:
            there = [column.name for column in table.columns]
            _check_present(chosen.columns, there, name)
            known = chosen.outcome if chosen.outcome in there else None
            columns = chosen.columns if known is None else (*chosen.columns, known)
            combinations, _ = _read(table, columns, levels, None, known)
    ordered = [_ordered(levels[column]) for column in (*chosen.columns, chosen.outcome)]
    for place, (_, new) in enumerate(ordered):
        codes[:, place] = new[codes[:, place]]
        if combinations is not None and place < combinations.shape[1]:
            combinations[:, place] = new[combinations[:, place]]
    if combinations is not None and combinations.shape[1] > len(chosen.columns):
        combinations, answers = combinations[:, :-1], combinations[:, -1]
    alike = tuple((name, same) for name, held in levels.items() for same in _alike(held))
    *values, outcome_values = (values for values, _ in ordered)
    return Facts(chosen, codes[:, :-1], codes[:, -1], combinations, tuple(values), outcome_values, rows, alike, answers)


def _ordered(levels: Levels) -> tuple[tuple[str, ...], Int[np.ndarray, " text"]]:
    """The texts in their natural order, and the position of each."""
    values = natural_order(levels.texts)
    position = {text: number for number, text in enumerate(values)}
    return values, np.array([position[text] for text in levels.texts], dtype=np.int64)


def _alike(levels: Levels) -> list[tuple[str, ...]]:
    """Groups of texts that differ only in white space."""
    groups: dict[str, list[str]] = {}
    for text in levels.texts:
        groups.setdefault(" ".join(text.split()), []).append(text)
    return [tuple(sorted(same)) for same in groups.values() if len(same) > 1]


def _check_present(wanted: Sequence[str], names: Sequence[str], title: str) -> None:
    for name in wanted:
        if name not in names:
            hint = did_you_mean(name, names)
            near = f"{hint} " if hint.startswith("did") else ""
            raise BadInput(f"{title} has no column {name!r}.", fix=near + _columns(names))


def _columns(names: Sequence[str]) -> str:
    return f"its columns: {visible(listed(names, most=20))}"


def choose(
    names: Sequence[str], fragments: Sequence[Sequence[str]], context: Sequence[str], outcome: str | None, title: str
) -> FactColumns:
    """The named columns, and the others by position: the outcome is the last column, the context the last before it."""
    given = [*dict.fromkeys(name for fragment in fragments for name in fragment)]
    columns = _columns(names)
    _check_present((*given, *context, *([] if outcome is None else [outcome])), names, title)
    # A column has one part. Only if there are several fragments may one lie in the context of another.
    together = [[*part, outcome] for part in (*fragments, context)]
    together += [[*fragments[0], *context]] if len(fragments) == 1 else []
    twice = next((name for part in together for name in part if part.count(name) > 1), None)
    if twice is not None:
        raise BadInput(
            f"Column {twice!r} is named more than once.",
            fix="a column is part of the fragment, part of the context, or the outcome",
        )
    unnamed = [name for name in names if name not in (*given, *context, outcome) and not name.startswith(INDEX)]
    if outcome is None:
        if not unnamed or (given and context and len(unnamed) > 1):
            raise BadInput(
                f"It is unclear which column of {title} is the outcome.", fix=f"name it: --outcome ...; {columns}"
            )
        outcome = unnamed.pop()
    if not given and not context and len(unnamed) > 1:
        context = [unnamed.pop()]
    if not given:
        fragments = [unnamed]
    elif not context:
        context = unnamed
    inputs = {name for columns_of in (*fragments, context) for name in columns_of}
    if not all(fragment and {*fragment} < inputs for fragment in fragments):
        lacks = "context" if all(fragments) else "fragment"
        raise BadInput(
            f"No column of {title} is left for the {lacks}: the audit needs a fragment, a context and an outcome.",
            fix=f"name them: --fragment a,b --context c --outcome t; {columns}",
        )
    ordered = tuple(dict.fromkeys(name for name in names if name in inputs))
    return FactColumns(tuple(tuple(fragment) for fragment in fragments), ordered, outcome)


def _read(
    table: Table, columns: Sequence[str], levels: dict[str, Levels], where: str | None, outcome: str | None
) -> tuple[Int[np.ndarray, "example column"], int]:
    """The distinct rows of some columns as numbers of `levels`, and the number of rows."""
    for name in columns:
        if table.column(name).listed:
            raise BadInput(f"Column {name!r} of {table.title} holds lists.", fix="give each token its own column")
    query = Query(table, Columns(tuple(Factor(name, (), (name,)) for name in columns), where=where))
    groups = query.groups({name: levels[name] for name in columns})
    if (groups.codes == NOTHING).any():
        raise _empty_cells(query, columns)
    if outcome is not None:
        _check_outcomes(query, groups.codes, [list(levels[name].texts) for name in columns])
    return groups.codes, int(groups.rows.sum())


def _empty_cells(query: Query, columns: Sequence[str]) -> BadInput:
    blank = [f"(f{n} IS NULL OR {plain(f'f{n}')} = '')" for n in range(len(columns))]
    rows = f"FROM ({query.kept(numbered=True)}) WHERE {' OR '.join(blank)}"
    total = int(query.table.fetch(f"SELECT count(*) {rows}", query.columns.where)[0][0])
    first = query.table.fetch(f"SELECT r, {', '.join(blank)} {rows} ORDER BY r LIMIT {SHOWN}", query.columns.where)
    shown = [
        f"{place} ({visible(listed([name for name, empty in zip(columns, blanks, strict=True) if empty]))})"
        for place, (_, *blanks) in zip(places(query.table, [row for row, *_ in first]), first, strict=True)
    ]
    verb = "has an empty cell" if total == 1 else "have empty cells"
    return BadInput(
        f"{counted(total, 'row')} of {query.table.title} {verb}: {', '.join(shown)}{_more(total)}.",
        fix="fill them in or remove the rows",
    )


def _check_outcomes(query: Query, codes: Int[np.ndarray, "example column"], texts: list[list[str]]) -> None:
    """Raise an error if an input has more than one outcome. `texts` are those of each column's numbers."""
    _, first, times = np.unique(codes[:, :-1], axis=0, return_index=True, return_counts=True)
    double = first[times > 1]
    if not len(double):
        return
    named = [[own[code] for own, code in zip(texts, codes[row, :-1], strict=False)] for row in double[:SHOWN]]
    shown = [_contradiction(query, inputs) for inputs in named]
    raise BadInput(
        f"{counted(len(double), 'input')} of {query.table.title} {'has' if len(double) == 1 else 'have'} more than "
        f"one outcome: {'; '.join(shown)}{_more(len(double))}.",
        fix="keep one outcome per input, or name the column that distinguishes the rows",
    )


def _contradiction(query: Query, texts: Sequence[str]) -> str:
    """The first rows with an input, and their outcomes."""
    same = " AND ".join(f"f{n} = {literal(text)}" for n, text in enumerate(texts))
    last = f"f{len(texts)}"
    first = f"SELECT min(r) AS row, {last} AS outcome FROM ({query.kept(numbered=True)}) WHERE {same} GROUP BY {last}"
    fetched = query.table.fetch(f"SELECT row, outcome FROM ({first}) ORDER BY row LIMIT 2", query.columns.where)
    rows = " and ".join(places(query.table, [row for row, _ in fetched]))
    outcomes = " and ".join(repr(short(text)) for _, text in fetched)
    return f"{rows} ({visible(', '.join(map(short, texts)))}) have {outcomes}"


def _more(total: int) -> str:
    return f" and {total - SHOWN:,} more" if total > SHOWN else ""
