"""Where rows of a table stand in its file: at the line that an editor shows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from recombine.audit.reading_errors import lines
from recombine.audit.reading_forms import SEPARATORS
from recombine.audit.reading_tables import Table

JSON = (".jsonl", ".ndjson", ".json")


def places(table: Table, rows: Sequence[int]) -> list[str]:
    """`line 4` for each of the rows (counted from 0) of a file that has lines, with those before the first row; else `row 3`."""
    known = {}
    if table.path is not None and table.textual:
        # Nothing worse than a number of a row, if the file cannot be read again.
        try:
            known = _lines(table.path, [column.name for column in table.columns], {*rows})
        except (OSError, UnicodeDecodeError, csv.Error):
            known = {}
    return [f"line {known[row]}" if row in known else f"row {row + 1}" for row in rows]


def _lines(path: Path, names: Sequence[str], wanted: set[int]) -> dict[int, int]:
    """The lines at which rows begin, from 1 on; none where the file has none, as a list of JSON."""
    found = {}
    for row, line in enumerate(_begins(path, names)):
        if row in wanted:
            found[row] = line
            if len(found) == len(wanted):
                break
    return found


def _begins(path: Path, names: Sequence[str]) -> Iterator[int]:
    with lines(path) as stream:
        text = (line.decode("utf-8-sig" if number == 0 else "utf-8") for number, line in enumerate(stream))
        if {suffix.lower() for suffix in path.suffixes} & {*JSON}:
            yield from _of_json(text)
            return
        first = next(text, "")
        separator = next(
            (one for one in SEPARATORS if next(csv.reader([first], delimiter=one), []) == [*names]), None
        )
        if separator is not None:
            yield from _of_csv(text, separator)


def _of_csv(text: Iterable[str], separator: str) -> Iterator[int]:
    reader = csv.reader((line + "\n" for line in text), delimiter=separator)
    begin = 2  # The first names the columns.
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
