"""Tables of any form, opened so that a database can read them and nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from recombine.audit.reading_errors import told
from recombine.audit.reading_forms import Form, form_of, literal
from recombine.errors import BadInput, did_you_mean

MEMORY = 512 * 2**20
"""What the database may take, in bytes, unless somebody says otherwise. What is more goes to a temporary folder."""

LOOKED_AT = 20_000
"""So many rows decide whether the filter sees a column of text as numbers."""

FLOATS = {"FLOAT", "DOUBLE"}
NUMBERS = FLOATS | {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL"} | {
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"
}  # fmt: skip
MISSING_SCORES = ("na", "n/a", "nan", "null", "none")
"""Texts that say that there is no score, in any case of letters."""


def plain(sql: str) -> str:
    """SQL: a text without space around it, in lower case."""
    return f"lower(trim({sql}, chr(32) || chr(9) || chr(10) || chr(13) || chr(160)))"


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    raw: str
    """SQL: what the table holds."""
    kind: str
    """The database's type of it; VARCHAR for formats that are text."""

    @property
    def text(self) -> str:
        """SQL: the value as text, as written. A whole number has no decimals. Blank texts are left as they are."""
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

    @property
    def score(self) -> str:
        """SQL: the value as a number; NULL where it is missing and infinite where it is not a number."""
        if self.kind.split("(")[0] in NUMBERS:
            value = f"CAST({self.raw} AS DOUBLE)"
            return f"CASE WHEN isnan({value}) THEN NULL ELSE {value} END" if self.kind in FLOATS else value
        # Most texts are numbers: the rest is only looked at where they are not.
        number, text = f"TRY_CAST({self.text} AS DOUBLE)", plain(self.text)
        missing = ", ".join(map(literal, ("", *MISSING_SCORES)))
        return (
            f"CASE WHEN {number} IS NOT NULL THEN (CASE WHEN isnan({number}) THEN NULL ELSE {number} END) "
            f"WHEN {self.text} IS NULL OR {text} IN ({missing}) THEN NULL WHEN {text} = 'true' THEN 1.0 "
            f"WHEN {text} = 'false' THEN 0.0 ELSE CAST('inf' AS DOUBLE) END"
        )


@dataclasses.dataclass
class Table:
    """An open table. Its columns are found by exact name, whatever the database thinks of upper and lower case."""

    title: str
    connection: duckdb.DuckDBPyConnection
    relation: str
    columns: tuple[Column, ...]
    path: Path | None
    textual: bool
    """Whether the table has no types of its own, as a CSV."""

    def column(self, name: str) -> Column:
        """A column by name."""
        found = [column for column in self.columns if column.name == name]
        if not found:
            hint = did_you_mean(name, [column.name for column in self.columns])
            raise BadInput(f"{self.title} has no column {name!r}.", fix=hint)
        if len(found) > 1:
            raise BadInput(
                f"{self.title} has {len(found)} columns of the name {name!r}.", fix="rename all but one"
            )
        return found[0]

    def mentioned(self, where: str) -> list[Column]:
        """The columns that a filter can mean. Two that differ only in case would be taken for one another."""
        text = where.lower()
        found = [c for c in self.columns if c.name and c.name.lower().replace('"', '""') in text]
        seen: dict[str, str] = {}
        for column in found:
            other = seen.setdefault(column.name.lower(), column.name)
            if sum(c.name.lower() == column.name.lower() for c in found) > 1:
                raise BadInput(
                    f"The filter cannot tell columns {other!r} and {found[-1].name!r} apart.",
                    fix="rename one of them",
                )
        return found

    def seen_as(self, columns: Sequence[Column]) -> dict[str, str]:
        """SQL by column name of what a filter sees: numbers where the first rows of a text column all are."""
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
        with told(self.title, self.path, where):
            return self.connection.execute(query).fetchall()

    def batches(self, query: str, where: str | None = None, rows: int = 100_000) -> Iterator[pa.RecordBatch]:
        """A large result, piece by piece."""
        with told(self.title, self.path, where):
            result = self.connection.sql(query)
            # The method's name changed between versions.
            name = "to_arrow_reader" if hasattr(result, "to_arrow_reader") else "fetch_arrow_reader"
            yield from getattr(result, name)(rows)


@contextlib.contextmanager
def open_table(
    source: Any, *, title: str, wanted: Sequence[str], where: str | None, memory: int | None
) -> Iterator[Table]:
    """A table of any form, for as long as the context lasts.

    After this the database can reach the table's own file and its own temporary folder, no other file and no
    network, and its configuration is locked.
    """
    with tempfile.TemporaryDirectory(prefix="recombine-") as folder:
        form = form_of(source, title, [*wanted], where, Path(folder))
        settings: Mapping[str, str] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # One thread: sums have the same bits each time.
            "threads": "1",
            "memory_limit": f"{max(32, (memory or MEMORY) // 2**20)}MiB",
            "temp_directory": folder,
        }
        with duckdb.connect(config=dict(settings)) as connection:
            with told(title, form.path, None):
                relation, columns = _prepared(connection, form)
            yield Table(title, connection, relation, columns, form.path, form.kinds is not None)


def _prepared(connection: duckdb.DuckDBPyConnection, form: Form) -> tuple[str, tuple[Column, ...]]:
    """Locks the database in with the one table; says how the table is called there and what columns it has."""
    paths = "" if form.path is None else literal(str(form.path))
    # It would be written to standard output.
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    if form.frame is not None:
        connection.register("frame", form.frame)
    names = ", ".join(f"c{number}" for number in range(len(form.names)))
    relation = f"{form.relation} AS t({names})" if form.alias else form.relation
    kinds = form.kinds
    if kinds is None:
        kinds = [row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
    columns = tuple(
        Column(name, form.wrap.format(f"c{number}"), str(kind))
        for number, (name, kind) in enumerate(zip(form.names, kinds, strict=True))
    )
    return relation, columns
