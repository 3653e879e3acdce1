"""Records of runs as a table with typed columns, and back.

A column whose values have one type (truth, whole number, number, text) has that type. A column of several types, or of
lists, holds JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

JSON = {"values": "json"}
"""The note at columns of JSON."""

EXACT = 2**53
"""Whole numbers up to this size are exact as numbers with decimals."""


def table_of(records: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The table of some records: one column per key, empty where a record lacks it."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return _table({name: column([record.get(name) for record in records]) for name in names}, len(records))


Column = tuple[pa.Field, pa.Array]


def _table(columns: Mapping[str, Column], rows: int) -> pa.Table:
    if not columns:
        return pa.table({"run": pa.array([], pa.string())}) if rows == 0 else pa.table({})
    fields = [field.with_name(name) for name, (field, _) in columns.items()]
    return pa.Table.from_arrays([array for _, array in columns.values()], schema=pa.schema(fields))


def column(values: Sequence[Any]) -> Column:
    """Values as a column of their common type. What is no number is missing."""
    values = [None if isinstance(value, float) and value != value else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    forms = ({bool}, pa.bool_()), ({int}, pa.int64()), ({float}, pa.float64()), ({str}, pa.string())
    if not kinds:
        return pa.field("", pa.null()), pa.nulls(len(values))
    if kinds == {int, float} and all(abs(value) <= EXACT for value in values if isinstance(value, int)):
        return pa.field("", pa.float64()), pa.array(values, pa.float64())
    for wanted, form in forms:
        if kinds == wanted:
            try:
                return pa.field("", form), pa.array(values, form)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError):
                break  # Too large a number, or a text that is no Unicode.
    texts = [None if value is None else json.dumps(value) for value in values]
    return pa.field("", pa.string(), metadata=JSON), pa.array(texts, pa.string())


def is_json(field: pa.Field) -> bool:
    """Whether a column holds JSON."""
    return bool(field.metadata) and field.metadata.get(b"values") == b"json"


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables one after another. A column that has different types in them gets a type that holds all values."""
    tables = [table for table in tables if table.num_rows]
    if len(tables) < 2:
        return tables[0] if tables else table_of([])
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    columns = {name: _joined(tables, name) for name in names}
    fields = [field.with_name(name) for name, (field, _) in columns.items()]
    return pa.Table.from_arrays([array for _, array in columns.values()], schema=pa.schema(fields))


def _joined(tables: Sequence[pa.Table], name: str) -> tuple[pa.Field, pa.ChunkedArray]:
    fields = [table.schema.field(name) for table in tables if name in table.column_names]
    known = [field for field in fields if field.type != pa.null()]
    if all(field.equals(known[0], check_metadata=True) for field in known):
        form = (known or fields)[0]
        chunks = []
        for table in tables:
            has = name in table.column_names and table.schema.field(name).type == form.type
            chunks += table.column(name).chunks if has else [pa.nulls(table.num_rows, form.type)]
        return form, pa.chunked_array(chunks, form.type)
    field, array = column([value for table in tables for value in values_of(table, name)])
    return field, pa.chunked_array([array])


def values_of(table: pa.Table, name: str) -> list[Any]:
    """The values of a column; None where there is none."""
    if name not in table.column_names:
        return [None] * table.num_rows
    values = table.column(name).to_pylist()
    if is_json(table.schema.field(name)):
        return [None if text is None else json.loads(text) for text in values]
    return values


def searchable(table: pa.Table, name: str) -> pa.ChunkedArray | pa.Array:
    """A column as filters and sorting see it: JSON is text, and a text in it stands without its quotes."""
    field = table.schema.field(name)
    if field.type == pa.null():
        return pa.nulls(table.num_rows, pa.float64())
    if not is_json(field):
        return table.column(name)
    values = values_of(table, name)
    return pa.array([None if value is None else _plain(value) for value in values], pa.string())


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()


def frame_of(table: pa.Table, names: Iterable[str]) -> pd.DataFrame:
    """Columns of a table as a pandas DataFrame."""
    import pandas as pd

    series = {}
    for name in names:
        field = table.schema.field(name)
        if is_json(field) or field.type == pa.null():
            series[name] = pd.Series(values_of(table, name), dtype=object)
        else:
            series[name] = table.column(name).to_pandas()
    return pd.DataFrame(series)
