"""What every reader of logs makes: samples with a prompt, columns and scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

DEEPEST = 3
"""So many levels of nested mappings become columns."""


@dataclasses.dataclass
class Sample:
    """One scored sample of a log."""

    prompt: str | None
    columns: dict[str, Any]
    """Texts, numbers and truth values by column."""
    scores: tuple[str, ...] = ()
    """The columns that are scores."""
    factors: tuple[str, ...] = ()
    """The columns that a template or a function found in the prompt."""


@dataclasses.dataclass
class Notes:
    """What a reader has to say about the log, filled while it is read."""

    sentences: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Reader:
    """How the logs of one tool are read."""

    name: str
    recognises: Callable[[Path, bytes], bool]
    """Whether a file (with its first bytes), or a folder, is such a log."""
    samples: Callable[[Path, str, Notes], Iterator[Sample]]
    """The samples of a log, one at a time; called with the path and the name in errors."""


def is_scalar(value: Any) -> bool:
    """Whether a value fits a cell of a table."""
    return value is None or isinstance(value, str | int | float | bool)


def flattened(values: Mapping[str, Any], prefix: str, depth: int = 0) -> dict[str, Any]:
    """Nested mappings as columns: doc.colour, metadata.scene.place. Lists of texts are joined; others are left out."""
    columns: dict[str, Any] = {}
    for name, value in values.items():
        if is_scalar(value):
            columns[f"{prefix}{name}"] = value
        elif isinstance(value, Mapping) and depth < DEEPEST:
            columns |= flattened(value, f"{prefix}{name}.", depth + 1)
        elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            columns[f"{prefix}{name}"] = "; ".join(value)
    return columns
