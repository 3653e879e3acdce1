"""A random list in which interchangeable constituents are used equally often, up to a difference of one."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import numpy as np
from jaxtyping import Array, Int

from recombine.spaces.base import Space
from recombine.spaces.rows import Rows, RowSet
from recombine.spaces.subspace import WITH_SUBSPACES, interchangeable
from recombine.supports.certificate import Promise
from recombine.supports.listed.drawing import Keep
from recombine.supports.listed.kinds import NumberOrShare


class Balanced(NumberOrShare):
    """As `random`, but frequent constituents are replaced by rare ones until usage differs by at most one.

    Replacements keep the number of constituents of every combination. In products, the values of each factor are
    balanced. The reserve is that of `random`. Lists of different length are only nearly nested, because each list is
    balanced separately.
    """

    kind: Literal["balanced"] = "balanced"
    defined_on = WITH_SUBSPACES

    def promises(self, space: Space) -> Promise:
        return dataclasses.replace(super().promises(space), balanced=True)

    def rows(self, space: Space, seed: int, key: Array, keep: Keep) -> Rows | None:
        by_rows, by_swaps = jax.random.split(key)
        rows = super().rows(space, seed, by_rows, keep)
        if rows is None:
            return None
        return balanced(space, rows, keep, np.random.default_rng(np.asarray(jax.random.key_data(by_swaps))))


def balanced(space: Space, rows: Rows, keep: Keep, rng: np.random.Generator) -> Rows | None:
    """The same number of different rows with equal usage, all allowed by `keep`; None if no replacement is left.

    More rows with a frequent constituent lack a rare one than have it. So without a reserve there is always a
    replacement, and each makes usage more equal.
    """
    rows = rows.copy()
    used = np.bincount(rows.ravel(), minlength=space.width)
    for parts in interchangeable(space):
        usage = used[parts]
        while np.ptp(usage) > 1:
            if not _swap(rows, parts, usage, keep, rng):
                return None
    return rows


def _swap(
    rows: Rows, parts: Int[np.ndarray, " m"], usage: Int[np.ndarray, " m"], keep: Keep, rng: np.random.Generator
) -> bool:
    """Replace a frequent constituent by a rare one, in as many rows as needed. False if no row allows it.

    Rows and usage are changed in place.
    """
    mean = usage.mean()
    order = rng.permutation(len(parts))
    order = order[np.argsort(usage[order], kind="stable")]
    # The extremes first; other pairs are tried only where reserved combinations prevent a replacement.
    for frequent in order[::-1]:
        for rare in order:
            if usage[frequent] - usage[rare] < 2:
                break
            wanted = max(1, int(min(usage[frequent] - np.ceil(mean), np.floor(mean) - usage[rare])))
            swaps = _replace(rows, int(parts[frequent]), int(parts[rare]), wanted, keep, rng)
            if swaps:
                usage[frequent] -= swaps
                usage[rare] += swaps
                return True
    return False


def _replace(rows: Rows, old: int, new: int, wanted: int, keep: Keep, rng: np.random.Generator) -> int:
    """Replace a constituent in up to `wanted` rows, so that no row repeats. Returns the number of changed rows."""
    has_old, has_new = (rows == old).any(axis=1), (rows == new).any(axis=1)
    indices = rng.permutation(np.nonzero(has_old & ~has_new)[0])
    changed = rows[indices]
    changed[changed == old] = new
    changed = np.sort(changed, axis=1)
    # A changed row has the new constituent and not the old one, so only such rows can equal it.
    free = ~RowSet(rows[has_new & ~has_old]).contains(changed) & keep(changed)
    chosen = np.nonzero(free)[0][:wanted]
    rows[indices[chosen]] = changed[chosen]
    return len(chosen)
