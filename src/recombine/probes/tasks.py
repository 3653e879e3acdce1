"""Computations over many tasks, in compiled batches of one shape; each measurement draws its own tasks."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from recombine.models.base import Network
from recombine.objectives.base import Objective
from recombine.objectives.next_token import NextToken
from recombine.training.compiling import compiled
from recombine.training.memory import is_out_of_memory
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream, stream_key

BATCH = 512
"""Tasks in one compiled call. The last batch is padded, so that all runs share one program."""
IMAGE_BATCH = 32
"""The same where an answer is an image. It takes many passes, and padding costs as much as a task."""
TOKEN_BATCH = 256
"""The same where an answer is generated token by token."""


@dataclasses.dataclass(frozen=True)
class AnswerTask:
    """The answer that a network generates to one task, and the target. Without an objective only the target.

    With `whole`, the answer `whole` is added: generated with as many tokens as the target, so that it cannot end early.
    """

    objective: Objective | None
    whole: bool = False

    def __call__(self, network: Network | None, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row, key, 1)
        if self.objective is None:
            return {"target": batch.targets[0]}
        assert network is not None
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))
        answer = self.objective.evaluate(network, codes, batches, key)[0, 0]
        found = {"answer": answer, "target": batch.targets[0]}
        if self.whole:
            assert isinstance(self.objective, NextToken)
            found["whole"] = self.objective.evaluate(network, codes, batches, key, whole=True)[0, 0]
        return found


def at_once(setting: Setting) -> int:
    """The number of tasks that one compiled call answers, by the kind of targets."""
    return {"images": IMAGE_BATCH, "tokens": TOKEN_BATCH}.get(setting.config.family.targets, BATCH)


def over_tasks(
    compute: Callable[..., PyTree],
    setting: Setting,
    dynamic: PyTree,
    rows: Int[np.ndarray, "n slots"],
    stream: Stream,
    region: str,
    batch: int = BATCH,
) -> dict[str, np.ndarray]:
    """Compute something for each row, in compiled batches.

    The key of a task depends only on the name of the region and its index in `rows`. So runs of a replicate that share
    their held-out combinations are scored on the same tasks. Where memory is short, batches are halved until they fit.

    Args:
        compute: A hashable callable `compute(dynamic, teacher, encoder, row, key)` that returns named arrays.
        setting: The run.
        dynamic: The first argument of `compute`: the network, alone or with other arrays.
        rows: One combination per task, possibly with more columns that `compute` understands.
        stream: The stream of random numbers.
        region: A name that tells the tasks of this call from others of the stream.
        batch: The number of tasks in one compiled call.

    Returns:
        NumPy arrays with a leading task axis, in the order in which `compute` names them (sites in the order of the
        computation).
    """
    salt = int.from_bytes(hashlib.blake2b(region.encode(), digest_size=4).digest(), "little")
    base = stream_key(setting.data_key, stream, salt)
    drawn = setting.teacher, setting.encoder
    while True:
        names, parts = (), []
        try:
            for start in range(0, len(rows), batch):
                index = np.arange(start, start + batch)
                padded = rows[np.minimum(index, len(rows) - 1)]
                names, part = _vmapped(compute, dynamic, *drawn, jnp.asarray(padded), base, jnp.asarray(index))
                parts.append(jax.tree.map(np.asarray, part))
            break
        except (RuntimeError, MemoryError) as error:
            if batch == 1 or not is_out_of_memory(error):
                raise
            batch //= 2
    columns = zip(names, zip(*parts, strict=True), strict=True)
    return {name: np.concatenate(column)[: len(rows)] for name, column in columns}


@compiled
def _vmapped(compute: Any, dynamic: Any, teacher: Any, encoder: Any, rows: Any, base: Any, index: Any) -> Any:
    names: list[str] = []

    def compute_one(row: Any, number: Any) -> Any:
        arrays = compute(dynamic, teacher, encoder, row, jax.random.fold_in(base, number))
        # JAX would sort a dictionary by its names ("hidden 10" before "hidden 2").
        names[:] = arrays
        return tuple(arrays.values())

    arrays = jax.vmap(compute_one)(rows, index)
    return tuple(names), arrays
