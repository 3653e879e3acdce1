"""Any table with a column of prompts, as a log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recombine.audit.logs.columns_and_data import row
from recombine.audit.logs.sample import Notes, Reader, Sample


def recognises(path: Path, head: bytes) -> bool:
    """Never: a table without prompts is no log."""
    return False


def samples(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    """The rows of a table: CSV, TSV, Parquet, JSON Lines or Arrow."""
    from recombine.audit.reading.tables import open_table

    with open_table(path, title=title, wanted=(), where=None, memory=None) as table:
        names = [column.name for column in table.columns]
        chosen = ", ".join(f"{column.text} AS t{number}" for number, column in enumerate(table.columns))
        for batch in table.batches(f"SELECT {chosen} FROM {table.relation}", rows=10_000):
            for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield row(dict(zip(names, cells, strict=True)), names)


READER = Reader("table", recognises, samples)
