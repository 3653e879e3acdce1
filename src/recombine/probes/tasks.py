"""Tasks for measurements: drawn in compiled batches of one shape, from a stream of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Int, PyTree

from recombine.training.compiling import compiled
from recombine.training.memory import exhausted
from recombine.training.prepare import Setting
from recombine.training.streams import Stream, stream_key

BATCH = 512
"""Tasks in one compiled call; the last batch is padded, so that every run of a shape shares one program."""

FEW = 32
"""The same where an answer is an image, drawn in many passes: of a padded batch every place costs as much."""


SPOKEN = 256
"""The same where answers are said token by token."""


def at_once(setting: Setting) -> int:
    """Tasks that are answered in one compiled call."""
    return {"images": FEW, "tokens": SPOKEN}.get(setting.config.family.targets, BATCH)


def over_tasks(
    compute: Callable[..., PyTree],
    setting: Setting,
    dynamic: PyTree,
    rows: Int[np.ndarray, "n slots"],
    stream: Stream,
    region: str,
    batch: int = BATCH,
) -> dict[str, np.ndarray]:
    """`compute(dynamic, teacher, encoder, row, key)` for each row, as numpy arrays with a leading task axis.

    Names come in the order in which `compute` gave them: sites in the order of the computation.
    The key of a task depends on the name of the region and its place in `rows` alone. So runs of a replicate that
    share their held-out combinations are scored on the very same tasks, whatever else is scored.
    Where memory is short, batches are halved until they fit.
    """
    while True:
        try:
            return _batches(compute, setting, dynamic, rows, stream, region, batch)
        except (RuntimeError, MemoryError) as error:
            if batch == 1 or not exhausted(error):
                raise
            batch //= 2


def _batches(
    compute: Callable[..., PyTree],
    setting: Setting,
    dynamic: PyTree,
    rows: Int[np.ndarray, "n slots"],
    stream: Stream,
    region: str,
    batch: int,
) -> dict[str, np.ndarray]:
    salt = int.from_bytes(hashlib.blake2b(region.encode(), digest_size=4).digest(), "little")
    base = stream_key(setting.data_key, stream, salt)
    names: tuple[str, ...] = ()
    parts: list[tuple[np.ndarray, ...]] = []
    for start in range(0, len(rows), batch):
        index = np.arange(start, start + batch)
        padded = rows[np.minimum(index, len(rows) - 1)]
        names, part = _vmapped(
            compute,
            dynamic,
            setting.teacher,
            setting.encoder,
            jax.numpy.asarray(padded),
            base,
            jax.numpy.asarray(index),
        )
        parts.append(jax.tree.map(np.asarray, part))
    columns = zip(names, zip(*parts, strict=True), strict=True)
    return {name: np.concatenate(column)[: len(rows)] for name, column in columns}


@compiled
def _vmapped(compute: Any, dynamic: Any, teacher: Any, encoder: Any, rows: Any, base: Any, index: Any) -> Any:
    names: list[str] = []

    def one(row: Any, number: Any) -> Any:
        found = compute(dynamic, teacher, encoder, row, jax.random.fold_in(base, number))
        # JAX would sort a dictionary by its names ("hidden 10" before "hidden 2").
        names[:] = found
        return tuple(found.values())

    arrays = jax.vmap(one)(rows, index)
    return tuple(names), arrays
