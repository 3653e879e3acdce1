"""Activations from files: safetensors, or npz without pickles. One array per layer."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from recombine.audit.cells import Activations
from recombine.audit.reading.levels import written
from recombine.audit.reading.read import Rows
from recombine.errors import BadInput, did_you_mean


def read_activations(path: Path | str, rows: Rows, *, key: str | None = None) -> Activations:
    """The activations of the scored rows. Axes after the first are flattened.

    Args:
        path: A safetensors or npz file with one array per layer. Each array has one row per row of the whole table,
            before any filter, unless `key` is given.
        rows: The scored rows.
        key: The array of the file that holds the table's key column, in any order.
    """
    path = Path(path)
    held = _names(path)
    if key is not None and key not in held:
        raise BadInput(f"{path.name} has no array {key!r}, which is named as the key.", fix=did_you_mean(key, held))
    names = [name for name in held if name != key]
    if not names:
        raise BadInput(f"{path.name} holds no layers.", fix="write one array for each layer")
    index, length = rows.row, rows.total
    if key is not None:
        keys = _array(path, key)
        index, length = _matched(keys, rows, path, key), len(keys)
    arrays = {name: _layer(_array(path, name), path, name, index, length, rows, key) for name in names}
    return Activations(arrays, rows.cell, rows.scores)


def from_arrays(layers: dict[str, np.ndarray], rows: Rows) -> Activations:
    """The activations of the scored rows, from arrays in memory with one row per row of the whole table."""
    title = Path("the activations")
    arrays = {
        name: _layer(np.asarray(array), title, name, rows.row, rows.total, rows, None) for name, array in layers.items()
    }
    return Activations(arrays, rows.cell, rows.scores)


def _layer(
    array: np.ndarray, path: Path, name: str, index: Int[np.ndarray, " row"], length: int, rows: Rows, key: str | None
) -> Float[np.ndarray, "row feature"]:
    """One layer for the scored rows, checked."""
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
    filtered = array.ndim > 0 and len(array) == len(rows.row)
    what = (
        "activations for the whole table, before the filter" if filtered else "one row per row of the table, in order"
    )
    fix = f"write {what}, or match them by a key column (--key)"
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
    texts = [each.decode("utf-8", "replace") if isinstance(each, bytes) else written(each) for each in keys.tolist()]
    index = {text: number for number, text in enumerate(texts)}
    if twice := [text for number, text in enumerate(texts) if index[text] != number]:
        fix = "give each row a different key"
        raise BadInput(f"The key {key!r} of {path.name} holds {twice[0]!r} more than once.", fix=fix)
    missing = [row for row, text in enumerate(rows.key) if text is None or text not in index]
    if missing:
        first = missing[0]
        raise BadInput(
            f"{len(missing):,} of {len(rows.key):,} scored rows have a key that {path.name} lacks, first "
            f"{rows.key[first]!r} in row {int(rows.row[first]) + 1} of the table.",
            fix="leave these rows out (--where), or write their activations",
        )
    return np.array([index[str(text)] for text in rows.key], dtype=np.int64)


def _names(path: Path) -> list[str]:
    """The names of the arrays in a file."""
    if not path.is_file():
        raise BadInput(f"There is no file {str(path)!r}.", fix="check the path of the activations")
    if path.suffix.lower() not in (".npz", ".safetensors"):
        raise BadInput(f"{path.name} is neither .npz nor .safetensors.", fix="numpy.savez(path, layer=array)")
    from safetensors import SafetensorError, safe_open

    try:
        if path.suffix.lower() == ".npz":
            with zipfile.ZipFile(path) as archive:
                return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        with safe_open(path, framework="numpy") as file:
            return list(file.keys())
    except (OSError, ValueError, KeyError, NotImplementedError, zipfile.BadZipFile, SafetensorError) as error:
        raise BadInput(
            f"{path.name} cannot be read: {str(error)[:120]}", fix="check that it was written completely"
        ) from None


def _array(path: Path, name: str) -> np.ndarray:
    """One array of a file. NumPy refuses Python objects by default."""
    import ml_dtypes  # noqa: F401 (without it, NumPy does not know bfloat16)
    from safetensors import SafetensorError, safe_open

    # RuntimeError: the file is encrypted.
    broken = (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, RuntimeError)
    try:
        if path.suffix.lower() == ".npz":
            with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
                return np.lib.format.read_array(stream)
        with safe_open(path, framework="numpy") as file:
            array = file.get_tensor(name)
            return array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    except (*broken, zipfile.BadZipFile, zlib.error, SafetensorError) as error:
        if "Object arrays" in str(error):
            raise BadInput(
                f"Array {name!r} of {path.name} holds Python objects. They are not read, because they could run code.",
                fix="write an array of numbers",
            ) from None
        raise BadInput(f"Array {name!r} of {path.name} cannot be read: {str(error)[:120]}") from None
    except MemoryError:
        raise BadInput(f"Array {name!r} of {path.name} does not fit into memory.", fix="name fewer layers") from None
