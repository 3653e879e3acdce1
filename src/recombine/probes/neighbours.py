"""Combinations that differ in one constituent, and the tasks that go with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from recombine.families.base import Task
from recombine.spaces.base import Space

TRIES = 256
"""The most replacements that are looked at for one combination."""

Allowed = Callable[[Int[np.ndarray, "n slots"]], Bool[np.ndarray, " n"]]


def replacements(
    space: Space, rows: Int[np.ndarray, "n slots"], each: int, seed: int, allowed: Allowed | None = None
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, "m 2"]]:
    """Up to `each` ways for each combination to have one constituent replaced, so that an allowed one comes out.

    Returns which row each way belongs to, and the ways: the slot, and the constituent that comes into it. Ways are in
    random order and follow from the seed. All are looked at where there are few, else so many at random.
    """
    rng = np.random.default_rng([seed, 1])
    ways = space.slots * space.width
    tries = min(ways, TRIES)
    drawn = np.stack([rng.permutation(ways)[:tries] for _ in rows]).astype(np.int32)
    slot, constituent = np.divmod(drawn, space.width)
    index = np.arange(len(rows))[:, None]
    made = np.repeat(rows[:, None], tries, axis=1)
    before = rows[index, slot]
    made[index, np.arange(tries), slot] = constituent
    made = np.sort(made, axis=2).reshape(-1, space.slots)
    # A pad cannot be replaced: that would add a constituent.
    fits = ((before < space.width) & (before != constituent)).reshape(-1) & space.contains(made)
    if allowed is not None:
        fits[fits] = allowed(made[fits])
    fits = fits.reshape(len(rows), tries)
    owner, place = np.nonzero(fits & (np.cumsum(fits, axis=1) <= each))
    return owner, np.stack([slot[owner, place], constituent[owner, place]], axis=1)


def replaced_rows(
    rows: Int[np.ndarray, "n slots"], ways: Int[np.ndarray, "n 2"]
) -> Int[np.ndarray, "n slots"]:
    """The combinations after the replacement."""
    made = rows.copy()
    made[np.arange(len(rows)), ways[:, 0]] = ways[:, 1]
    return np.sort(made, axis=1)


def replaced_task(space: Space, task: Task, way: Int[Array, " 2"]) -> Task:
    """The task with one constituent replaced by another, which takes over its coefficient."""
    row = task.combination.at[way[0]].set(way[1].astype(task.combination.dtype))
    order = jnp.argsort(row)
    row, coefficients = row[order], task.coefficients[order]
    return dataclasses.replace(
        task, combination=row, coefficients=coefficients, vector=space.vector(row, coefficients)
    )
