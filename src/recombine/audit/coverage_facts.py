"""A user's table of facts as examples: which columns are the fragment, the context and the outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from recombine.audit.cells import NOTHING, Factor
from recombine.audit.reading_filter import check_filter
from recombine.audit.reading_forms import literal
from recombine.audit.reading_levels import Levels, natural_order
from recombine.audit.reading_places import places
from recombine.audit.reading_query import Asked, Query
from recombine.audit.reading_tables import Table, open_table, plain
from recombine.audit.wording import counted, listed, short
from recombine.errors import BadInput, did_you_mean
from recombine.plain import plain as visible

SHOWN = 3
"""So many rows are named where many are wrong."""
INDEX = "__index_level_"
"""What pandas calls the numbers of rows in a Parquet file: never what is meant unless it is named."""


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Which columns are what."""

    fragments: tuple[tuple[str, ...], ...]
    """The columns of the fragment, for each way of cutting an example; its other columns are the context."""
    columns: tuple[str, ...]
    """The columns of an example's input, in the table's order."""
    outcome: str

    @property
    def positions(self) -> list[tuple[int, ...]]:
        """The fragments as places in `columns`."""
        return [tuple(self.columns.index(name) for name in one) for one in self.fragments]

    def context(self, fragment: Sequence[str]) -> tuple[str, ...]:
        """The columns beside a fragment."""
        return tuple(name for name in self.columns if name not in fragment)


