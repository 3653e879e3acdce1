"""A list as a published strategy collects it, when every change of a factor is work."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import jax
import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.supports.drawing import Keep, distinct_rows, require, seed_key
from recombine.supports.listed import Listed
from recombine.supports.random_list import NumberOrShare
from recombine.supports.rows import RowSet
from recombine.supports.strategies import combinations, length
from recombine.supports.walk import walk

Strategy = Literal["diagonal", "L", "stair", "random", "walk"]


class Varied(NumberOrShare):
    """The first `number` combinations of a strategy that are not reserved; `walk` is the plan under this cost.

    The reserve is that of `random`. Strategies that come to an end begin again from another base.
    """

    kind: Literal["varied"] = "varied"
    strategy: Strategy = "stair"
    require_connected: bool = False
    """A strategy is taken as it is."""

    def obstacle(self, space: Space) -> BadInput | None:
        if not isinstance(space, ProductSpace):
            return BadInput("Strategies vary factors, and this space has none.", fix="use a product space")
        return super().obstacle(space)

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        assert isinstance(space, ProductSpace)
        reserved = distinct_rows(space, jax.random.fold_in(seed_key(seed), 0), self.reserve)
        set_aside = RowSet(require(reserved, self.reserve, "combinations to reserve"))
        wanted = self.length(space)
        found = visited(space, self.strategy, seed, lambda rows: ~set_aside.contains(rows))
        rows = np.array(list(itertools.islice(found, wanted)), np.int32).reshape(-1, space.slots)
        return Listed(space, require(rows, wanted, "combinations to train on"), reserved=reserved)


def visited(
    space: ProductSpace, strategy: Strategy, seed: int, keep: Keep
) -> Iterator[Int[np.ndarray, " slots"]]:
    """The combinations of a strategy in order, each once, those left out that may not be trained on."""
    seen: set[bytes] = set()
    for row in _visited(space, strategy, seed):
        if row.tobytes() not in seen and keep(row[None])[0]:
            yield row
        seen.add(row.tobytes())
        if len(seen) == space.size:
            return


def _visited(space: ProductSpace, strategy: Strategy, seed: int) -> Iterator[Int[np.ndarray, " slots"]]:
    rounds = itertools.count(seed * 1000)
    if strategy != "walk":
        for again in rounds:
            yield from combinations(strategy, space, seed=again)
            if length(strategy, space) is None:
                return
    done = np.empty((0, space.slots), np.int32)
    for again in rounds:
        start = next(combinations("random", space, seed=again))
        # Strength 2, and what is met again once all pairs were: each round begins to count afresh.
        steps = [start, *walk(space, start, strength=2, already=done[:0], avoid=done, spread=True)]
        done = np.concatenate([done, np.array(steps, np.int32)])
        yield from (np.asarray(step, np.int32) for step in steps)


def affordable(space: ProductSpace, strategy: Strategy, seed: int, changes: int, reserve: int) -> int:
    """How many combinations of a strategy so many changes of factors pay for; the first costs all factors."""
    reserved = distinct_rows(space, jax.random.fold_in(seed_key(seed), 0), reserve)
    set_aside = RowSet(reserved)
    spent = number = 0
    last: Int[np.ndarray, " slots"] | None = None
    for row in visited(space, strategy, seed, lambda rows: ~set_aside.contains(rows)):
        spent += space.slots if last is None else int((row != last).sum())
        if spent > changes:
            break
        last, number = row, number + 1
    return number
