"""Combinations that differ in one constituent, and the tasks that go with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from recombine.families.base import Task
from recombine.spaces.base import Space

MAX_TRIES = 256
"""The largest number of replacements to try for one combination."""

Allowed = Callable[[Int[np.ndarray, "n slots"]], Bool[np.ndarray, " n"]]


def replacements(
    space: Space, rows: Int[np.ndarray, "n slots"], each: int, seed: int, allowed: Allowed | None = None
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, "m 2"]]:
    """Find combinations that differ from given ones in one constituent, at most `each` per combination.

    They are tried in a random order, at most `MAX_TRIES` per combination. `allowed` tells which new combinations count.

    Returns:
        The index of each replacement's combination in `rows`, and the replacements: slot and new constituent.
    """
    rng = np.random.default_rng([seed, 1])
    number = space.slots * space.width
    tries = min(number, MAX_TRIES)
    drawn = np.stack([rng.permutation(number)[:tries] for _ in rows]).astype(np.int32)
    slot, constituent = np.divmod(drawn, space.width)
    index = np.arange(len(rows))[:, None]
    changed = np.repeat(rows[:, None], tries, axis=1)
    before = rows[index, slot]
    changed[index, np.arange(tries), slot] = constituent
    changed = np.sort(changed, axis=2).reshape(-1, space.slots)
    # Replacing a pad would add a constituent.
    fits = ((before < space.width) & (before != constituent)).reshape(-1) & space.contains(changed)
    if allowed is not None:
        fits[fits] = allowed(changed[fits])
    fits = fits.reshape(len(rows), tries)
    owner, way = np.nonzero(fits & (np.cumsum(fits, axis=1) <= each))
    return owner, np.stack([slot[owner, way], constituent[owner, way]], axis=1)


def replaced_rows(rows: Int[np.ndarray, "n slots"], ways: Int[np.ndarray, "n 2"]) -> Int[np.ndarray, "n slots"]:
    """The combinations after one replacement each."""
    changed = rows.copy()
    changed[np.arange(len(rows)), ways[:, 0]] = ways[:, 1]
    return np.sort(changed, axis=1)


def replaced_task(space: Space, task: Task, way: Int[Array, " 2"]) -> Task:
    """The task with one constituent replaced by another, which takes over its coefficient."""
    row = task.combination.at[way[0]].set(way[1].astype(task.combination.dtype))
    order = jnp.argsort(row)
    row, coefficients = row[order], task.coefficients[order]
    return dataclasses.replace(task, combination=row, coefficients=coefficients, vector=space.vector(row, coefficients))
