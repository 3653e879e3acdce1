"""Measurements in a run's folder: the table NAME.parquet and the record NAME.json, which is written last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recombine.errors import StoreError
from recombine.probes.base import Measured, Measurement
from recombine.store.files import entries, make_folder, read_record, replacing, sealed, sha256_of, size_of
from recombine.store.provenance import precise_now, provenance


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
    """The names of the measurements in a folder, all or the chosen ones."""
    wanted = None if chosen is None else {measurement.name for measurement in chosen}
    names = (entry.name.removesuffix(".json") for entry in entries(folder, ".json"))
    return sorted(name for name in names if wanted is None or name in wanted)


def oldest_first(records: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Sort records of measurements by the time that each one states, then by name.

    The time of a file is not used: a copy or a restored backup changes it.
    """

    def when(name: str) -> tuple[str, str]:
        origin = records[name].get("provenance")
        return str(origin.get("time", "") if isinstance(origin, dict) else ""), name

    return {name: records[name] for name in sorted(records, key=when)}


def write_measurement(folder: Path, measurement: Measurement, measured: Measured, temporary: Path) -> None:
    """Write the table, then the record. Half-written files are in `temporary`.

    The record is in `temporary` until the table is in place: a table without a record, of which no process holds one
    there, was left by a process that died.
    """
    make_folder(folder)
    place = folder / f"{measurement.name}.parquet"
    with replacing(place.with_suffix(".json"), temporary) as part:
        part.touch()
        with replacing(place, temporary) as table:
            pq.write_table(pa.table(measured.columns), table, compression="zstd")
            size, digest = table.stat().st_size, sha256_of(table)
        record = {
            "measurement": measurement.model_dump(mode="json"),
            "version": measurement.version,
            "summary": measured.summary,
            # Shows a truncated table without reading it.
            "bytes": size,
            "sha256": digest,
            "provenance": provenance() | {"time": precise_now()},
        }
        if measured.refused:
            record["refused"] = measured.refused
        part.write_text(json.dumps(sealed(record), indent=1, allow_nan=False))
