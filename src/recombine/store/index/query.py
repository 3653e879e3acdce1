"""Queries to the table of an index: filter, sort, group. DuckDB sees only the columns that are mentioned."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from recombine.errors import BadInput, did_you_mean
from recombine.filters import QUOTE, bad_filter, check_filter, first_line, renamed
from recombine.store.index.columns import searchable

SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "memory_limit": "1GiB",
    # One thread, so that sums are identical to the bit.
    "threads": "1",
}


def full_name(names: Sequence[str], name: str) -> str:
    """The column that is meant: by its name, by the last part of its name, or in other letters of these.

    Args:
        names: All columns.
        name: For example `model.width`, `width` or `Width`.

    Returns:
        The one column that fits. None or several are an error.
    """
    if name in names:
        return name
    lower = name.lower()
    for fits in (
        [full for full in names if full.endswith(f".{name}")],
        [full for full in names if full.lower() == lower],
        [full for full in names if full.lower().endswith(f".{lower}")],
    ):
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise BadInput(f"{name!r} could be any of {', '.join(fits)}.", fix="write the whole name")
    leaves = {full.rpartition(".")[2] for full in names}
    raise BadInput(
        f"There is no column called {name!r} in the store's runs.", fix=did_you_mean(name, {*names, *leaves})
    )


class Query:
    """Queries to one table; short names stand for its columns, so that no name in a filter is ambiguous."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.used: dict[str, str] = {}

    def name(self, name: str) -> str:
        """The short name of a column."""
        full = full_name(self.table.column_names, name)
        return self.used.setdefault(full, f"c{len(self.used)}")

    def run(self, sql: Callable[[str], str], where: str | None = None) -> pa.Table:
        """The answer to a query, whose function gets the name of the table."""
        columns = {short: searchable(self.table, full) for full, short in self.used.items()}
        columns["r"] = pa.array(range(self.table.num_rows), pa.int64())
        self.connection.register("runs", pa.table(columns))
        return _explained(lambda: _table(self.connection.sql(sql("runs"))), where, self)

    def rows(self, where: str | None, sort: Sequence[str]) -> list[int]:
        """The rows that a filter keeps, in order. Missing values are last, and equal ones are in the table's order.

        Args:
            where: One SQL expression over the columns, or None.
            sort: Columns; with a minus before its name, from the largest value down.
        """
        condition = None if where is None else self.condition(where)
        order = [self.ordered(key) for key in sort]
        kept = "" if condition is None else f" WHERE (\n{condition}\n)"
        answer = self.run(lambda runs: f"SELECT r FROM {runs}{kept} ORDER BY {', '.join([*order, 'r'])}", where)
        return answer.column("r").to_pylist()

    @functools.cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A database that can reach nothing but the table."""
        connection = duckdb.connect(config=SETTINGS)
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def check(self, where: str | None) -> None:
        """Raise `BadInput` unless a filter is one expression, whatever its columns."""
        if where is not None:
            check_filter(where)

    def condition(self, where: str) -> str:
        """A filter as SQL over the short names; `BadInput` says what is wrong with it."""
        condition = renamed(check_filter(where, self.connection), self.name, self.connection)
        described = self.run(lambda runs: f"DESCRIBE SELECT (\n{condition}\n) AS kept FROM {runs}", where)
        kind = described.column("column_type").to_pylist()[0]
        if kind not in ("BOOLEAN", '"NULL"'):
            fix = "compare it with something, such as steps < 1000"
            raise BadInput(f"The filter {where!r} gives a value ({kind}), neither true nor false.", fix=fix)
        return condition

    def ordered(self, key: str) -> str:
        """A key of sorting as SQL."""
        return f"{self.name(key.removeprefix('-'))} {'DESC' if key.startswith('-') else 'ASC'} NULLS LAST"


def _table(result: duckdb.DuckDBPyRelation) -> pa.Table:
    # The method's name differs between versions.
    return getattr(result, "to_arrow_table" if hasattr(result, "to_arrow_table") else "fetch_arrow_table")()


def _explained(call: Callable[[], pa.Table], where: str | None, query: Query) -> pa.Table:
    try:
        return call()
    except duckdb.Error as error:
        if where is None:
            raise
        if isinstance(error, duckdb.ConversionException):
            what = f"The filter {where!r} compares values that cannot be compared: {first_line(error)}."
            raise BadInput(what, fix=QUOTE) from None
        raise bad_filter(where, error, query.table.column_names) from None
