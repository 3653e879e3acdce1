"""Measurements in a run's folder: NAME.parquet, the table, and NAME.json, which says that it is there and whole."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recombine.errors import StoreError
from recombine.probes.base import Measured, Measurement
from recombine.store.files import finite, read_json, size_of, write_json
from recombine.store.provenance import provenance


def read_measurement(folder: Path, name: str) -> dict[str, Any] | None:
    """The record of a measurement; None if it was not made, StoreError if it is damaged."""
    place = folder / f"{name}.json"
    if not place.is_file():
        return None
    record = read_json(place)
    sound = isinstance(record, dict) and isinstance(record.get("summary"), dict)
    if not sound or not isinstance(record.get("measurement"), dict):
        raise StoreError(f"The measurement {place} is damaged: it is not the record of a measurement.")
    if size_of(folder / f"{name}.parquet") != record.get("bytes"):
        raise StoreError(f"The measurement {place} is damaged: its table is missing or cut short.")
    return record


def names_of(folder: Path, chosen: Sequence[Measurement] | None) -> list[str]:
    """The names of the measurements in a folder (all, or the chosen ones), oldest first."""
    wanted = None if chosen is None else {measurement.name for measurement in chosen}
    found = [path for path in folder.glob("*.json") if wanted is None or path.stem in wanted]
    return [path.stem for path in sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))]


def write_measurement(folder: Path, measurement: Measurement, measured: Measured) -> None:
    """The table first, then the file that says it is there."""
    folder.mkdir(exist_ok=True)
    place = folder / f"{measurement.name}.parquet"
    part = place.with_name(f"{place.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        pq.write_table(pa.table(measured.columns), part, compression="zstd")
        size = part.stat().st_size
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
    record = {
        "measurement": measurement.model_dump(mode="json"),
        "version": measurement.version,
        "summary": measured.summary,
        # A table that was cut short is seen without reading it.
        "bytes": size,
        "provenance": provenance(),
    }
    write_json(place.with_suffix(".json"), finite(record))
