"""A list chosen one combination after the other by a criterion on E[zz'] of what was chosen: the rivals of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.supports.drawing import Keep, distinct_rows
from recombine.supports.random_list import NumberOrShare, widened
from recombine.supports.within import undefined

Criterion = Literal["d", "e", "usage", "pair-poor"]

CANDIDATES = 1024
"""Of so many combinations the best is taken: all that there are, or fresh ones each time."""

RIDGE = 1e-3
"""What stands in the moments before anything is chosen, so that they can be inverted."""


class Optimal(NumberOrShare):
    """Greedy: the next combination is the best by the criterion, among those that are not reserved; ties at random.

    `d` raises the determinant of E[zz'] most, `e` its smallest eigenvalue; `usage` takes the least used parts; `pair-poor` does so too, and among
    these the combination with the most pairs that met before. Subset spaces: combinations of exactly max_active modules.
    """

    kind: Literal["optimal"] = "optimal"
    criterion: Criterion = "d"
    require_connected: bool = False
    """A criterion is taken as it is: it is what is compared."""

    def obstacle(self, space: Space) -> BadInput | None:
        if (wrong := undefined(self.kind, space)) is not None:
            return wrong
        if space.slots == 1:
            return BadInput("Combinations of one constituent meet nothing, so none is better than another.")
        return super().obstacle(space)

    def pool(self, space: Space) -> Space:
        return space.exactly(space.max_active) if isinstance(space, SubsetSpace) else space

    def rows(self, space: Space, seed: int, key: Array, keep: Keep) -> Int[np.ndarray, "n slots"] | None:
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
                # A large space: fresh candidates each time. None of them is likely to have been taken.
                fresh = jax.random.fold_in(key, len(chosen))
                candidates = distinct_rows(pool, fresh, CANDIDATES, allowed)
                candidates = candidates[[row.tobytes() not in taken for row in candidates]]
            else:
                candidates = left
            if not len(candidates):
                raise BadInput(
                    f"Only {len(chosen)} combinations can be chosen, {length} were asked for.",
                    fix="ask for fewer, or reserve fewer",
                )
            scores = best(met, candidates)
            ties = np.nonzero(scores >= scores.max() - 1e-9 * max(1.0, abs(float(scores.max()))))[0]
            place = int(rng.choice(ties))
            row = candidates[place]
            chosen.append(row)
            taken.add(row.tobytes())
            if left is not None:
                left = np.delete(left, place, axis=0)
            met[np.ix_(row, row)] += 1
        return widened(np.array(chosen), space)


def _pairs(
    matrix: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]
) -> Float[np.ndarray, "n k k"]:
    """The entries of a matrix at the parts of each row."""
    return matrix[rows[:, :, None], rows[:, None, :]]


def d_optimal(met: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """By how much the logarithm of the determinant grows, up to its monotone form z' S^-1 z."""
    inverse = np.linalg.inv(met + RIDGE * np.eye(len(met)))
    return _pairs(inverse, rows).sum(axis=(1, 2))


def e_optimal(met: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """The smallest eigenvalue afterwards. Until all directions are met it is nothing, and the determinant decides."""
    if np.linalg.eigvalsh(met)[0] < 1e-9:
        return d_optimal(met, rows)
    after = np.repeat(met[None], len(rows), axis=0)
    number = np.arange(len(rows))[:, None, None]
    after[number, rows[:, :, None], rows[:, None, :]] += 1
    return np.linalg.eigvalsh(after)[:, 0]


def usage(met: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """Little used parts."""
    return -np.diag(met)[rows].sum(axis=1)


def pair_poor(met: Float[np.ndarray, "width width"], rows: Int[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """Little used parts, and among these combinations as few new pairs as possible."""
    new = (_pairs(met, rows) == 0).sum(axis=(1, 2)) / 2
    return usage(met, rows) * (1 + rows.shape[1] ** 2) - new


CRITERIA: dict[
    Criterion, Callable[[Float[np.ndarray, "width width"], Int[np.ndarray, "n k"]], Float[np.ndarray, " n"]]
] = {"d": d_optimal, "e": e_optimal, "usage": usage, "pair-poor": pair_poor}
