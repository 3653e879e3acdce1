"""Pytrees on disk: one file, replaced atomically, with a hash that shows every changed bit."""

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
"""The key in the note for the hash of arrays and note. It is inside the note because safetensors writes several entries of
metadata in any order, and equal runs must give equal files."""


def save_tree(path: Path, tree: PyTree, note: dict[str, Any] | None = None) -> None:
    """Write the arrays of a pytree, named by their position in it, and a note of plain values; atomically."""
    named, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, eqx.is_array))
    # Not np.ascontiguousarray, which would give a scalar an axis.
    arrays = {jax.tree_util.keystr(position): np.asarray(leaf, order="C") for position, leaf in named}
    note = note or {}
    part = part_of(path)
    try:
        # Written here, because errors of safetensors have no code for a full disk.
        with open(part, "wb") as file:
            file.write(save(arrays, metadata={"note": json.dumps(note | {SEAL: _digest(arrays, note)})}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def load_tree(path: Path, like: Tree) -> tuple[Tree, dict[str, Any]]:
    """Read a pytree and its note. A file that does not fit, or is damaged, raises `StoreError`.

    `like` has the same structure, shapes and types: arrays or `jax.ShapeDtypeStruct`.
    """
    arrays, static = eqx.partition(like, lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct))
    named, structure = jax.tree_util.tree_flatten_with_path(arrays)
    stored, note = read_arrays(path)
    wanted = {jax.tree_util.keystr(position): leaf for position, leaf in named}
    if stored.keys() != wanted.keys():
        differ = sorted(stored.keys() ^ wanted.keys())
        raise StoreError(f"{path} does not hold the expected arrays; they differ in {differ}.")
    for name, leaf in wanted.items():
        value = stored[name]
        if value.shape != leaf.shape or value.dtype != leaf.dtype:
            raise StoreError(f"{path} holds {value.dtype}{value.shape} at {name}, expected {leaf.dtype}{leaf.shape}.")
    leaves = [jax.numpy.asarray(stored[name]) for name in wanted]
    return eqx.combine(jax.tree.unflatten(structure, leaves), static), note


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read all arrays of a file by name, and its note. A changed bit raises StoreError."""
    try:
        with safe_open(path, framework="numpy") as file:
            note = json.loads((file.metadata() or {}).get("note", "{}"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    except (SafetensorError, OSError, ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    if not isinstance(note, dict):
        raise StoreError(f"{path} cannot be read: its note is not one of recombine.")
    seal = note.pop(SEAL, None)
    # Older files have no hash.
    if seal is not None and seal != _digest(arrays, note):
        raise StoreError(f"{path} is damaged: what it holds is not what was written.")
    return arrays, note


def _digest(arrays: dict[str, np.ndarray], note: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(note).encode())
    for name in sorted(arrays):
        digest.update(f"|{name}|{arrays[name].dtype}|{arrays[name].shape}|".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()
