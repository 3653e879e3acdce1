"""What is collected already, from a table or a list, and combinations as they are written out."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput, did_you_mean
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace

ENDINGS = (".csv", ".tsv", ".json", ".jsonl")
PART = "part_"
"""Columns of a set: part_1, part_2, ..., empty where it has no more."""
TOGETHER = "combination"
"""Or one column that has all modules of it."""

Rows = Int[np.ndarray, "_ slots"]


def read_collected(path: Path, space: Space) -> Rows:
    """The combinations of a file: a CSV with a column for each factor, or JSON with lists or mappings."""
    if not path.is_file():
        near = [str(one) for ending in ENDINGS for one in sorted(path.parent.glob(f"*{ending}"))]
        raise BadInput(
            f"There is no file {str(path)!r} of collected combinations.",
            fix=did_you_mean(str(path), near[:20]),
        )
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise BadInput(
            f"{path} is no table of combinations.", fix=f"give one that ends in {', '.join(ENDINGS)}"
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}.", fix="save it as UTF-8") from error
    if ending in (".csv", ".tsv"):
        return _stacked(space, _from_table(text, str(path), space, "\t" if ending == ".tsv" else ","))
    return _stacked(space, _from_json(text, str(path), lines=ending == ".jsonl"))


def as_rows(given: Sequence[Any], space: Space, where: str = "collected") -> Rows:
    """Combinations given as lists of levels (in the order of the factors), as mappings, or as lists of modules."""
    return _stacked(space, ((f"{where}, number {place}", one) for place, one in enumerate(given, 1)))


def as_names(rows: Rows, space: Space) -> list[list[str]] | list[list[int]]:
    """Combinations as lists of level names, in the order of the factors, or of module numbers."""
    if isinstance(space, ProductSpace):
        names = [value for _, values in space.factors for value in values]
        return [[names[part] for part in row] for row in rows]
    return [list(space.constituents(row)) for row in rows]


def header(space: Space) -> list[str]:
    """The columns of a table of combinations."""
    if isinstance(space, ProductSpace):
        return [name for name, _ in space.factors]
    return [f"{PART}{place}" for place in range(1, space.slots + 1)]


def write_csv(rows: Rows, space: Space, file: Any) -> None:
    """A table of combinations, one column for each factor; it can be read as collected ones."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header(space))
    for names in as_names(rows, space):
        writer.writerow([*names, *[""] * (space.slots - len(names))])


def _stacked(space: Space, given: Iterable[tuple[str, Any]]) -> Rows:
    rows = [_row(space, one, where) for where, one in given]
    return np.array(rows, np.int32).reshape(len(rows), space.slots)


def _row(space: Space, given: Any, where: str) -> Int[np.ndarray, " slots"]:
    if not isinstance(space, ProductSpace):
        return _modules(space, given, where)
    names = header(space)
    if isinstance(given, Mapping):
        missing = [name for name in names if given.get(name) is None]
        if missing:
            raise BadInput(
                f"{where}: there is no level of {missing[0]!r}.", fix="give a level for each factor"
            )
        given = [given[name] for name in names]
    if not isinstance(given, (list, tuple)) or len(given) != space.slots:
        raise BadInput(
            f"{where}: {space.slots} levels were expected, got {given!r}.", fix=f"give {', '.join(names[:6])}"
        )
    parts = []
    for (name, levels), offset, value in zip(space.factors, space.offsets, given, strict=True):
        level = _written(value)
        if level not in levels:
            raise BadInput(f"{where}: {name!r} has no level {level!r}.", fix=did_you_mean(level, levels[:50]))
        parts.append(offset + levels.index(level))
    return np.array(parts, np.int32)


def _written(value: Any) -> str:
    """A value of JSON as a file would have it."""
    return json.dumps(value) if isinstance(value, bool) or value is None else str(value)


def _modules(space: Space, given: Any, where: str) -> Int[np.ndarray, " slots"]:
    try:
        if not isinstance(given, (list, tuple)) or any(isinstance(one, (bool, float)) for one in given):
            raise TypeError
        numbers = [int(one) for one in given]
    except (TypeError, ValueError):
        raise BadInput(f"{where}: a list of module numbers was expected, got {given!r}.") from None
    try:
        return space.row(numbers)
    except BadInput as error:
        fix = f"modules are numbered 0 to {space.width - 1}; {space.title} of them, none twice"
        raise BadInput(f"{where}: {numbers} is no combination of this space.", fix=fix) from error


def _from_json(text: str, where: str, *, lines: bool) -> Iterator[tuple[str, Any]]:
    try:
        if lines:
            pieces = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
            yield from [(f"{where}, line {number}", json.loads(line)) for number, line in pieces]
            return
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not JSON: {error}.", fix="give a list of lists of levels") from error
    if isinstance(document, dict):
        document = document.get("combinations")
    if not isinstance(document, list):
        raise BadInput(
            f"{where} has no list of combinations.",
            fix='give [["red", "dog"], ...], or what plan --json wrote',
        )
    yield from ((f"{where}, number {place}", one) for place, one in enumerate(document, 1))


def _from_table(text: str, where: str, space: Space, separator: str) -> Iterator[tuple[str, Any]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = next(reader, [])
        columns = _columns(names, where, space)
        for cells in reader:
            place = f"{where}, line {reader.line_num}"
            if not cells:
                continue
            if len(cells) != len(names):
                raise BadInput(
                    f"{place} has {len(cells)} cells, the header has {len(names)}.", fix="mend the line"
                )
            found = [cells[column] for column in columns]
            if not isinstance(space, ProductSpace):
                found = [one for cell in found for one in re.split(r"[\s,;+]+", cell.strip()) if one]
            yield place, found
    except csv.Error as error:
        raise BadInput(
            f"{where}, line {reader.line_num}: {error}.", fix="mend the table: check its quotes"
        ) from error


def _columns(names: list[str], where: str, space: Space) -> list[int]:
    """Where the factors stand; other columns do not matter."""
    if not isinstance(space, ProductSpace):
        parts = [place for place, name in enumerate(names) if name.startswith(PART)]
        found = [names.index(TOGETHER)] if TOGETHER in names else parts
        if not found:
            raise BadInput(
                f"{where} has neither a column {TOGETHER!r} nor {PART}1, {PART}2, ...",
                fix="name the columns so",
            )
        return found
    for name in header(space):
        if name not in names:
            raise BadInput(f"{where} has no column for the factor {name!r}.", fix=did_you_mean(name, names))
    return [names.index(name) for name in header(space)]
