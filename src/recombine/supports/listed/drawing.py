"""Draw distinct combinations in random order, without listing the space where it is large."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.rows import SMALL, Rows, first_of_each

PERMUTED = 2**21
"""Ranges up to this size are permuted. From longer ones numbers are drawn."""

BATCHES = (512, 8192)
"""The number of combinations that one call draws. Only two sizes, because each is compiled for each space."""

PATIENCE = 2**20
"""A search ends after this many draws in a row without a new combination."""

Keep = Callable[[Rows], Bool[np.ndarray, " n"]]


def seed_key(seed: int) -> Array:
    """The key of a 64-bit seed. `jax.random.key` alone keeps only the lowest 32 bits."""
    high, low = divmod(seed % 2**64, 2**32)
    key = jax.random.key(low)
    return jax.random.fold_in(key, high) if high else key


def shuffled(rows: Rows, key: Array) -> Rows:
    """The rows in random order."""
    # NumPy's permutation: JAX's would be compiled anew for every length.
    return np.random.default_rng(np.asarray(jax.random.key_data(key))).permutation(rows)


def distinct_numbers(total: int, number: int, rng: np.random.Generator) -> Int[np.ndarray, " number"]:
    """Draw `number` different integers below `total`, in random order.

    A smaller number gives the beginning of the answer for a larger one. Where `total` is above `PERMUTED`, the number
    must be at most three quarters of `PERMUTED`.
    """
    if total <= PERMUTED:
        return rng.permutation(total)[:number]
    # Draws in their order, without the few repeats.
    drawn = rng.integers(0, total, 2 * number + 64)
    return drawn[np.sort(np.unique(drawn, return_index=True)[1])][:number]


@functools.partial(jax.jit, static_argnums=(0, 3))
def _stream(space: Space, key: Array, start: Array, number: int) -> Array:
    # Draw i depends only on the key and on i, so the stream does not depend on how it is divided into calls.
    return jax.vmap(lambda index: space.sample(jax.random.fold_in(key, index)))(start + jnp.arange(number))


def sample_rows(space: Space, key: Array, number: int, start: int = 0) -> Int[np.ndarray, "number slots"]:
    """Draw combinations independently and uniformly: items `start` to `start + number` of an endless stream."""
    return np.asarray(_stream(space, key, jnp.uint32(start), number))


def distinct_rows(space: Space, key: Array, number: int, keep: Keep | None = None) -> Rows:
    """Draw up to `number` different combinations that `keep` allows, in uniformly random order.

    A smaller number gives the beginning of the answer for a larger one, so supports of different size with one key are
    nested. Fewer come back where a small space has no more, or where many draws in a large space gave nothing new.
    """
    if space.size <= SMALL:
        rows = shuffled(space.enumerate(), key)
        if keep is not None:
            rows = rows[keep(rows)]
        return rows[:number]

    distinct = np.empty((0, space.slots), np.int32)
    drawn = idle = 0
    while len(distinct) < number and idle < PATIENCE:
        calls, size = _next_calls(number, len(distinct), drawn)
        new = [distinct]
        for _ in range(calls):
            rows = sample_rows(space, key, size, drawn)
            new.append(rows if keep is None else rows[keep(rows)])
            drawn += size
        before = len(distinct)
        distinct = first_of_each(np.concatenate(new))
        idle = idle + calls * size if len(distinct) == before else 0
    return distinct[:number]


def _next_calls(number: int, distinct: int, drawn: int) -> tuple[int, int]:
    """The number and size of the next calls, from the share of draws that were new so far."""
    if not drawn:
        draws = number
    elif not distinct:
        draws = max(number, BATCHES[1])
    else:
        # Twice the estimate: repeats become more frequent towards the end, and a draw is cheaper than another round.
        draws = math.ceil(2 * (number - distinct) * drawn / distinct)
    size = BATCHES[0] if draws <= BATCHES[0] else BATCHES[1]
    # At most the length of the answer at once, so that memory stays proportional to the list.
    return min(-(-draws // size), 1 + number // size), size


def require(rows: Rows, number: int, what: str) -> Rows:
    """The rows. BadInput with the number of rows where there are fewer than `number`."""
    if len(rows) < number:
        raise BadInput(f"Only {len(rows)} {what} were found, but {number} were requested.", fix="ask for fewer")
    return rows
