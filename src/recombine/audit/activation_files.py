"""Activations from files: safetensors, or npz without pickles. One array a layer."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from recombine.audit.activations import Activations
from recombine.audit.reading import Rows
from recombine.errors import BadInput, did_you_mean

BRAIN = "BF16"
"""The half-precision numbers that NumPy does not know: the upper halves of float32."""


def read_activations(
    path: Path | str, rows: Rows, *, key: str | None = None, layers: Sequence[str] | None = None
) -> Activations:
    """The activations of the scored rows.

    Arrays have a row for each row of the whole table, before any filter; or the file holds an array named `key`
    with the values of the table's key column, in any order. Axes after the first are made one.
    """
    path = Path(path)
    file = _opened(path)
    names = [name for name in file if name != key] if layers is None else list(layers)
    for name in [*names, *([] if key is None else [key])]:
        if name not in file:
            what = "key" if name == key else "layer"
            raise BadInput(f"{path.name} has no array {name!r} for the {what}.", fix=did_you_mean(name, file))
    if not names:
        raise BadInput(f"{path.name} holds no layers.", fix="write one array for each layer")
    if key is None:
        place, length = rows.row, rows.total
    else:
        found = _read(file[key], path, key)
        place, length = _matched(found, rows, path, key), len(found)
    made = {name: _layer(file[name], path, name, place, length, rows, key) for name in names}
    return Activations(made, rows.cell, rows.scores)


def from_arrays(layers: dict[str, np.ndarray], rows: Rows) -> Activations:
    """The same of arrays that are there already, one row for each row of the whole table."""
    there = Path("the activations")
    made = {
        name: _layer(lambda array=array: np.asarray(array), there, name, rows.row, rows.total, rows, None)
        for name, array in layers.items()
    }
    return Activations(made, rows.cell, rows.scores)


def _layer(
    read: Callable[[], np.ndarray],
    path: Path,
    name: str,
    place: Int[np.ndarray, " row"],
    length: int,
    rows: Rows,
    key: str | None,
) -> Float[np.ndarray, "row feature"]:
    """One layer, checked, for the scored rows only."""
    array = _read(read, path, name)
    if array.dtype.kind not in "fiub":
        raise BadInput(
            f"Layer {name!r} of {path.name} holds {array.dtype}, not real numbers.", fix="write floats"
        )
    if array.ndim == 0 or len(array) != length:
        raise _wrong_length(array, path, name, length, rows, key)
    if array.size == 0:
        raise BadInput(f"Layer {name!r} of {path.name} is empty: its shape is {array.shape}.")
    chosen = array[place].reshape(len(place), -1)
    chosen = chosen.astype(np.result_type(array.dtype, np.float32), copy=False)
    finite = np.isfinite(chosen).all(axis=1)
    if not finite.all():
        first = int(np.flatnonzero(~finite)[0])
        raise BadInput(
            f"Layer {name!r} of {path.name} is not finite in {int((~finite).sum()):,} scored rows, first in row "
            f"{int(rows.row[first]) + 1} of the table.",
            fix="leave these rows out of the table (--where), or mend what wrote them",
        )
    return chosen


def _wrong_length(
    array: np.ndarray, path: Path, name: str, length: int, rows: Rows, key: str | None
) -> BadInput:
    if key is not None:
        return BadInput(
            f"Layer {name!r} of {path.name} has shape {array.shape}, and its key {key!r} has {length:,} entries.",
            fix="layers and key need the same first axis",
        )
    if array.ndim and len(array) == len(rows.row):
        fix = "write activations for the whole table, as before the filter, or match them by a key column (--key)"
    else:
        fix = "write one row for each row of the table, in its order, or match them by a key column (--key)"
    return BadInput(
        f"Layer {name!r} of {path.name} has shape {array.shape}; the table has {length:,} rows.", fix=fix
    )


def _matched(found: np.ndarray, rows: Rows, path: Path, key: str) -> Int[np.ndarray, " row"]:
    """Where in the file each row of the table is, by its key."""
    if rows.key is None:
        raise BadInput(f"No key column was read from the table, and {path.name} is to be matched by {key!r}.")
    if found.ndim != 1 or found.dtype.kind not in "iuUSbf":
        raise BadInput(
            f"The key {key!r} of {path.name} is not a list of names or numbers.", fix="write one axis"
        )
    place: dict[str, int] = {}
    for number, text in enumerate(_texts(found)):
        if place.setdefault(text, number) != number:
            raise BadInput(
                f"The key {key!r} of {path.name} holds {text!r} more than once.", fix="keys must differ"
            )
    missing = [row for row, text in enumerate(rows.key) if text is None or text not in place]
    if missing:
        first = missing[0]
        raise BadInput(
            f"{len(missing):,} of {len(rows.key):,} scored rows have a key that {path.name} lacks, first "
            f"{rows.key[first]!r} in row {int(rows.row[first]) + 1} of the table.",
            fix="leave these rows out (--where), or write their activations",
        )
    return np.array([place[str(text)] for text in rows.key], dtype=np.int64)


def _texts(found: np.ndarray) -> Iterator[str]:
    """Keys as the table's texts have them: a whole number without decimals."""
    for item in found.tolist():
        if isinstance(item, bytes):
            yield item.decode("utf-8", "replace")
        elif isinstance(item, bool):
            yield str(item).lower()
        else:
            yield str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


