"""The queries to the database: rows grouped by combination, or row by row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from recombine.audit.cells import NOTHING, Factor
from recombine.audit.reading.formats import identifier, literal
from recombine.audit.reading.levels import Levels
from recombine.audit.reading.ordered import Ordering
from recombine.audit.reading.score_query import about_rows, meant, scored_rows
from recombine.audit.reading.scoring import Meaning, percent_sql, score_sql
from recombine.audit.reading.tables import Table, plain
from recombine.audit.scales import Scale
from recombine.errors import BadInput
from recombine.filters import bad_filter

MOST = 5_000_000
"""The most combinations that a table may have."""

LARGEST = 1e150
"""The square of a larger score is not a number any more."""


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which columns hold what."""

    factors: tuple[Factor, ...]
    scores: tuple[str, ...] = ()
    where: str | None = None
    split: tuple[str, Sequence[str]] | None = None
    """A column, and the values in it that mean trained."""
    key: str | None = None
    meaning: Meaning = dataclasses.field(default_factory=Meaning)
    """What the scores mean."""
    orderings: Mapping[str, Ordering] = dataclasses.field(default_factory=dict)
    """The factors whose values have an order."""

    @property
    def factor_columns(self) -> tuple[str, ...]:
        """The columns of all factors."""
        return tuple(column for factor in self.factors for column in factor.columns)

    @property
    def wanted(self) -> list[str]:
        """All columns that the table must have."""
        more = (None if self.split is None else self.split[0], self.key, self.meaning.trials, self.meaning.cluster)
        return list(dict.fromkeys([*self.factor_columns, *self.scores, *(name for name in more if name is not None)]))


@dataclasses.dataclass(frozen=True)
class Groups:
    """Rows with the same texts in all factor columns."""

    codes: Int[np.ndarray, "group column"]
    """Numbers of `Levels`; `NOTHING` where a value is missing."""
    rows: Int[np.ndarray, " group"]
    trained: Int[np.ndarray, " group"]
    """Rows that the split column marks as trained."""
    count: Int[np.ndarray, " group"]
    """Rows that have all scores; their trials where rows stand for trials."""
    mean: Float[np.ndarray, "group score"]
    variance: Float[np.ndarray, "group score"]
    missing: Int[np.ndarray, " score"]
    """Rows without each score."""
    binary: tuple[bool, ...]
    scales: tuple[Scale, ...]
    scored: Int[np.ndarray, " group"]
    """Rows that have all scores."""
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> np.ndarray:
        """Which groups have a value for every factor."""
        return (self.codes != NOTHING).all(axis=1)