@dataclasses.dataclass(frozen=True)
class Facts:
    """Examples as numbers, with the texts that they stand for."""

    chosen: Chosen
    inputs: Int[np.ndarray, "example column"]
    outcomes: Int[np.ndarray, " example"]
    test: Int[np.ndarray, "combination column"] | None
    """The combinations to look at, if a table of them was given."""
    values: tuple[tuple[str, ...], ...]
    """The texts of each column, in their natural order."""
    said: tuple[str, ...]
    """The texts of the outcome."""
    rows: int
    test_rows: int
    alike: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Columns with values that differ by nothing but white space, and these values."""


def read_facts(
    source: Any,
    *,
    fragments: Sequence[Sequence[str]] = (),
    context: Sequence[str] = (),
    outcome: str | None = None,
    test: Any = None,
    where: str | None = None,
    memory: int | None = None,
) -> Facts:
    """The examples of a table, and the combinations of another one that has the same input columns."""
    if where is not None:
        check_filter(where)
    title = _title(source, "the table")
    named = [*(name for one in fragments for name in one), *context, *([] if outcome is None else [outcome])]
    # What is not named is chosen by position: of a frame, all columns may be wanted.
    wanted = (
        named if isinstance(source, str | Path) else [str(name) for name in getattr(source, "columns", named)]
    )
    with open_table(source, title=title, wanted=wanted, where=where, memory=memory) as table:
        names = [column.name for column in table.columns]
        chosen = choose(names, fragments, context, outcome, title)
        levels = {name: Levels() for name in (*chosen.columns, chosen.outcome)}
        codes, rows = _read(table, (*chosen.columns, chosen.outcome), levels, where, chosen.outcome)
    asked, test_rows = None, 0
    if test is not None:
        name = _title(test, "the test table")
        with open_table(test, title=name, wanted=chosen.columns, where=None, memory=memory) as table:
            there = [column.name for column in table.columns]
            for column in chosen.columns:
                _check_there(column, there, name)
            asked, test_rows = _read(table, chosen.columns, levels, None, None)
    inputs, order = codes[:, :-1].copy(), []
    for place, column in enumerate(chosen.columns):
        values, new = _ordered(levels[column])
        inputs[:, place] = new[inputs[:, place]]
        if asked is not None:
            asked[:, place] = new[asked[:, place]]
        order.append(values)
    said, new = _ordered(levels[chosen.outcome])
    alike = tuple((name, same) for name, held in levels.items() for same in _alike(held))
    return Facts(chosen, inputs, new[codes[:, -1]], asked, tuple(order), said, rows, test_rows, alike)


def _title(source: Any, otherwise: str) -> str:
    return Path(source).name if isinstance(source, str | Path) else otherwise


def _ordered(levels: Levels) -> tuple[tuple[str, ...], Int[np.ndarray, " text"]]:
    """The texts in their natural order, and where each of them stands in it."""
    values = natural_order(levels.texts)
    place = {text: number for number, text in enumerate(values)}
    return values, np.array([place[text] for text in levels.texts], dtype=np.int64)


def _alike(levels: Levels) -> list[tuple[str, ...]]:
    """Texts that differ by nothing but white space."""
    found: dict[str, list[str]] = {}
    for text in levels.texts:
        found.setdefault(" ".join(text.split()), []).append(text)
    return [tuple(sorted(same)) for same in found.values() if len(same) > 1]


def _check_there(name: str, names: Sequence[str], title: str) -> None:
    if name not in names:
        hint = did_you_mean(name, names)
        near = f"{hint} " if hint.startswith("did") else ""
        raise BadInput(f"{title} has no column {name!r}.", fix=near + _columns(names))


def _columns(names: Sequence[str]) -> str:
    return f"its columns: {visible(listed(names, most=20))}"


def choose(
    names: Sequence[str],
    fragments: Sequence[Sequence[str]],
    context: Sequence[str],
    outcome: str | None,
    title: str,
) -> Chosen:
    """What was named, and by position what was not: the outcome is the last column, the context the last before it."""
    given = [*dict.fromkeys(name for one in fragments for name in one)]
    columns = _columns(names)
    for name in (*given, *context, *([] if outcome is None else [outcome])):
        _check_there(name, names, title)
    _check_once(fragments, context, outcome)
    left = [name for name in names if name not in (*given, *context, outcome) and not name.startswith(INDEX)]
    if outcome is None:
        if not left or (given and context and len(left) > 1):
            raise BadInput(
                f"Which column of {title} is the outcome?", fix=f"name it: --outcome ...; {columns}"
            )
        outcome = left.pop()
    if not given and not context and len(left) > 1:
        context = [left.pop()]
    if not given:
        fragments = [left]
    elif not context:
        context = left
    inputs = {name for one in (*fragments, context) for name in one}
    if not all(one and {*one} < inputs for one in fragments):
        lacks = "context" if all(fragments) else "fragment"
        raise BadInput(
            f"No column of {title} is left for the {lacks}: it takes a fragment, a context and an outcome.",
            fix=f"name them: --fragment a,b --context c --outcome t; {columns}",
        )
    ordered = tuple(dict.fromkeys(name for name in names if name in inputs))
    return Chosen(tuple(tuple(one) for one in fragments), ordered, outcome)


def _check_once(fragments: Sequence[Sequence[str]], context: Sequence[str], outcome: str | None) -> None:
    """A column has one place. Only of several fragments one may lie in the context of another."""
    together = [[*one, outcome] for one in (*fragments, context)]
    if len(fragments) == 1:
        together.append([*fragments[0], *context])
    twice = next((name for one in together for name in one if one.count(name) > 1), None)
    if twice is not None:
        raise BadInput(
            f"Column {twice!r} is named more than once.",
            fix="a column belongs to the fragment, to the context or is the outcome",
        )


def _read(
    table: Table, columns: Sequence[str], levels: dict[str, Levels], where: str | None, outcome: str | None
) -> tuple[Int[np.ndarray, "example column"], int]:
    """The different rows of some columns, as numbers of `levels`, and how many rows there are."""
    for name in columns:
        if table.column(name).listed:
            raise BadInput(
                f"Column {name!r} of {table.title} holds lists.", fix="give each token a column of its own"
            )
    query = Query(table, Asked(tuple(Factor(name, (), (name,)) for name in columns), where=where))
    groups = query.groups({name: levels[name] for name in columns})
    if (groups.codes == NOTHING).any():
        raise _empty_cells(query, columns)
    if outcome is not None:
        _check_outcomes(query, groups.codes, columns, levels)
    return groups.codes, int(groups.rows.sum())


def _empty_cells(query: Query, columns: Sequence[str]) -> BadInput:
    blank = [f"(f{n} IS NULL OR {plain(f'f{n}')} = '')" for n in range(len(columns))]
    rows = f"FROM ({query._kept(numbered=True)}) WHERE {' OR '.join(blank)}"
    total = int(query.table.fetch(f"SELECT count(*) {rows}", query.asked.where)[0][0])
    found = query.table.fetch(
        f"SELECT r, {', '.join(blank)} {rows} ORDER BY r LIMIT {SHOWN}", query.asked.where
    )
    told = [
        f"{place} ({visible(listed([name for name, empty in zip(columns, gone, strict=True) if empty]))})"
        for place, (_, *gone) in zip(places(query.table, [row for row, *_ in found]), found, strict=True)
    ]
    verb = "has an empty cell" if total == 1 else "have empty cells"
    return BadInput(
        f"{counted(total, 'row')} of {query.table.title} {verb}: {', '.join(told)}{_more(total)}.",
        fix="fill them in or remove the rows",
    )


def _check_outcomes(
    query: Query, codes: Int[np.ndarray, "example column"], columns: Sequence[str], levels: dict[str, Levels]
) -> None:
    """An input has one outcome: with two, nothing could agree with it."""
    _, first, number = np.unique(codes[:, :-1], axis=0, return_index=True, return_inverse=True)
    double = np.flatnonzero(np.bincount(number.reshape(-1)) > 1)
    if not len(double):
        return
    told = [_contradiction(query, codes[first[one]], columns, levels) for one in double[:SHOWN]]
    raise BadInput(
        f"{counted(len(double), 'input')} of {query.table.title} {'has' if len(double) == 1 else 'have'} more than "
        f"one outcome: {'; '.join(told)}{_more(len(double))}.",
        fix="keep one outcome for each input, or name the column that tells the rows apart",
    )


def _contradiction(
    query: Query, code: Int[np.ndarray, " column"], columns: Sequence[str], levels: dict[str, Levels]
) -> str:
    """The first rows with an input, and what they say."""
    texts = [[*levels[name].texts][number] for name, number in zip(columns, code.tolist(), strict=True)][:-1]
    same = " AND ".join(f"f{n} = {literal(text)}" for n, text in enumerate(texts))
    last = f"f{len(texts)}"
    first = f"SELECT min(r) AS row, {last} AS said FROM ({query._kept(numbered=True)}) WHERE {same} GROUP BY {last}"
    found = query.table.fetch(f"SELECT row, said FROM ({first}) ORDER BY row LIMIT 2", query.asked.where)
    rows = " and ".join(places(query.table, [row for row, _ in found]))
    said = " and ".join(repr(short(text)) for _, text in found)
    return f"{rows} ({visible(', '.join(map(short, texts)))}) have {said}"


def _more(total: int) -> str:
    return f" and {total - SHOWN:,} more" if total > SHOWN else ""
