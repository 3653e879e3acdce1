"""A random list in which all constituents are used equally often, or once more (in products: those of a factor)."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import numpy as np
from jaxtyping import Array, Int

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.supports.drawing import Keep
from recombine.supports.promise import Promise
from recombine.supports.random_list import NumberOrShare
from recombine.supports.rows import RowSet
from recombine.supports.within import alike, undefined


class Balanced(NumberOrShare):
    """As `random`, then swaps of much used for little used constituents, until usage differs by at most one.

    Swaps keep the number of constituents of every combination. The reserve is that of `random`; lists of different
    length are nearly nested only, as each is swapped on its own.
    """

    kind: Literal["balanced"] = "balanced"

    def obstacle(self, space: Space) -> BadInput | None:
        return undefined(self.kind, space) or super().obstacle(space)

    def promises(self, space: Space) -> Promise:
        return dataclasses.replace(super().promises(space), balanced=True)

    def rows(self, space: Space, seed: int, key: Array, keep: Keep) -> Int[np.ndarray, "n slots"] | None:
        by_rows, by_swaps = jax.random.split(key)
        rows = super().rows(space, seed, by_rows, keep)
        if rows is None:
            return None
        return balanced(space, rows, keep, np.random.default_rng(np.asarray(jax.random.key_data(by_swaps))))


def balanced(
    space: Space, rows: Int[np.ndarray, "n slots"], keep: Keep, rng: np.random.Generator
) -> Int[np.ndarray, "n slots"] | None:
    """As many different rows, all of which `keep` allows, with equal usage; None if swaps come to an end before.

    Of the rows with a much used part, more can take a little used part instead than have it already. So
    without a reserve there is always a swap, and each makes usage more equal.
    """
    rows = rows.copy()
    used = np.bincount(rows.ravel(), minlength=space.width)
    for parts in alike(space):
        usage = used[parts]
        while np.ptp(usage) > 1:
            if not _swap(rows, parts, usage, keep, rng):
                return None
    return rows


def _swap(
    rows: Int[np.ndarray, "n slots"],
    parts: Int[np.ndarray, " m"],
    usage: Int[np.ndarray, " m"],
    keep: Keep,
    rng: np.random.Generator,
) -> bool:
    """Put a little used part in the place of a much used one, in as many rows as it takes; False if in none.

    Rows and usage are changed in place.
    """
    mean = usage.mean()
    order = rng.permutation(len(parts))
    order = order[np.argsort(usage[order], kind="stable")]
    # The extremes first; other pairs are tried only where reserved combinations stand in the way.
    for much in order[::-1]:
        for little in order:
            if usage[much] - usage[little] < 2:
                break
            wanted = max(1, int(min(usage[much] - np.ceil(mean), np.floor(mean) - usage[little])))
            swaps = _replace(rows, int(parts[much]), int(parts[little]), wanted, keep, rng)
            if swaps:
                usage[much] -= swaps
                usage[little] += swaps
                return True
    return False


def _replace(
    rows: Int[np.ndarray, "n slots"], old: int, new: int, wanted: int, keep: Keep, rng: np.random.Generator
) -> int:
    """Replace a part by another in up to `wanted` rows such that no row comes twice. In how many it was."""
    has_old, has_new = (rows == old).any(axis=1), (rows == new).any(axis=1)
    places = rng.permutation(np.nonzero(has_old & ~has_new)[0])
    made = rows[places]
    made[made == old] = new
    made = np.sort(made, axis=1)
    # A row that is made holds the new part and not the old one: only such rows can be its like.
    free = ~RowSet(rows[has_new & ~has_old]).contains(made) & keep(made)
    chosen = np.nonzero(free)[0][:wanted]
    rows[places[chosen]] = made[chosen]
    return len(chosen)
