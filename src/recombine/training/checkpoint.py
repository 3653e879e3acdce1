"""States on disk: one file a run, replaced whole, so that a killed process loses only what came after it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from recombine.errors import StoreError
from recombine.writers import part_of

Tree = TypeVar("Tree", bound=PyTree)

SEAL = "sha256"
"""Under this name the note holds the hash of the arrays and of the note itself. In the note and not beside it:
safetensors writes several entries of its metadata in any order, and equal runs are to be equal files."""


def save_tree(path: Path, tree: PyTree, note: dict[str, Any] | None = None) -> None:
    """Write the arrays of a pytree by the names of their places. Atomic: the file is whole or not there."""
    named, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, eqx.is_array))
    # Not np.ascontiguousarray, which gives a scalar an axis.
    arrays = {jax.tree_util.keystr(place): np.asarray(leaf, order="C") for place, leaf in named}
    note = note or {}
    part = part_of(path)
    try:
        # Written here and not by safetensors, whose errors do not say in a form for programs that the disk is full.
        with open(part, "wb") as file:
            file.write(save(arrays, metadata={"note": json.dumps(note | {SEAL: _digest(arrays, note)})}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def load_tree(path: Path, like: Tree) -> tuple[Tree, dict[str, Any]]:
    """Read arrays into the structure of `like`, which must have the same places, shapes and types; shapes alone will do."""
    arrays, static = eqx.partition(
        like, lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)
    )
    named, structure = jax.tree_util.tree_flatten_with_path(arrays)
    stored, note = read_arrays(path)
    wanted = {jax.tree_util.keystr(place): leaf for place, leaf in named}
    if stored.keys() != wanted.keys():
        differ = sorted(stored.keys() ^ wanted.keys())
        raise StoreError(f"{path} does not hold the expected arrays; they differ in {differ}.")
    for name, leaf in wanted.items():
        value = stored[name]
        if value.shape != leaf.shape or value.dtype != leaf.dtype:
            raise StoreError(
                f"{path} holds {value.dtype}{value.shape} at {name}, expected {leaf.dtype}{leaf.shape}."
            )
    leaves = [jax.numpy.asarray(stored[name]) for name in wanted]
    return eqx.combine(jax.tree.unflatten(structure, leaves), static), note


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """All arrays of a file by their names, and its note. StoreError if a single bit is not as it was written."""
    try:
        with safe_open(path, framework="numpy") as file:
            note = json.loads((file.metadata() or {}).get("note", "{}"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    if not isinstance(note, dict):
        raise StoreError(f"{path} cannot be read: its note is not one of recombine.")
    seal = note.pop(SEAL, None)
    # Files of older versions have no seal.
    if seal is not None and seal != _digest(arrays, note):
        raise StoreError(f"{path} is damaged: what it holds is not what was written.")
    return arrays, note


def _digest(arrays: dict[str, np.ndarray], note: dict[str, Any]) -> str:
    found = hashlib.sha256(json.dumps(note).encode())
    for name in sorted(arrays):
        found.update(f"|{name}|{arrays[name].dtype}|{arrays[name].shape}|".encode())
        found.update(arrays[name].tobytes())
    return found.hexdigest()
