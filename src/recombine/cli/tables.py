"""Tables as files: CSV, Parquet or JSON lines, whole or not at all."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine.errors import BadInput
from recombine.store.files import explained, finite

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".csv", ".parquet", ".jsonl")


def check_table(path: Path) -> None:
    """BadInput, before anything is computed, if a table cannot be written there."""
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"{path} is not the name of a table.", fix=f"end it in {', '.join(ENDINGS)}")
    if path.is_dir():
        raise BadInput(f"The table {path} is a folder.", fix="name a file, e.g. runs.csv")
    if not path.parent.is_dir():
        raise BadInput(f"The folder {path.parent} of the table does not exist.", fix="make it first")


def check_folder(path: Path | None) -> None:
    """BadInput, before anything is computed, if tables cannot be written there."""
    if path is not None and path.exists() and not path.is_dir():
        raise BadInput(f"{path} is a file.", fix="name a folder for the tables")


def write_tables(frames: Mapping[str, pd.DataFrame], folder: Path) -> list[str]:
    """Write frames as CSV files into a folder, and return their names."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return [str(write_table(frame, folder / f"{name}.csv")) for name, frame in frames.items()]


def write_table(frame: pd.DataFrame, path: Path) -> Path:
    """Write a frame in the form that the file's name asks for."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with explained(path):
            if path.suffix.lower() == ".csv":
                frame.to_csv(part, index=False)
            elif path.suffix.lower() == ".parquet":
                _of_one_type(frame).to_parquet(part, index=False)
            else:
                rows = (finite(_plain(row)) for row in frame.to_dict("records"))
                part.write_text("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows), encoding="utf-8")
            os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _of_one_type(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns in which numbers and words meet, as words: a Parquet column has one type."""
    made = frame.copy()
    for name in made.columns:
        if made[name].dtype == object:
            values = made[name].dropna()
            if len({type(value) for value in values}) > 1 or any(isinstance(value, dict) for value in values):
                made[name] = made[name].map(str, na_action="ignore")
    return made


def _plain(row: dict[Any, Any]) -> dict[str, Any]:
    """Numbers of numpy as Python's own."""
    return {str(name): value.item() if hasattr(value, "item") else value for name, value in row.items()}
