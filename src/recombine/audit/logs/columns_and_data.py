"""Tables in JSON that name their columns once: {"columns": [...], "data": [[...], ...]}."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recombine.audit.logs.json_stream import members
from recombine.audit.logs.sample import Notes, Sample, flattened, is_scalar
from recombine.errors import BadInput

PROMPTS = ("prompt", "input", "inputs", "question", "query", "text")
"""Names of the column that is taken as the prompt, in lower case; the first that there is."""


def rows(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    """The rows of a table, one at a time. Numbers and truth values may be scores."""
    columns: list[str] | None = None
    number, media = 0, dict[str, None]()
    for name, value in members(path, title, "data"):
        if name == "columns":
            columns = [str(column) for column in value]
            if twice := next((column for column in columns if columns.count(column) > 1), None):
                raise BadInput(f"{title} has the column {twice!r} twice.", fix="rename one of them")
        elif name == "data":
            number += 1
            if columns is None:
                raise BadInput(f"{title} has rows before it names its columns.", fix="export the table again")
            if not isinstance(value, list) or len(value) != len(columns):
                came = f"{len(value)} values" if isinstance(value, list) else "no list"
                raise BadInput(
                    f"Row {number} of {title} has {came} for {len(columns)} columns.", fix="export the table again"
                )
            record = dict(zip(columns, value, strict=True))
            media |= dict.fromkeys(name for name, cell in record.items() if isinstance(cell, dict) and "_type" in cell)
            yield row(record, columns)
    if columns is None:
        raise BadInput(f"{title} has no columns.", fix="export the table again")
    if media:
        notes.sentences.append(f"Columns with media are left out: {', '.join(media)}.")


def row(record: dict[str, Any], columns: list[str]) -> Sample:
    """A row of a table as a sample."""
    low = {column.lower(): column for column in reversed(columns)}
    prompt = next((record[low[name]] for name in PROMPTS if name in low), None)
    cells = flattened(
        {name: value for name, value in record.items() if not (isinstance(value, dict) and "_type" in value)}, ""
    )
    scores = tuple(name for name, value in cells.items() if is_scalar(value) and isinstance(value, int | float))
    return Sample(prompt if isinstance(prompt, str) else None, cells, scores)
