"""The scored combinations of a table, by the names of their values: what two audits are paired by."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

import recombine
from recombine.audit.cells import Cells
from recombine.audit.scales import SHARE, UNKNOWN, Scale
from recombine.audit.strata import STRATA, stratum_of
from recombine.errors import BadInput

FORMAT = 1
"""The version of the record of scored combinations."""
LARGEST = 500 * 2**20
"""The largest JSON document of an audit, in bytes."""
AGAIN = "write it again: recombine audit TABLE ... --json > audit.json"


@dataclasses.dataclass(frozen=True, eq=False)
class Scored:
    """Combinations with their mean scores."""

    title: str
    slots: tuple[str, ...]
    """The names of the slots: factors and roles."""
    names: tuple[tuple[str, ...], ...]
    """The values of each combination, one text per slot. The values of a set are separated by semicolons."""
    scores: tuple[str, ...]
    binary: tuple[bool, ...]
    count: Int[np.ndarray, " cell"]
    mean: Float[np.ndarray, "cell score"]
    stratum: tuple[str, ...] | None
    """None if the training combinations are unknown."""
    scales: tuple[Scale, ...]
    """What the values of each score mean."""

    @property
    def trained(self) -> Bool[np.ndarray, " cell"] | None:
        """Which combinations were trained on."""
        return None if self.stratum is None else np.array([name == STRATA[0] for name in self.stratum])

    def record(self) -> dict[str, Any]:
        """The combinations as plain data; as CSV text, which is compact and keeps every digit."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        means = [f"mean {name}" for name in self.scores]
        writer.writerow([*self.slots, *([] if self.stratum is None else ["stratum"]), "rows", *means])
        for index, name in enumerate(self.names):
            stratum = [] if self.stratum is None else [self.stratum[index]]
            writer.writerow([*name, *stratum, self.count[index].item(), *self.mean[index].tolist()])
        named = {"slots": list(self.slots), "scores": list(self.scores), "binary": list(self.binary)}
        named["scales"] = [dataclasses.asdict(scale) for scale in self.scales]
        return {"format": FORMAT, "version": recombine.__version__, **named, "csv": text.getvalue()}


def scored_cells(cells: Cells, title: str) -> Scored:
    """The scored combinations of a table that is already read."""
    values = np.array([value for factor in cells.factors for value in factor.values] + [""], dtype=object)
    chosen = np.flatnonzero(cells.evaluated)
    words, places = values[cells.constituents[chosen]], tuple(dict.fromkeys(cells.slots))
    columns = []
    for place in places:
        slots = [slot for slot, other in enumerate(cells.slots) if other == place]
        columns.append(["; ".join(sorted(filter(None, row))) for row in words[:, slots].tolist()])
    strata = stratum_of(cells)
    return Scored(
        title,
        places,
        tuple(zip(*columns, strict=True)),
        cells.scores,
        cells.binary,
        cells.count[chosen],
        cells.mean[chosen],
        None if strata is None else tuple(strata[index] for index in chosen.tolist()),
        tuple(cells.scale(index) for index in range(len(cells.scores))),
    )


def read_scored(source: Any, **columns: Any) -> Scored:
    """Read the JSON document of an audit (a file `.json`), or a table.

    Args:
        source: The file, or a frame.
        columns: For a table: what its columns hold, as in `audit_table`. Not needed for the JSON of an audit.
    """
    if isinstance(source, str | Path):
        document = _document(Path(source))
        if document is not None:
            return _from_document(document, Path(source).name)
    from recombine.audit.reading.read import read_cells, title_of

    return scored_cells(read_cells(source, **columns), title_of(source, "the table"))


def _document(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if the file is a table (JSON Lines and lists of objects are)."""
    if path.suffix.lower() != ".json" or not path.is_file() or path.stat().st_size > LARGEST:
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise BadInput(f"{path.name} is nested too deeply.", fix=AGAIN) from None
    except ValueError as error:
        with path.open("rb") as file:
            begins = file.read(2)
        if begins == b"{\n":  # Never true of JSON Lines.
            raise _broken(path, error) from None
        return None
    return document if isinstance(document, dict) else None


def _broken(path: Path, error: Exception) -> BadInput:
    return BadInput(f"{path.name} is not the whole JSON document of an audit: {error}.", fix=AGAIN)


def _from_document(document: dict[str, Any], title: str) -> Scored:
    record = document.get("scored")
    if not isinstance(record, dict):
        what = "was written by a version that kept no combinations" if "scores" in document else "is not an audit"
        raise BadInput(f"{title} {what}: it has no entry 'scored'.", fix=AGAIN)
    if record.get("format") != FORMAT:
        version = record.get("version", "unknown")
        raise BadInput(
            f"{title} has format {record.get('format')!r} (recombine {version}), but this version reads format {FORMAT}.",
            fix=AGAIN,
        )
    try:
        slots, scores = tuple(map(str, record["slots"])), tuple(map(str, record["scores"]))
        header, *rows = csv.reader(io.StringIO(record["csv"]))
        first = len(header) - len(scores)
        stratified = first == len(slots) + 2
        return Scored(
            title,
            slots,
            tuple(tuple(row[: len(slots)]) for row in rows),
            scores,
            tuple(map(bool, record["binary"])),
            np.array([int(row[first - 1]) for row in rows]),
            np.array([[float(value) for value in row[first:]] for row in rows]).reshape(len(rows), len(scores)),
            tuple(row[len(slots)] for row in rows) if stratified else None,
            _scales(record, len(scores)),
        )
    except (KeyError, ValueError, TypeError, IndexError, BadInput) as error:
        raise BadInput(f"The combinations in {title} cannot be read: {error!r}.", fix=AGAIN) from None


def _scales(record: dict[str, Any], number: int) -> tuple[Scale, ...]:
    """The scales of the scores; before they were kept, scores of 0 and 1 were shares and higher was better."""
    if "scales" not in record:
        return tuple(SHARE if binary else UNKNOWN for binary in record["binary"])
    scales = tuple(Scale(**scale) for scale in record["scales"])
    if len(scales) != number:
        raise ValueError(f"{number} scores have {len(scales)} scales")
    return scales
