"""Activations from files: safetensors, or npz without pickles. One array per layer."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from recombine.audit.decodability.activations import Activations
from recombine.audit.reading.levels import written
from recombine.audit.reading.read import Rows
from recombine.errors import BadInput, did_you_mean

Reader = Callable[[], np.ndarray]
"""Reads one array when it is called."""
BRAIN = "BF16"
"""bfloat16, which NumPy does not know: the upper half of a float32."""


def read_activations(
    path: Path | str, rows: Rows, *, key: str | None = None, layers: Sequence[str] | None = None
) -> Activations:
    """The activations of the scored rows. Axes after the first are flattened.

    Args:
        path: A safetensors or npz file with one array per layer. Each array has one row per row of the whole table,
            before any filter, unless `key` is given.
        rows: The scored rows.
        key: The array of the file that holds the table's key column, in any order.
        layers: The arrays to read; None: all.
    """
    path = Path(path)
    file = _opened(path)
    names = [name for name in file if name != key] if layers is None else list(layers)
    for name in [*names, *([] if key is None else [key])]:
        if name not in file:
            what = "key" if name == key else "layer"
            raise BadInput(
                f"{path.name} has no array {name!r}, which is named as the {what}.", fix=did_you_mean(name, file)
            )
    if not names:
        raise BadInput(f"{path.name} holds no layers.", fix="write one array for each layer")
    if key is None:
        index, length = rows.row, rows.total
    else:
        keys = _read(file[key], path, key)
        index, length = _matched(keys, rows, path, key), len(keys)
    arrays = {name: _layer(file[name], path, name, index, length, rows, key) for name in names}
    return Activations(arrays, rows.cell, rows.scores)


def from_arrays(layers: dict[str, np.ndarray], rows: Rows) -> Activations:
    """The activations of the scored rows, from arrays in memory with one row per row of the whole table."""
    title = Path("the activations")
    arrays = {
        name: _layer(lambda array=array: np.asarray(array), title, name, rows.row, rows.total, rows, None)
        for name, array in layers.items()
    }
    return Activations(arrays, rows.cell, rows.scores)


def _layer(
    read: Reader, path: Path, name: str, index: Int[np.ndarray, " row"], length: int, rows: Rows, key: str | None
) -> Float[np.ndarray, "row feature"]:
    """One layer for the scored rows, checked."""
    array = _read(read, path, name)
    if array.dtype.kind not in "fiub":
        raise BadInput(f"Layer {name!r} of {path.name} holds {array.dtype}, not real numbers.", fix="write floats")
    if array.ndim == 0 or len(array) != length:
        raise _wrong_length(array, path, name, length, rows, key)
    if array.size == 0:
        raise BadInput(f"Layer {name!r} of {path.name} is empty: its shape is {array.shape}.")
    chosen = array[index].reshape(len(index), -1)
    chosen = chosen.astype(np.result_type(array.dtype, np.float32), copy=False)
    finite = np.isfinite(chosen).all(axis=1)
    if not finite.all():
        first = int(np.flatnonzero(~finite)[0])
        raise BadInput(
            f"Layer {name!r} of {path.name} is not finite in {int((~finite).sum()):,} scored rows, first in row "
            f"{int(rows.row[first]) + 1} of the table.",
            fix="leave these rows out of the table (--where), or fix the program that wrote them",
        )
    return chosen


def _wrong_length(array: np.ndarray, path: Path, name: str, length: int, rows: Rows, key: str | None) -> BadInput:
    if key is not None:
        return BadInput(
            f"Layer {name!r} of {path.name} has shape {array.shape}, but its key {key!r} has {length:,} entries.",
            fix="give layers and key the same first axis",
        )
    if array.ndim and len(array) == len(rows.row):
        fix = "write activations for the whole table, before the filter, or match them by a key column (--key)"
    else:
        fix = "write one row per row of the table, in its order, or match them by a key column (--key)"
    return BadInput(f"Layer {name!r} of {path.name} has shape {array.shape}; the table has {length:,} rows.", fix=fix)


def _matched(keys: np.ndarray, rows: Rows, path: Path, key: str) -> Int[np.ndarray, " row"]:
    """The index in the file of each row of the table, by its key."""
    if rows.key is None:
        raise BadInput(
            f"{path.name} is matched by {key!r}, but no key column was read from the table.",
            fix="name the key column of the table",
        )
    if keys.ndim != 1 or keys.dtype.kind not in "iuUSbf":
        raise BadInput(
            f"The key {key!r} of {path.name} is not a list of names or numbers.", fix="write an array with one axis"
        )
    index: dict[str, int] = {}
    texts = [key.decode("utf-8", "replace") if isinstance(key, bytes) else written(key) for key in keys.tolist()]
    for number, text in enumerate(texts):
        if index.setdefault(text, number) != number:
            raise BadInput(
                f"The key {key!r} of {path.name} holds {text!r} more than once.", fix="give each row a different key"
            )
    missing = [row for row, text in enumerate(rows.key) if text is None or text not in index]
    if missing:
        first = missing[0]
        raise BadInput(
            f"{len(missing):,} of {len(rows.key):,} scored rows have a key that {path.name} lacks, first "
            f"{rows.key[first]!r} in row {int(rows.row[first]) + 1} of the table.",
            fix="leave these rows out (--where), or write their activations",
        )
    return np.array([index[str(text)] for text in rows.key], dtype=np.int64)


def _opened(path: Path) -> dict[str, Reader]:
    """A function that reads each array of a file."""
    if not path.is_file():
        raise BadInput(f"There is no file {str(path)!r}.", fix="check the path of the activations")
    if path.suffix.lower() not in (".npz", ".safetensors"):
        raise BadInput(f"{path.name} is neither .npz nor .safetensors.", fix="numpy.savez(path, layer=array)")
    try:
        return _npz(path) if path.suffix.lower() == ".npz" else _safetensors(path)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, struct.error) as error:
        raise BadInput(
            f"{path.name} cannot be read: {str(error)[:120]}", fix="check that it was written completely"
        ) from None


def _read(read: Reader, path: Path, name: str) -> np.ndarray:
    try:
        return read()
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        if "Object arrays" in str(error):
            raise BadInput(
                f"Array {name!r} of {path.name} holds Python objects. They are not read, because they could run code.",
                fix="write an array of numbers",
            ) from None
        raise BadInput(f"Array {name!r} of {path.name} cannot be read: {str(error)[:120]}") from None
    except MemoryError:
        raise BadInput(f"Array {name!r} of {path.name} does not fit into memory.", fix="name fewer layers") from None


def _npz(path: Path) -> dict[str, Reader]:
    """The members of the archive. `read_array` refuses Python objects by default."""

    def member(name: str) -> np.ndarray:
        with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
            return np.lib.format.read_array(stream)

    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
    return {name.removesuffix(".npy"): (lambda name=name: member(name)) for name in names}


def _safetensors(path: Path) -> dict[str, Reader]:
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
    """An array of bfloat16, from the bytes of the file. safetensors has checked the header."""
    with path.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        about: dict[str, Any] = json.loads(stream.read(length))[name]
        begin, end = about["data_offsets"]
        stream.seek(8 + length + begin)
        halves = np.frombuffer(stream.read(end - begin), dtype="<u2")
    return (halves.astype(np.uint32) << 16).view(np.float32).reshape(about["shape"])
