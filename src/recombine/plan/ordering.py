"""Order combinations by what they cover per cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from recombine.plan.costs import Costs
from recombine.spaces import ProductSpace, Space
from recombine.spaces.rows import Rows

MOST = 20_000_000
"""The most interactions, summed over combinations, that are compared with costs."""


def interactions_in(space: Space, rows: Rows, strength: int) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """All interactions of the rows: the index of the row and a code of the interaction, for each."""
    blocks = list(_blocks(space, rows, strength))
    return np.concatenate([owner for owner, _ in blocks]), np.concatenate([code for _, code in blocks])


def _blocks(space: Space, rows: Rows, strength: int) -> Iterator[tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]]:
    """The same, separately for each choice of slots."""
    for slots in itertools.combinations(range(space.slots), strength):
        held = np.nonzero(rows[:, slots[-1]] < space.width)[0]
        code = np.zeros(len(held), np.int64)
        for slot in slots:
            code = code * space.width + rows[held, slot]
        yield held, code


def weighable(space: Space, number: int, strength: int) -> bool:
    """Whether the interactions of `number` rows can be listed."""
    fits = space.width**strength < 2**62
    return fits and number * math.comb(space.slots, strength) <= MOST


def covered_by(space: Space, rows: Rows, strength: int) -> int:
    """The number of different interactions in these rows."""
    if isinstance(space, ProductSpace):
        # Here a slot is a factor: interactions of different slots differ, so each choice of slots is counted alone.
        return sum(len(np.unique(code)) for _, code in _blocks(space, rows, strength))
    return len(np.unique(interactions_in(space, rows, strength)[1]))


def ordered(
    space: Space,
    rows: Rows,
    costs: Costs,
    *,
    strength: int,
    already: Int[np.ndarray, "m slots"],
    budget: float = math.inf,
) -> Int[np.ndarray, " k"]:
    """The rows to take, in order. Each is the one that covers the most new interactions per cost.

    Rows that cover nothing new, and rows that no longer fit the budget, are left out.
    """
    last = already[-1] if len(already) else None
    left = np.ones(len(rows), bool)
    gain = _Gain(space, rows, strength, already)
    taken: list[int] = []
    while left.any():
        price = costs.following(rows, last)
        open_to = np.nonzero(left & (gain.of > 0) & (price <= budget + 1e-9))[0]
        if not len(open_to):
            break
        with np.errstate(divide="ignore"):
            worth = gain.of[open_to] / price[open_to]
        best = open_to[worth == worth.max()]
        chosen = int(best[np.argmax(gain.of[best])])
        budget -= float(price[chosen])
        left[chosen] = False
        gain.take(chosen)
        last = rows[chosen]
        taken.append(chosen)
    return np.array(taken, np.int64)


class _Gain:
    """The number of new interactions that each row would add, updated as rows are taken."""

    def __init__(self, space: Space, rows: Rows, strength: int, already: Int[np.ndarray, "m slots"]) -> None:
        owner, code = interactions_in(space, rows, strength)
        old = np.unique(interactions_in(space, already, strength)[1])
        new = ~np.isin(code, old)
        names, column = np.unique(code[new], return_inverse=True)
        shape = (len(names), len(rows))
        self._holders = sparse.csr_array((np.ones(len(column), np.int64), (column, owner[new])), shape=shape)
        self._held = sparse.csr_array(self._holders.T)
        self._open: Bool[np.ndarray, " names"] = np.ones(len(names), bool)
        self.of: Float[np.ndarray, " n"] = self._holders.sum(axis=0).astype(float)

    def take(self, row: int) -> None:
        held = self._held.indices[self._held.indptr[row] : self._held.indptr[row + 1]]
        newly = held[self._open[held]]
        self._open[newly] = False
        self.of -= self._holders[newly].sum(axis=0)
