"""A list chosen greedily by a criterion on E[zz'] of the chosen combinations: the alternatives to a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.errors import BadInput
from recombine.spaces import Space, SubsetSpace
from recombine.spaces.rows import Rows
from recombine.spaces.subspace import WITH_SUBSPACES
from recombine.supports.listed.drawing import Keep, distinct_rows
from recombine.supports.listed.kinds import NumberOrShare, widened

Criterion = Literal["d", "e", "usage", "pair-poor"]

CANDIDATES = 1024
"""The number of candidates of which the best is taken. A larger space has new random candidates each time."""

RIDGE = 1e-3
"""The initial diagonal of the moments, so that they can be inverted."""


class Optimal(NumberOrShare):
    """Each next combination is the best by the criterion among those that are not reserved, ties at random.

    `d` increases the determinant of E[zz'] most, and `e` its smallest eigenvalue. `usage` takes the least used
    constituents. `pair-poor` does the same, and among these takes the combination with the most pairs that occurred
    before. In subset spaces combinations have exactly max_active modules.
    """

    kind: Literal["optimal"] = "optimal"
    defined_on = WITH_SUBSPACES
    criterion: Criterion = "d"
    require_connected: bool = False
    """By default the list is not redrawn, because the criterion itself is compared."""

    def obstacle(self, space: Space) -> BadInput | None:
        if space.slots == 1:
            return BadInput("Combinations of one constituent have no pairs, so none is better than another.")
        return super().obstacle(space)

    def pool(self, space: Space) -> Space:
        return space.exactly(space.max_active) if isinstance(space, SubsetSpace) else space

    def rows(self, space: Space, seed: int, key: Array, keep: Keep) -> Rows | None:
        pool, length, best = self.pool(space), self.length(space), CRITERIA[self.criterion]
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))

        def allowed(rows: Int[np.ndarray, "n few"]) -> np.ndarray:
            return keep(widened(rows, space))

        listed = pool.enumerate() if pool.size <= CANDIDATES else None
        left = listed[allowed(listed)] if listed is not None else None
        met = np.zeros((space.width, space.width))
        chosen: list[Int[np.ndarray, " slots"]] = []
        taken: set[bytes] = set()
        while len(chosen) < length:
            if left is None:
                # A large space: new candidates each time, which are unlikely to be taken already.
                fresh = jax.random.fold_in(key, len(chosen))
                candidates = distinct_rows(pool, fresh, CANDIDATES, allowed)
                candidates = candidates[[row.tobytes() not in taken for row in candidates]]
            else:
                candidates = left
            if not len(candidates):
                raise BadInput(
                    f"Only {len(chosen)} combinations can be chosen, but {length} were requested.",
                    fix="ask for fewer, or reserve fewer",
                )
            scores = best(met, candidates)
            ties = np.nonzero(scores >= scores.max() - 1e-9 * max(1.0, abs(float(scores.max()))))[0]
            best_index = int(rng.choice(ties))
            row = candidates[best_index]
            chosen.append(row)
            taken.add(row.tobytes())
            if left is not None:
                left = np.delete(left, best_index, axis=0)
            met[np.ix_(row, row)] += 1
        return widened(np.array(chosen), space)


def _pairs(matrix: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]) -> Float[np.ndarray, "n k k"]:
    """The entries of a matrix at all pairs of constituents of each row."""
    return matrix[rows[:, :, None], rows[:, None, :]]


def d_optimal(met: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """The growth of the log determinant, as its monotone form z' S^-1 z."""
    inverse = np.linalg.inv(met + RIDGE * np.eye(len(met)))
    return _pairs(inverse, rows).sum(axis=(1, 2))


def e_optimal(met: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """The smallest eigenvalue afterwards. While it is zero, the determinant decides."""
    if np.linalg.eigvalsh(met)[0] < 1e-9:
        return d_optimal(met, rows)
    after = np.repeat(met[None], len(rows), axis=0)
    number = np.arange(len(rows))[:, None, None]
    after[number, rows[:, :, None], rows[:, None, :]] += 1
    return np.linalg.eigvalsh(after)[:, 0]


def usage(met: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """Prefer rarely used constituents."""
    return -np.diag(met)[rows].sum(axis=1)


def pair_poor(met: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """Prefer rarely used constituents, and among such combinations as few new pairs as possible."""
    new = (_pairs(met, rows) == 0).sum(axis=(1, 2)) / 2
    return usage(met, rows) * (1 + rows.shape[1] ** 2) - new


CRITERIA: dict[Criterion, Callable[[np.ndarray, np.ndarray], Float[np.ndarray, " n"]]] = {
    "d": d_optimal,
    "e": e_optimal,
    "usage": usage,
    "pair-poor": pair_poor,
}
