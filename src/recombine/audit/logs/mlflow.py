"""Tables of MLflow: JSON with `columns` and `data`, as `mlflow.log_table` and its evaluations write them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recombine.audit.logs.columns_and_data import rows
from recombine.audit.logs.sample import Notes, Reader, Sample


def recognises(path: Path, head: bytes) -> bool:
    """Whether a file is a table of MLflow."""
    start = head.lstrip()
    return path.suffix.lower() == ".json" and start.startswith(b"{") and start[1:].lstrip().startswith(b'"columns"')


def samples(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    """The rows of a table."""
    return rows(path, title, notes)


READER = Reader("mlflow", recognises, samples)