class Query:
    """The rows of one table that the filter keeps, with short names for their columns."""

    def __init__(self, table: Table, columns: Columns) -> None:
        self.table, self.columns, self.as_text = table, columns, False
        for name in columns.wanted:
            table.column(name)
        sets = {column for factor in columns.factors if factor.kind == "set" for column in factor.columns}
        for name in columns.factor_columns:
            column = table.column(name)
            if column.listed and name not in sets:
                raise BadInput(f"Column {name!r} holds lists.", fix=f"name it as a set: --sets {name}")
            if column.kind.startswith(("STRUCT", "MAP", "UNION", "BLOB")):
                kind = column.kind.split("(")[0]
                raise BadInput(f"Column {name!r} holds {kind}, not values.", fix="write it as text")
        self.seen = {} if columns.where is None else table.seen_as(table.mentioned(columns.where))
        self._check_filter()

    def _check_filter(self) -> None:
        """Check the filter against the columns before anything is read."""
        where = self.columns.where
        if where is None:
            return
        try:
            described = f"DESCRIBE SELECT (\n{where}\n) AS kept FROM ({self._named()})"
            ((_, kind, *_),) = self.table.connection.execute(described).fetchall()
            self.table.connection.execute(f"SELECT 1 FROM ({self.kept()}) LIMIT 0").fetchall()
        except duckdb.Error as error:
            if self.as_text or not isinstance(error, duckdb.ConversionException):
                raise bad_filter(where, error, [column.name for column in self.table.columns]) from None
            self._as_text()
            return
        if kind not in ("BOOLEAN", '"NULL"'):
            fix = "compare it with something, such as seed < 3"
            raise BadInput(f"The filter {where!r} gives a value ({kind}), neither true nor false.", fix=fix)

    def _as_text(self) -> None:
        """Treat columns as text in the filter, if they only begin as numbers."""
        self.as_text = True
        self.seen = {name: self.table.column(name).text for name in self.seen}
        self._check_filter()

    def kept(self, numbered: bool = False) -> str:
        """SQL of the rows that the filter keeps: f0.. factors, s0.. scores, w0.. scores as written, p split, k key, r row."""
        outer = ", ".join(f"{identifier(self._hidden + name)} AS {name}" for name in self._expressions(numbered))
        query = f"SELECT {outer} FROM ({self._named(numbered)})"
        return query if self.columns.where is None else f"{query} WHERE (\n{self.columns.where}\n)"

    @property
    def _hidden(self) -> str:
        """A beginning that no column's name has."""
        return "#" * (1 + max(len(column.name) - len(column.name.lstrip("#")) for column in self.table.columns))

    def _named(self, numbered: bool = False) -> str:
        """SQL of all rows, with the columns that the filter mentions under their own names."""
        inner = [f"{sql} AS {identifier(self._hidden + name)}" for name, sql in self._expressions(numbered).items()]
        inner += [f"{sql} AS {identifier(name)}" for name, sql in self.seen.items()]
        return f"SELECT {', '.join(inner)} FROM {self.table.relation}"

    def _expressions(self, numbered: bool) -> dict[str, str]:
        table, columns = self.table, self.columns
        expressions = {f"f{n}": table.column(name).text for n, name in enumerate(columns.factor_columns)}
        meaning = columns.meaning
        for n, name in enumerate(columns.scores):
            column = table.column(name)
            expressions |= {f"s{n}": score_sql(column, meaning.success), f"w{n}": column.text}
            expressions[f"h{n}"] = "false" if meaning.success else percent_sql(column)
        if meaning.trials is not None:
            expressions["t"] = score_sql(table.column(meaning.trials))
        if meaning.cluster is not None:
            expressions["c"] = table.column(meaning.cluster).text
        if columns.split is not None:
            expressions["p"] = plain(table.column(columns.split[0]).text)
        if columns.key is not None:
            expressions["k"] = table.column(columns.key).text
        if numbered:
            expressions["r"] = "row_number() OVER () - 1"
        return expressions

    def groups(self, levels: dict[str, Levels]) -> Groups:
        """Rows put together by the texts of their factors, in one pass."""
        try:
            return self._groups(levels)
        except BadInput as error:
            retry = self.seen and self.table.textual and not self.as_text
            if not retry or "compares values that cannot" not in error.message:
                raise
            self._as_text()
            return self._groups(levels)

    def _groups(self, levels: dict[str, Levels]) -> Groups:
        scores = range(len(self.columns.scores))
        source, forms = scored_rows(self)
        whole = " AND ".join(f"isfinite(s{n})" for n in scores) or "false"
        valued = ", ".join(f"CASE WHEN whole THEN {forms[n].value} END AS v{n}" for n in scores)
        factors = ", ".join(f"f{n}" for n in range(len(self.columns.factor_columns)))
        trained = "false"
        if self.columns.split is not None:
            trained = f"p IN ({', '.join(literal(value.strip().lower()) for value in self.columns.split[1])})"
        asked = ["count(*) AS rows", f"count(*) FILTER ({trained}) AS trained"]
        binomial = bool(scores) and all(form.binomial for form in forms)
        counted_rows = "CAST(sum(t) FILTER (whole) AS BIGINT)" if binomial else "count(v0)"
        asked += [f"coalesce({counted_rows}, 0) AS n, count(v0) AS o" if scores else "0 AS n, 0 AS o"]
        weighted = self.columns.meaning.trials is not None
        for n in scores:
            mean = f"sum(v{n} * t) / sum(t) FILTER (v{n} IS NOT NULL)" if weighted else f"favg(v{n})"
            asked += [f"{mean} AS m{n}", f"var_pop(v{n}) AS q{n}", f"min(v{n}) AS l{n}", f"max(v{n}) AS u{n}"]
            asked += [f"count(*) FILTER (s{n} IS NULL) AS g{n}", f"count(*) FILTER (isinf(s{n})) AS i{n}"]
            asked += [f"count(*) FILTER (h{n} AND whole) AS h{n}"]
        rows = f"SELECT *, {whole} AS whole FROM ({source})"
        rows = f"SELECT *{', ' if valued else ''}{valued} FROM ({rows})"
        query = f"SELECT {factors}, {', '.join(asked)} FROM ({rows}) GROUP BY {factors}"
        pieces, total = [], 0
        for batch in self.table.batches(query, self.columns.where):
            total += batch.num_rows
            if total > MOST:
                raise BadInput(
                    f"{self.table.title} has more than {MOST:,} combinations.",
                    fix="leave out the factor that differs in every row, such as an identifier",
                )
            pieces.append(self._piece(batch, levels))
        if not pieces:
            raise self._no_rows()
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        for n in scores:
            if joined[f"i{n}"].sum():
                raise self._not_a_number(n)
        mean, variance = (_beside([joined[f"{q}{n}"] for n in scores], len(joined["rows"])) for q in "mq")
        if (np.abs(mean) > LARGEST).any() or (variance > LARGEST**2).any():
            raise BadInput(f"The scores of {self.table.title} are too large to average.", fix="rescale them")
        missing = np.array([joined[f"g{n}"].sum() for n in scores], dtype=np.int64)
        known = [meant(self, n, forms[n], joined) for n in scores]
        for n in scores:
            if forms[n].binomial:
                low, high = known[n][0].ends
                variance[:, n] = (mean[:, n] - low) * (high - mean[:, n])
        counts = (joined["codes"], joined["rows"], joined["trained"], joined["n"])
        return Groups(
            *counts,
            mean,
            variance,
            missing,
            tuple(each[1] for each in known),
            tuple(each[0] for each in known),
            joined["o"],
            tuple(dict.fromkeys([*about_rows(self, binomial), *(note for each in known for note in each[2])])),
        )

    def _piece(self, batch: pa.RecordBatch, levels: dict[str, Levels]) -> dict[str, np.ndarray]:
        piece = {"codes": self._codes(batch, levels)}
        for name in batch.schema.names[len(self.columns.factor_columns) :]:
            kind = np.float64 if name[0] in "mqlu" else np.int64
            piece[name] = batch.column(name).to_numpy(zero_copy_only=False).astype(kind)
        return piece

    def _codes(self, batch: pa.RecordBatch, levels: dict[str, Levels]) -> Int[np.ndarray, "group column"]:
        owner = [factor.name for factor in self.columns.factors for _ in factor.columns]
        return np.stack([levels[name].number(batch.column(f"f{n}")) for n, name in enumerate(owner)], axis=1)

    def rows(self, levels: dict[str, Levels]) -> dict[str, np.ndarray]:
        """The rows with all scores: codes, scores, row number (from 0, before the filter) and key."""
        scores = range(len(self.columns.scores))
        names = [f"f{n}" for n in range(len(self.columns.factor_columns))] + [f"s{n}" for n in scores]
        names += ["r"] if self.columns.key is None else ["r", "k"]
        whole = " AND ".join(f"s{n} IS NOT NULL" for n in scores)
        query = f"SELECT {', '.join(names)} FROM ({self.kept(numbered=True)}) WHERE {whole} ORDER BY r"
        pieces = []
        for batch in self.table.batches(query, self.columns.where):
            piece = {"codes": self._codes(batch, levels), "row": batch.column("r").to_numpy()}
            piece["scores"] = _beside([batch.column(f"s{n}").to_numpy() for n in scores], batch.num_rows)
            if self.columns.key is not None:
                piece["key"] = np.array(batch.column("k").to_pylist(), dtype=object)
            pieces.append(piece)
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    def total(self) -> int:
        """The number of rows of the table before the filter."""
        return int(self.table.fetch(f"SELECT count(*) FROM {self.table.relation}")[0][0])

    def splits(self, shown: int = 8) -> list[str]:
        """Some values of the split column."""
        query = f"SELECT DISTINCT p FROM ({self.kept()}) WHERE p IS NOT NULL ORDER BY p LIMIT {shown}"
        return [row[0] for row in self.table.fetch(query, self.columns.where)]

    def _no_rows(self) -> BadInput:
        if self.columns.where is None:
            what = "scored example" if self.columns.scores else "example"
            return BadInput(f"{self.table.title} has no rows.", fix=f"write one row per {what}")
        return BadInput(
            f"The filter {self.columns.where!r} keeps none of the {self.total():,} rows of {self.table.title}.",
            fix="check the spelling of the values: the filter distinguishes upper and lower case",
        )

    def _not_a_number(self, n: int) -> BadInput:
        query = f"SELECT r, w{n} FROM ({self.kept(numbered=True)}) WHERE isinf(s{n}) ORDER BY r LIMIT 1"
        row, value = self.table.fetch(query, self.columns.where)[0]
        return BadInput(
            f"Score {self.columns.scores[n]!r} is not a finite number in row {row + 1} of {self.table.title}: {value[:80]!r}.",
            fix="write a number, true or false, or leave it empty if there is no score",
        )


def _beside(columns: list[np.ndarray], rows: int) -> Float[np.ndarray, "row column"]:
    return np.stack(columns, axis=1).astype(np.float64) if columns else np.zeros((rows, 0))
