"""Tables of any format, opened in a database that can reach nothing else."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from recombine.audit.reading.errors import explained_errors, lines
from recombine.audit.reading.formats import JSON, SEPARATORS, Format, format_of, literal
from recombine.errors import BadInput, did_you_mean

MEMORY = 512 * 2**20
"""The default memory limit of the database, in bytes. Anything beyond goes to a temporary folder."""

LOOKED_AT = 20_000
"""How many rows decide whether the filter treats a column of text as numbers."""

FLOATS = {"FLOAT", "DOUBLE"}
NUMBERS = FLOATS | {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL"} | {
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"
}  # fmt: skip
MISSING_SCORES = ("na", "n/a", "nan", "null", "none")
"""Texts that mean a missing score, in upper or lower case."""


def plain(sql: str) -> str:
    """SQL: a text in lower case without surrounding white space."""
    return f"lower(trim({sql}, chr(32) || chr(9) || chr(10) || chr(13) || chr(160)))"


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    raw: str
    """SQL: the value in the table."""
    kind: str
    """The database's type; VARCHAR for text formats."""

    @property
    def text(self) -> str:
        """SQL: the value as text. Whole numbers have no decimals; blank texts stay blank."""
        value = self.raw
        if self.kind in FLOATS:
            whole = f"{value} = trunc({value}) AND abs({value}) < 1e15"
            return f"CASE WHEN isnan({value}) THEN NULL WHEN {whole} THEN CAST(CAST({value} AS BIGINT) AS VARCHAR) ELSE CAST({value} AS VARCHAR) END"
        if self.listed:
            return f"CAST(to_json({value}) AS VARCHAR)"
        return value if self.kind == "VARCHAR" else f"CAST({value} AS VARCHAR)"

    @property
    def listed(self) -> bool:
        """Whether it holds lists."""
        return self.kind.endswith("]")


@dataclasses.dataclass
class Table:
    """An open table. Its columns are found by exact name, although the database ignores case."""

    title: str
    connection: duckdb.DuckDBPyConnection
    relation: str
    columns: tuple[Column, ...]
    path: Path | None
    textual: bool
    """Whether the format has no types, like CSV."""
    notes: tuple[str, ...] = ()
    """What happened while it was opened, in sentences."""

    def column(self, name: str) -> Column:
        """A column by name."""
        matches = [column for column in self.columns if column.name == name]
        if not matches:
            hint = did_you_mean(name, [column.name for column in self.columns])
            raise BadInput(f"{self.title} has no column {name!r}.", fix=hint)
        if len(matches) > 1:
            raise BadInput(f"{self.title} has {len(matches)} columns with the name {name!r}.", fix="rename all but one")
        return matches[0]

    def mentioned(self, where: str) -> list[Column]:
        """The columns that a filter can refer to. Columns that differ only in case are ambiguous, which is an error."""
        text = where.lower()
        candidates = [c for c in self.columns if c.name and c.name.lower().replace('"', '""') in text]
        for first, second in itertools.combinations(candidates, 2):
            if first.name.lower() == second.name.lower():
                raise BadInput(
                    f"The filter cannot distinguish the columns {first.name!r} and {second.name!r}.",
                    fix="rename one of them",
                )
        return candidates

    def seen_as(self, columns: Sequence[Column]) -> dict[str, str]:
        """The SQL of each column as the filter sees it: a number if the first rows of a text column all are numbers."""
        if not self.textual or not columns:
            return {column.name: column.raw for column in columns}
        asked = ", ".join(
            f"count({c.text}), count(*) FILTER (regexp_full_match({c.text}, '\\s*[+-]?\\d{{1,18}}\\s*')), "
            f"count(TRY_CAST({c.text} AS DOUBLE)), count(*) FILTER ({plain(c.text)} IN ('true', 'false'))"
            for c in columns
        )
        (row,) = self.fetch(f"SELECT {asked} FROM (SELECT * FROM {self.relation} LIMIT {LOOKED_AT})")
        seen = {}
        for number, column in enumerate(columns):
            present, whole, real, truth = row[4 * number : 4 * number + 4]
            kinds = (("BIGINT", whole), ("DOUBLE", real), ("BOOLEAN", truth))
            kind = next((kind for kind, count in kinds if 0 < count == present), None)
            seen[column.name] = column.text if kind is None else f"CAST({column.text} AS {kind})"
        return seen

    def fetch(self, query: str, where: str | None = None) -> list[Any]:
        """All rows of a small result."""
        with explained_errors(self.title, self.path, where):
            return self.connection.execute(query).fetchall()

    def batches(self, query: str, where: str | None = None, rows: int = 100_000) -> Iterator[pa.RecordBatch]:
        """A large result, in batches."""
        with explained_errors(self.title, self.path, where):
            result = self.connection.sql(query)
            # The method's name differs between versions.
            name = "to_arrow_reader" if hasattr(result, "to_arrow_reader") else "fetch_arrow_reader"
            yield from getattr(result, name)(rows)


