"""A run's manifest: what the run is, how it ended, and the lengths and hashes of its files.

A note in the weights repeats the curves and all of the manifest but the times. A lost manifest or table of curves can be
made again from this note, bit for bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recombine.errors import StoreError
from recombine.store.files import NewerFormat, read_record, sealed, sha256_of, size_of, write_json
from recombine.store.provenance import now, provenance, threads
from recombine.training.checkpoint import read_arrays, save_tree
from recombine.training.outcome import Outcome

FORMAT = 1

MANIFEST, WEIGHTS, CURVES = "manifest.json", "weights.safetensors", "curves.parquet"

ENDING = ("run", "status", "failed_at", "steps", "seconds", "compile_seconds", "reached")
"""What a manifest says of how a run ended."""

KEYS = frozenset({*ENDING, "config", "files", "plan"})

CURVES_SCHEMA = pa.schema({"step": pa.int64()} | dict.fromkeys(("loss", "score_in", "score_held_out"), pa.float64()))
"""Explicit, because a network that was not trained has an empty curve."""


def write_curves(path: Path, curves: list[dict[str, float]]) -> None:
    """Write scores over steps as a table."""
    columns = []
    for name, kind in zip(CURVES_SCHEMA.names, CURVES_SCHEMA.types, strict=True):
        values = np.array([point[name] for point in curves], kind.to_pandas_dtype())
        # From the bytes themselves: in any other way Arrow loads pandas first, which takes longer than a short run.
        columns.append(pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)]))
    pq.write_table(pa.Table.from_arrays(columns, schema=CURVES_SCHEMA), path)


def write_run(outcome: Outcome, folder: Path) -> None:
    """Write a run that ended into a folder; the manifest last."""
    write_curves(folder / CURVES, outcome.curves)
    note = _note(outcome)
    if outcome.failed_at is None:
        save_tree(folder / WEIGHTS, outcome.network, note | {"curves": outcome.curves})
    ending = {
        "status": "complete" if outcome.failed_at is None else "failed",
        "failed_at": outcome.failed_at,
        "seconds": outcome.seconds,
        "compile_seconds": outcome.compile_seconds,
        "provenance": provenance(),
    }
    write_json(folder / MANIFEST, with_files(note | ending, folder))


def _note(outcome: Outcome) -> dict[str, Any]:
    """The note in the weights. Equal runs under an equal plan have equal notes, so that their files are equal."""
    config = outcome.config
    plan: dict[str, Any] = {"lanes": outcome.stack_size, "threads": threads()}
    if outcome.devices > 1:
        plan["devices"] = outcome.devices
    if outcome.earlier_stack_sizes:  # Memory was short on the way.
        plan["lanes_before"] = list(outcome.earlier_stack_sizes)
    line = {"parents": [parent.run_id for parent in config.parents]} if config.parents else {}
    return line | {
        "run": config.run_id,
        "config": config.dump(),
        "versions": {name: part.version for name, part in config.components().items()},
        "steps": outcome.steps,
        "reached": outcome.reached,
        "plan": plan,
    }


def with_files(manifest: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Add the lengths of the files, which show a truncated file without reading it, and their hashes."""
    files = [folder / name for name in (CURVES, WEIGHTS) if (folder / name).is_file()]
    lengths, hashes = {path.name: path.stat().st_size for path in files}, {path.name: sha256_of(path) for path in files}
    return sealed(manifest | {"format": FORMAT, "files": lengths, "sha256": hashes})


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a run's folder. A damaged one raises StoreError. The other files are not checked."""
    manifest = read_record(folder / MANIFEST)
    written = manifest.get("format", FORMAT)
    if isinstance(written, int) and written > FORMAT:
        newer = f"a newer recombine (format {written}; this one knows {FORMAT})"
        fix = "use that version to read it; this one leaves it alone"
        raise NewerFormat(f"{folder} was written by {newer}.", fix=fix)
    if not manifest.keys() >= KEYS or manifest["run"] != folder.name or not _shaped(manifest):
        raise StoreError(f"{folder} is damaged: its manifest is not one of run {folder.name}.")
    return manifest


def _shaped(manifest: dict[str, Any]) -> bool:
    """Whether the manifest has what tables need. Old manifests have no seal."""
    files, config = manifest["files"], manifest["config"]
    family = config.get("family") if isinstance(config, dict) else None
    return (
        manifest["status"] in ("complete", "failed")
        and isinstance(family, dict)
        and isinstance(family.get("kind"), str)
        and isinstance(files, dict)
        and all(Path(name).name == name and isinstance(size, int) for name, size in files.items())
    )


def wrong_lengths(folder: Path, manifest: dict[str, Any]) -> dict[str, str]:
    """The run's files that are missing or have a wrong length, with the problem. Quick, because nothing is read."""
    wrong = {}
    for name, size in manifest["files"].items():
        length = size_of(folder / name)
        if length != size:
            wrong[name] = "missing" if length is None else f"{length} bytes long instead of {size}"
    return wrong


def damage(folder: Path, manifest: dict[str, Any]) -> dict[str, str]:
    """The run's files that changed since they were written, with the problem. Reads all files."""
    wrong = wrong_lengths(folder, manifest)
    for name in manifest["files"].keys() - wrong.keys():
        expected = manifest.get("sha256", {}).get(name)
        if expected is not None:
            if sha256_of(folder / name) != expected:
                wrong[name] = "not the file that was written"
            continue
        try:
            read_arrays(folder / name) if name == WEIGHTS else pq.read_table(folder / name)
        except (StoreError, pa.ArrowException, OSError, ValueError):
            wrong[name] = "not readable"
    return wrong


def rebuilt(folder: Path) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """Make a manifest (without its files) and the curves from the note in the weights; StoreError if there is none."""
    _, note = read_arrays(folder / WEIGHTS)
    curves = note.pop("curves", None)
    if note.get("run") != folder.name or not isinstance(curves, list):
        raise StoreError(f"The weights in {folder} do not say what run they are of.")
    return note | {
        "status": "complete",
        "failed_at": None,
        # Unknown.
        "seconds": None,
        "compile_seconds": None,
        "provenance": {"time": now(), "made_anew": "from the weights"},
    }, curves