def _opened(path: Path) -> dict[str, Callable[[], np.ndarray]]:
    """How to read each array of a file."""
    if not path.is_file():
        raise BadInput(f"There is no file {str(path)!r}.")
    if path.suffix.lower() not in (".npz", ".safetensors"):
        raise BadInput(f"{path.name} is neither .npz nor .safetensors.", fix="numpy.savez(path, layer=array)")
    try:
        return _npz(path) if path.suffix.lower() == ".npz" else _safetensors(path)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, struct.error) as error:
        raise BadInput(
            f"{path.name} cannot be read: {str(error)[:120]}", fix="was it written to its end?"
        ) from None


def _read(read: Callable[[], np.ndarray], path: Path, name: str) -> np.ndarray:
    try:
        return read()
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        if "Object arrays" in str(error):
            raise BadInput(
                f"Array {name!r} of {path.name} holds Python objects, which are not read: they could run code.",
                fix="write an array of numbers of one shape",
            ) from None
        raise BadInput(f"Array {name!r} of {path.name} cannot be read: {str(error)[:120]}") from None
    except MemoryError:
        raise BadInput(
            f"Array {name!r} of {path.name} does not fit into memory.", fix="name fewer layers"
        ) from None


def _npz(path: Path) -> dict[str, Callable[[], np.ndarray]]:
    """The members of the archive. `read_array` refuses objects unless it is told otherwise."""

    def member(name: str) -> np.ndarray:
        with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
            return np.lib.format.read_array(stream)

    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
    return {name.removesuffix(".npy"): (lambda name=name: member(name)) for name in names}


def _safetensors(path: Path) -> dict[str, Callable[[], np.ndarray]]:
    from safetensors import SafetensorError, safe_open

    def tensor(name: str) -> np.ndarray:
        try:
            with safe_open(path, framework="numpy") as file:
                if file.get_slice(name).get_dtype() == BRAIN:
                    return _brain(path, name)
                return file.get_tensor(name)
        except (SafetensorError, TypeError, AttributeError) as error:
            raise ValueError(str(error)) from None

    try:
        with safe_open(path, framework="numpy") as file:
            return {name: (lambda name=name: tensor(name)) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(str(error)) from None


def _brain(path: Path, name: str) -> np.ndarray:
    """An array of bfloat16, from the bytes of the file, whose header safetensors has checked."""
    with path.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        about: dict[str, Any] = json.loads(stream.read(length))[name]
        begin, end = about["data_offsets"]
        stream.seek(8 + length + begin)
        halves = np.frombuffer(stream.read(end - begin), dtype="<u2")
    return (halves.astype(np.uint32) << 16).view(np.float32).reshape(about["shape"])