@contextlib.contextmanager
def open_table(
    source: Any, *, title: str, wanted: Sequence[str], where: str | None, memory: int | None
) -> Iterator[Table]:
    """A table of any format, open while the context lasts.

    The database can reach the table's file and its own temporary folder, but no other file and no network. Its
    configuration is locked.
    """
    with tempfile.TemporaryDirectory(prefix="recombine-") as folder:
        form = format_of(source, title, [*wanted], where, Path(folder))
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # One thread, so that sums are identical to the bit.
            "threads": "1",
            "memory_limit": f"{max(32, (memory or MEMORY) // 2**20)}MiB",
            "temp_directory": folder,
        }
        with duckdb.connect(config=settings) as connection:
            with explained_errors(title, form.path, None):
                relation, columns = _prepared(connection, form)
            yield Table(title, connection, relation, columns, form.path, form.kinds is not None, form.notes)


def _prepared(connection: duckdb.DuckDBPyConnection, form: Format) -> tuple[str, tuple[Column, ...]]:
    """Lock the database to the one table, and return the table's name and columns there."""
    paths = "" if form.path is None else literal(str(form.path))
    # The bar would go to standard output.
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    if form.frame is not None:
        connection.register("frame", form.frame)
    names = ", ".join(f"c{number}" for number in range(len(form.names)))
    relation = f"{form.relation} AS t({names})" if form.alias else form.relation
    described = [] if form.kinds else connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    kinds = form.kinds or [row[1] for row in described]
    columns = tuple(
        Column(name, form.wrap.format(f"c{number}"), str(kind))
        for number, (name, kind) in enumerate(zip(form.names, kinds, strict=True))
    )
    return relation, columns


def places(table: Table, rows: Sequence[int]) -> list[str]:
    """`line 4` for each row (counted from 0) of a text file, otherwise `row 3`."""
    known: dict[int, int] = {}
    if table.path is not None and table.textual:
        # If the file cannot be read again, the row number must do.
        with contextlib.suppress(OSError, UnicodeDecodeError, csv.Error):
            begins = itertools.islice(_begins(table.path, [column.name for column in table.columns]), max(rows) + 1)
            known = {row: line for row, line in enumerate(begins) if row in rows}
    return [f"line {known[row]}" if row in known else f"row {row + 1}" for row in rows]


def _begins(path: Path, names: Sequence[str]) -> Iterator[int]:
    """The first line of each row, from 1; none for files without lines, such as a JSON list."""
    with lines(path) as stream:
        text = (line.decode("utf-8-sig" if number == 0 else "utf-8") for number, line in enumerate(stream))
        if {suffix.lower() for suffix in path.suffixes} & JSON:
            yield from _of_json(text)
            return
        first = next(text, "")
        separator = next((sign for sign in SEPARATORS if [*csv.reader([first], delimiter=sign)] == [[*names]]), None)
        if separator is None:
            return
        reader = csv.reader((line + "\n" for line in text), delimiter=separator)
        begin = 2  # The first line names the columns.
        for row in reader:
            if row:
                yield begin
            begin = reader.line_num + 2


def _of_json(text: Iterable[str]) -> Iterator[int]:
    for number, line in enumerate(text, start=1):
        if number == 1 and line.lstrip().startswith("["):
            return
        if line.strip():
            yield number
