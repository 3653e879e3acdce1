"""States on disk: one file a run, replaced whole, so that a killed process loses only what came after it."""

from __future__ import annotations

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

Tree = TypeVar("Tree", bound=PyTree)


def save_tree(path: Path, tree: PyTree, note: dict[str, Any] | None = None) -> None:
    """Write the arrays of a pytree by the names of their places. Atomic: the file is whole or not there."""
    named, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, eqx.is_array))
    # Not np.ascontiguousarray, which gives a scalar an axis.
    arrays = {jax.tree_util.keystr(place): np.asarray(leaf, order="C") for place, leaf in named}
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        # Written here and not by safetensors, whose errors do not say in a form for programs that the disk is full.
        with open(part, "wb") as file:
            file.write(save(arrays, metadata={"note": json.dumps(note or {})}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def load_tree(path: Path, like: Tree) -> tuple[Tree, dict[str, Any]]:
    """Read arrays into the structure of `like`, which must have the same places, shapes and types."""
    arrays, static = eqx.partition(like, eqx.is_array)
    named, structure = jax.tree_util.tree_flatten_with_path(arrays)
    try:
        with safe_open(path, framework="numpy") as file:
            note = json.loads((file.metadata() or {}).get("note", "{}"))
            stored = set(file.keys())
            wanted = {jax.tree_util.keystr(place) for place, _ in named}
            if stored != wanted:
                raise StoreError(
                    f"{path} does not hold the expected arrays; they differ in {sorted(stored ^ wanted)}."
                )
            leaves = []
            for place, leaf in named:
                value = file.get_tensor(jax.tree_util.keystr(place))
                if value.shape != leaf.shape or value.dtype != leaf.dtype:
                    raise StoreError(
                        f"{path} holds {value.dtype}{value.shape} at {jax.tree_util.keystr(place)}, "
                        f"expected {leaf.dtype}{leaf.shape}."
                    )
                leaves.append(jax.numpy.asarray(value))
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    return eqx.combine(jax.tree.unflatten(structure, leaves), static), note
