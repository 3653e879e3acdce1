"""What is asked of the database: rows put together by combination, or row by row."""

from __future__ import annotations

import dataclasses

import duckdb
import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from recombine.audit.cells import NOTHING, Factor
from recombine.audit.reading_errors import bad_filter
from recombine.audit.reading_forms import identifier, literal
from recombine.audit.reading_levels import Levels
from recombine.audit.reading_tables import Table, plain
from recombine.errors import BadInput

MOST = 5_000_000
"""More combinations than that are no table of combinations."""


@dataclasses.dataclass(frozen=True)
class Asked:
    """Which columns hold what."""

    factors: tuple[Factor, ...]
    scores: tuple[str, ...] = ()
    where: str | None = None
    split: tuple[str, tuple[str, ...]] | None = None
    """A column, and the values in it that mean trained."""
    key: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all factors."""
        return tuple(column for factor in self.factors for column in factor.columns)

    @property
    def wanted(self) -> list[str]:
        """All columns that must be there."""
        more = [] if self.split is None else [self.split[0]]
        return [*self.columns, *self.scores, *more, *([] if self.key is None else [self.key])]


@dataclasses.dataclass(frozen=True)
class Groups:
    """Rows with the same texts in all factor columns."""

    codes: Int[np.ndarray, "group column"]
    """Numbers of `Levels`; `NOTHING` where a value is missing."""
    rows: Int[np.ndarray, " group"]
    trained: Int[np.ndarray, " group"]
    """Rows that the split column calls trained."""
    count: Int[np.ndarray, " group"]
    """Rows that have all scores."""
    mean: Float[np.ndarray, "group score"]
    variance: Float[np.ndarray, "group score"]
    missing: Int[np.ndarray, " score"]
    """Rows without each score."""
    binary: tuple[bool, ...]

    @property
    def whole(self) -> np.ndarray:
        """Which groups have a value of every factor."""
        return (self.codes != NOTHING).all(axis=1)


class Query:
    """The rows of one table that the filter keeps, with what was asked of them under short names."""

    def __init__(self, table: Table, asked: Asked) -> None:
        self.table, self.asked, self.as_text = table, asked, False
        for name in asked.wanted:
            table.column(name)
        self._check_lists()
        self.seen = {} if asked.where is None else table.seen_as(table.mentioned(asked.where))
        self._check_filter()

    def _check_lists(self) -> None:
        sets = {column for factor in self.asked.factors if factor.kind == "set" for column in factor.columns}
        for name in self.asked.columns:
            kind = self.table.column(name).kind
            if self.table.column(name).listed and name not in sets:
                raise BadInput(f"Column {name!r} holds lists.", fix=f"name it as a set: --sets {name}")
            if kind.startswith(("STRUCT", "MAP", "UNION", "BLOB")):
                raise BadInput(
                    f"Column {name!r} holds {kind.split('(')[0]}, not values.", fix="write it as text"
                )

    def _check_filter(self) -> None:
        """Whether the filter fits the columns, before anything is read."""
        where = self.asked.where
        if where is None:
            return
        names = [column.name for column in self.table.columns]
        try:
            self.table.connection.execute(f"SELECT 1 FROM ({self._kept()}) LIMIT 0").fetchall()
        except duckdb.ConversionException as error:
            if self.as_text:
                raise bad_filter(where, error, names) from None
            self._as_text()
        except duckdb.Error as error:
            raise bad_filter(where, error, names) from None

    def _as_text(self) -> None:
        """Columns that begin as numbers and do not go on so are text for the filter, too."""
        self.as_text = True
        self.seen = {name: self.table.column(name).text for name in self.seen}
        self._check_filter()

    def _kept(self, numbered: bool = False) -> str:
        """SQL: the rows that the filter keeps: f0.. factors, s0.. scores, w0.. as written, p split, k key, r row."""
        table, asked = self.table, self.asked
        hidden = self._hidden()
        made = {f"f{n}": table.column(name).text for n, name in enumerate(asked.columns)}
        made |= {f"s{n}": table.column(name).score for n, name in enumerate(asked.scores)}
        made |= {f"w{n}": table.column(name).text for n, name in enumerate(asked.scores)}
        if asked.split is not None:
            made["p"] = plain(table.column(asked.split[0]).text)
        if asked.key is not None:
            made["k"] = table.column(asked.key).text
        if numbered:
            made["r"] = "row_number() OVER () - 1"
        inner = [f"{sql} AS {identifier(hidden + name)}" for name, sql in made.items()]
        inner += [f"{sql} AS {identifier(name)}" for name, sql in self.seen.items()]
        outer = ", ".join(f"{identifier(hidden + name)} AS {name}" for name in made)
        query = f"SELECT {outer} FROM (SELECT {', '.join(inner)} FROM {table.relation})"
        return query if asked.where is None else f"{query} WHERE (\n{asked.where}\n)"

    def _hidden(self) -> str:
        """A beginning that no column's name has."""
        hidden = "#"
        while any(column.name.startswith(hidden) for column in self.table.columns):
            hidden += "#"
        return hidden

    def groups(self, levels: dict[str, Levels]) -> Groups:
        """Rows put together by the texts of their factors, in one pass."""
        try:
            return self._groups(levels)
        except BadInput as error:
            if self.as_text or not (
                self.seen and self.table.textual and "compares what cannot" in error.message
            ):
                raise
            self._as_text()
            return self._groups(levels)

    def _groups(self, levels: dict[str, Levels]) -> Groups:
        scores = range(len(self.asked.scores))
        whole = " AND ".join(f"isfinite(s{n})" for n in scores) or "false"
        valued = ", ".join(f"CASE WHEN whole THEN s{n} END AS v{n}" for n in scores)
        factors = ", ".join(f"f{n}" for n in range(len(self.asked.columns)))
        asked = ["count(*) AS rows", f"count(*) FILTER ({self._trained()}) AS trained"]
        asked += ["count(v0) AS n" if scores else "0 AS n"]
        for n in scores:
            asked += [f"favg(v{n}) AS m{n}", f"var_pop(v{n}) AS q{n}", f"bool_and(v{n} IN (0, 1)) AS b{n}"]
            asked += [f"count(*) FILTER (s{n} IS NULL) AS g{n}", f"count(*) FILTER (isinf(s{n})) AS i{n}"]
        rows = f"SELECT *, {whole} AS whole FROM ({self._kept()})"
        rows = f"SELECT *{', ' if valued else ''}{valued} FROM ({rows})"
        query = f"SELECT {factors}, {', '.join(asked)} FROM ({rows}) GROUP BY {factors}"
        pieces, total = [], 0
        for batch in self.table.batches(query, self.asked.where):
            total += batch.num_rows
            if total > MOST:
                raise BadInput(
                    f"{self.table.title} has more than {MOST:,} combinations.",
                    fix="leave out the factor that differs in every row, as an identifier does",
                )
            pieces.append(self._piece(batch, levels))
        if not pieces:
            raise self._no_rows()
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        for n in scores:
            if joined[f"i{n}"].sum():
                raise self._not_a_number(n)
        return Groups(
            codes=joined["codes"],
            rows=joined["rows"],
            trained=joined["trained"],
            count=joined["n"],
            mean=_beside([joined[f"m{n}"] for n in scores], len(joined["rows"])),
            variance=_beside([joined[f"q{n}"] for n in scores], len(joined["rows"])),
            missing=np.array([joined[f"g{n}"].sum() for n in scores], dtype=np.int64),
            binary=tuple(bool(joined[f"b{n}"].all()) for n in scores),
        )

    def _piece(self, batch: pa.RecordBatch, levels: dict[str, Levels]) -> dict[str, np.ndarray]:
        piece = {"codes": self._codes(batch, levels)}
        for name in batch.schema.names[len(self.asked.columns) :]:
            column = batch.column(name)
            if name.startswith("b"):
                piece[name] = column.fill_null(True).to_numpy(zero_copy_only=False)
            else:
                kind = np.float64 if name[0] in "mq" else np.int64
                piece[name] = column.to_numpy(zero_copy_only=False).astype(kind)
        return piece

    def _codes(self, batch: pa.RecordBatch, levels: dict[str, Levels]) -> Int[np.ndarray, "group column"]:
        owner = [factor.name for factor in self.asked.factors for _ in factor.columns]
        return np.stack([levels[name].number(batch.column(f"f{n}")) for n, name in enumerate(owner)], axis=1)

    def _trained(self) -> str:
        if self.asked.split is None:
            return "false"
        return f"p IN ({', '.join(literal(value.strip().lower()) for value in self.asked.split[1])})"

    def rows(self, levels: dict[str, Levels]) -> dict[str, np.ndarray]:
        """Row by row, those with all scores: codes, scores, row (from 0, before the filter) and key."""
        scores = range(len(self.asked.scores))
        names = [f"f{n}" for n in range(len(self.asked.columns))] + [f"s{n}" for n in scores] + ["r"]
        names += [] if self.asked.key is None else ["k"]
        whole = " AND ".join(f"s{n} IS NOT NULL" for n in scores)
        query = f"SELECT {', '.join(names)} FROM ({self._kept(numbered=True)}) WHERE {whole} ORDER BY r"
        pieces = []
        for batch in self.table.batches(query, self.asked.where):
            made = {"codes": self._codes(batch, levels), "row": batch.column("r").to_numpy()}
            made["scores"] = _beside([batch.column(f"s{n}").to_numpy() for n in scores], batch.num_rows)
            if self.asked.key is not None:
                made["key"] = np.array(batch.column("k").to_pylist(), dtype=object)
            pieces.append(made)
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    def total(self) -> int:
        """Rows of the table before the filter."""
        return int(self.table.fetch(f"SELECT count(*) FROM {self.table.relation}")[0][0])

    def splits(self, shown: int = 8) -> list[str]:
        """Some values of the split column."""
        query = f"SELECT DISTINCT p FROM ({self._kept()}) WHERE p IS NOT NULL ORDER BY p LIMIT {shown}"
        return [row[0] for row in self.table.fetch(query, self.asked.where)]

    def _no_rows(self) -> BadInput:
        if self.asked.where is None:
            what = "scored example" if self.asked.scores else "example"
            return BadInput(f"{self.table.title} has no rows.", fix=f"it needs a line for each {what}")
        return BadInput(
            f"The filter {self.asked.where!r} keeps none of the {self.total():,} rows of {self.table.title}.",
            fix="look at how the values are written: the filter tells upper from lower case",
        )

    def _not_a_number(self, n: int) -> BadInput:
        query = f"SELECT r, w{n} FROM ({self._kept(numbered=True)}) WHERE isinf(s{n}) ORDER BY r LIMIT 1"
        row, value = self.table.fetch(query, self.asked.where)[0]
        return BadInput(
            f"Score {self.asked.scores[n]!r} is not a finite number in row {row + 1} of {self.table.title}: {value[:80]!r}.",
            fix="write a number, true or false, or leave it empty where there is no score",
        )


def _beside(columns: list[np.ndarray], rows: int) -> Float[np.ndarray, "row column"]:
    return np.stack(columns, axis=1).astype(np.float64) if columns else np.zeros((rows, 0))
