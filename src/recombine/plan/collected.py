"""Collected combinations: read from a table or a list, and written back."""

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
from recombine.plan.wording import no_file
from recombine.spaces import ProductSpace, Space

ENDINGS = (".csv", ".tsv", ".json", ".jsonl")
PART = "part_"
"""The columns of a set: part_1, part_2, ..., empty where a set has fewer modules."""
TOGETHER = "combination"
"""Or one column with all modules of a set."""

Rows = Int[np.ndarray, "_ slots"]


def read_collected(path: Path, space: Space) -> Rows:
    """Read collected combinations.

    Args:
        path: A CSV or TSV file with one column per factor, or a JSON file with lists or mappings.
        space: The space of all combinations.

    Returns:
        The combinations as rows, repeats included. Errors name the line.
    """
    if not path.is_file():
        raise no_file(path, " of collected combinations", ENDINGS)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise BadInput(f"{path} is not a table of combinations.", fix=f"give a file that ends in {', '.join(ENDINGS)}")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}.", fix="save it as UTF-8") from error
    if ending in (".csv", ".tsv"):
        return _stacked(space, _from_table(text, str(path), space, "\t" if ending == ".tsv" else ","))
    return _stacked(space, _from_json(text, str(path), lines=ending == ".jsonl"))


def as_rows(given: Sequence[Any], space: Space, where: str = "collected") -> Rows:
    """Turn combinations into rows: lists of levels in the order of the factors, mappings from factors to levels, or modules.

    `where` is the source of the combinations, for error messages.
    """
    return _stacked(space, ((f"{where}, number {index}", item) for index, item in enumerate(given, 1)))


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
    return [f"{PART}{slot}" for slot in range(1, space.slots + 1)]


def write_csv(rows: Rows, space: Space, file: Any) -> None:
    """Write a table of combinations with one column per factor, which `read_collected` reads."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header(space))
    for names in as_names(rows, space):
        writer.writerow([*names, *[""] * (space.slots - len(names))])


def _stacked(space: Space, given: Iterable[tuple[str, Any]]) -> Rows:
    rows = [_row(space, combination, where) for where, combination in given]
    return np.array(rows, np.int32).reshape(len(rows), space.slots)


def _row(space: Space, given: Any, where: str) -> Int[np.ndarray, " slots"]:
    if not isinstance(space, ProductSpace):
        return _modules(space, given, where)
    names = header(space)
    if isinstance(given, Mapping):
        missing = [name for name in names if given.get(name) is None]
        if missing:
            raise BadInput(f"{where}: the factor {missing[0]!r} has no level.", fix="give a level for each factor")
        given = [given[name] for name in names]
    if not isinstance(given, (list, tuple)) or len(given) != space.slots:
        raise BadInput(f"{where}: expected {space.slots} levels, got {given!r}.", fix=f"give {', '.join(names[:6])}")
    try:
        # A JSON value as text: `true` and `null` as they are written.
        return space.row(
            [json.dumps(value) if isinstance(value, bool) or value is None else str(value) for value in given]
        )
    except BadInput as error:
        raise BadInput(f"{where}: {error.message}", fix=error.fix) from None


def _modules(space: Space, given: Any, where: str) -> Int[np.ndarray, " slots"]:
    try:
        if not isinstance(given, (list, tuple)) or any(isinstance(module, (bool, float)) for module in given):
            raise TypeError
        numbers = [int(module) for module in given]
    except (TypeError, ValueError):
        raise BadInput(f"{where}: expected a list of module numbers, got {given!r}.") from None
    try:
        return space.row(numbers)
    except BadInput as error:
        fix = f"give {space.title} modules, numbered 0 to {space.width - 1}, each once"
        raise BadInput(f"{where}: {numbers} is not a combination of this space.", fix=fix) from error


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
            f"{where} has no list of combinations.", fix='give [["red", "dog"], ...], or the output of plan --json'
        )
    yield from ((f"{where}, number {index}", item) for index, item in enumerate(document, 1))


def _from_table(text: str, where: str, space: Space, separator: str) -> Iterator[tuple[str, Any]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = next(reader, [])
        columns = _columns(names, where, space)
        for cells in reader:
            here = f"{where}, line {reader.line_num}"
            if not cells:
                continue
            if len(cells) != len(names):
                raise BadInput(
                    f"{here} has {len(cells)} cells, but the header has {len(names)}.", fix="correct the line"
                )
            values = [cells[column] for column in columns]
            if not isinstance(space, ProductSpace):
                values = [part for cell in values for part in re.split(r"[\s,;+]+", cell.strip()) if part]
            yield here, values
    except csv.Error as error:
        raise BadInput(f"{where}, line {reader.line_num}: {error}.", fix="check the quotes") from error


def _columns(names: list[str], where: str, space: Space) -> list[int]:
    """The indices of the factors' columns. Other columns are ignored."""
    if not isinstance(space, ProductSpace):
        parts = [index for index, name in enumerate(names) if name.startswith(PART)]
        columns = [names.index(TOGETHER)] if TOGETHER in names else parts
        if not columns:
            raise BadInput(
                f"{where} has neither a column {TOGETHER!r} nor columns {PART}1, {PART}2, ...", fix="rename the columns"
            )
        return columns
    for name in header(space):
        if name not in names:
            raise BadInput(f"{where} has no column for the factor {name!r}.", fix=did_you_mean(name, names))
    return [names.index(name) for name in header(space)]
