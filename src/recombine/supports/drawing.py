"""Distinct combinations in random order, without listing the space where it is large."""

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
from recombine.supports.rows import first_of_each

SMALL = 50_000
"""Spaces up to this size are listed and permuted; larger ones are drawn and repeats dropped."""

PERMUTED = 2**21
"""Up to so many numbers are permuted; of more some are drawn."""

BATCHES = (512, 8192)
"""How many combinations one call draws. Two sizes only, as each is compiled for each space."""

PATIENCE = 2**20
"""So many draws in a row without a new combination, and a search gives up."""

Keep = Callable[[Int[np.ndarray, "n slots"]], Bool[np.ndarray, " n"]]


def seed_key(seed: int) -> Array:
    """The key of a seed of 64 bits; `jax.random.key` alone drops all but the lowest 32."""
    high, low = divmod(seed % 2**64, 2**32)
    key = jax.random.key(low)
    return jax.random.fold_in(key, high) if high else key


def shuffled(rows: Int[np.ndarray, "n slots"], key: Array) -> Int[np.ndarray, "n slots"]:
    """The rows in random order."""
    # numpy's permutation, as JAX's would be compiled anew for every length.
    return np.random.default_rng(np.asarray(jax.random.key_data(key))).permutation(rows)


def distinct_numbers(total: int, number: int, rng: np.random.Generator) -> Int[np.ndarray, " number"]:
    """So many different numbers below `total`, in random order. Fewer are the beginning of more.

    Where `total` is above `PERMUTED`, at most three quarters of that can be asked for.
    """
    if total <= PERMUTED:
        return rng.permutation(total)[:number]
    # Draws in their order, without their repeats, which are few.
    drawn = rng.integers(0, total, 2 * number + 64)
    return drawn[np.sort(np.unique(drawn, return_index=True)[1])][:number]


@functools.partial(jax.jit, static_argnums=(0, 3))
def _stream(space: Space, key: Array, start: Array, number: int) -> Array:
    # Draw i depends on the key and on i alone, so the stream is the same however it is cut into calls.
    return jax.vmap(lambda index: space.sample(jax.random.fold_in(key, index)))(start + jnp.arange(number))


def sample_rows(space: Space, key: Array, number: int, start: int = 0) -> Int[np.ndarray, "number slots"]:
    """Combinations drawn independently and uniformly: `number` of an endless stream, from `start` on."""
    return np.asarray(_stream(space, key, jnp.uint32(start), number))


def distinct_rows(
    space: Space, key: Array, number: int, keep: Keep | None = None
) -> Int[np.ndarray, "n slots"]:
    """Up to `number` different combinations for which `keep` holds, in uniformly random order.

    The answer for a smaller number is the beginning of the answer for a larger one, so supports of different
    size with one key are nested. Fewer come back when there are no more (small spaces: surely; large ones:
    after many draws without a new one).
    """
    if space.size <= SMALL:
        rows = shuffled(space.enumerate(), key)
        if keep is not None:
            rows = rows[keep(rows)]
        return rows[:number]

    found = np.empty((0, space.slots), np.int32)
    drawn = idle = 0
    while len(found) < number and idle < PATIENCE:
        calls, size = _plan(number, len(found), drawn)
        new = [found]
        for _ in range(calls):
            rows = sample_rows(space, key, size, drawn)
            new.append(rows if keep is None else rows[keep(rows)])
            drawn += size
        before = len(found)
        found = first_of_each(np.concatenate(new))
        idle = idle + calls * size if len(found) == before else 0
    return found[:number]


def _plan(number: int, found: int, drawn: int) -> tuple[int, int]:
    """How many calls of which size to make next, judged by how many draws were of use so far."""
    if not drawn:
        draws = number
    elif not found:
        draws = max(number, BATCHES[1])
    else:
        # Twice as many as seem needed: repeats grow towards the end, and a draw costs less than another round.
        draws = math.ceil(2 * (number - found) * drawn / found)
    size = BATCHES[0] if draws <= BATCHES[0] else BATCHES[1]
    # No more at once than the answer is long: memory stays proportional to the list.
    return min(-(-draws // size), 1 + number // size), size


def require(rows: Int[np.ndarray, "n slots"], number: int, what: str) -> Int[np.ndarray, "n slots"]:
    """The rows, or an error that says how many were found."""
    if len(rows) < number:
        raise BadInput(
            f"Only {len(rows)} {what} could be found where {number} were asked for.", fix="ask for fewer"
        )
    return rows
