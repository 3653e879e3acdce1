"""Measurements in a run's folder: the table NAME.parquet and the record NAME.json, which is written last."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recombine.errors import StoreError
from recombine.probes.base import Measured, Measurement
from recombine.store.files import read_record, replacing, sealed, sha256_of, size_of, write_json
from recombine.store.provenance import provenance


def read_measurement(folder: Path, name: str) -> dict[str, Any] | None:
    """The record of a measurement; None if it was not made, StoreError if it is damaged."""
    place = folder / f"{name}.json"
    if not place.is_file():
        return None
    try:
        record = read_record(place)
    except StoreError as error:
        if not place.is_file():
            return None  # Another process moved it away in between.
        raise StoreError(f"The measurement {error.message}") from error
    measurement, summary = record.get("measurement"), record.get("summary")
    kind = measurement.get("kind") if isinstance(measurement, dict) else None
    if not isinstance(summary, dict) or not isinstance(kind, str):
        raise StoreError(f"The measurement {place} is damaged: it is not the record of a measurement.")
    if size_of(folder / f"{name}.parquet") != record.get("bytes"):
        raise StoreError(f"The measurement {place} is damaged: its table is missing or cut short.")
    return record


def check_table(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Raise StoreError if a bit of a measurement's table is not as it was written, or an old one cannot be read."""
    place = folder / f"{name}.parquet"
    if "sha256" in record:
        if sha256_of(place) != record["sha256"]:
            raise StoreError(f"The measurement {place} is damaged: its table is not the one that was written.")
        return
    try:
        pq.read_table(place)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(f"The measurement {place} is damaged: its table cannot be read.") from error


def names_of(folder: Path, chosen: Sequence[Measurement] | None) -> list[str]:
    """The names of the measurements in a folder (all, or the chosen ones), oldest first."""
    wanted = None if chosen is None else {measurement.name for measurement in chosen}
    found = [path for path in folder.glob("*.json") if wanted is None or path.stem in wanted]
    times: dict[str, int] = {}
    for path in found:
        with contextlib.suppress(OSError):  # Another process may move a damaged one away.
            times[path.stem] = path.stat().st_mtime_ns
    return sorted(times, key=lambda name: (times[name], name))


def write_measurement(folder: Path, measurement: Measurement, measured: Measured, temporary: Path) -> None:
    """Write the table, then the record. Half-written files are in `temporary`."""
    folder.mkdir(exist_ok=True)
    place = folder / f"{measurement.name}.parquet"
    with replacing(place, temporary) as part:
        pq.write_table(pa.table(measured.columns), part, compression="zstd")
        size, digest = part.stat().st_size, sha256_of(part)
    record = {
        "measurement": measurement.model_dump(mode="json"),
        "version": measurement.version,
        "summary": measured.summary,
        # Shows a truncated table without reading it.
        "bytes": size,
        "sha256": digest,
        "provenance": provenance(),
    }
    if measured.refused:
        record["refused"] = measured.refused
    write_json(place.with_suffix(".json"), sealed(record), temporary)
