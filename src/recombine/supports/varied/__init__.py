"""A list as a published strategy collects it, where every change of a factor costs.

`strategies` has the strategies of Gao et al. (2024) by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import numpy as np
from jaxtyping import Int

from recombine.spaces import ProductSpace, Space
from recombine.spaces.rows import RowSet
from recombine.supports.covering.walk import walk
from recombine.supports.listed import Listed
from recombine.supports.listed.drawing import require
from recombine.supports.listed.kinds import NumberOrShare
from recombine.supports.varied.strategies import combinations, length

Strategy = Literal["diagonal", "L", "stair", "random", "walk"]


class Varied(NumberOrShare):
    """The first `number` combinations of a strategy that are not reserved. `walk` is the planner's strategy for this cost.

    The reserve is that of `random`. A strategy that ends starts again from another base.
    """

    kind: Literal["varied"] = "varied"
    defined_on = (ProductSpace,)
    strategy: Strategy = "stair"
    require_connected: bool = False
    """By default the list is not redrawn, because the strategy itself is compared."""

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        wanted = self.length(space)
        rows = np.array(list(itertools.islice(self.visited(space, seed), wanted)), np.int32)
        rows = require(rows.reshape(-1, space.slots), wanted, "combinations to train on")
        return Listed(space, rows, reserved=self.reserved(space, seed))

    def visited(self, space: Space, seed: int) -> Iterator[Int[np.ndarray, " slots"]]:
        """The combinations of the strategy in order, each once, without reserved ones."""
        assert isinstance(space, ProductSpace)
        set_aside = RowSet(self.reserved(space, seed))
        seen: set[bytes] = set()
        for row in _steps(space, self.strategy, seed):
            if row.tobytes() not in seen and not set_aside.contains(row[None])[0]:
                yield row
            seen.add(row.tobytes())
            if len(seen) == space.size:
                return

    def affordable(self, space: Space, seed: int, changes: int) -> int:
        """The number of combinations that a number of factor changes pays for. The first costs one change per factor."""
        spent = number = 0
        last: Int[np.ndarray, " slots"] | None = None
        for row in self.visited(space, seed):
            spent += space.slots if last is None else int((row != last).sum())
            if spent > changes:
                break
            last, number = row, number + 1
        return number


def _steps(space: ProductSpace, strategy: Strategy, seed: int) -> Iterator[Int[np.ndarray, " slots"]]:
    rounds = itertools.count(seed * 1000)
    if strategy != "walk":
        for round_seed in rounds:
            yield from combinations(strategy, space, seed=round_seed)
            if length(strategy, space) is None:
                return
    done = np.empty((0, space.slots), np.int32)
    for round_seed in rounds:
        start = next(combinations("random", space, seed=round_seed))
        # Each round covers all pairs anew, without visiting a combination twice.
        steps = [start, *walk(space, start, strength=2, already=done[:0], avoid=done, spread=True)]
        done = np.concatenate([done, np.array(steps, np.int32)])
        yield from (np.asarray(step, np.int32) for step in steps)
