"""Tables of Weights & Biases: NAME.table.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recombine.audit.logs.columns_and_data import rows
from recombine.audit.logs.sample import Notes, Reader, Sample


def recognises(path: Path, head: bytes) -> bool:
    """Whether a file is a table of Weights & Biases."""
    return path.name.lower().endswith(".table.json")


def samples(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    """The rows of a table. Cells with media are left out."""
    return rows(path, title, notes)


READER = Reader("wandb", recognises, samples)
