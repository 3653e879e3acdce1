"""A list of combinations that hold at least one of a few popular constituents: all of these, or a number of them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Array, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.drawing import SMALL, Keep, distinct_rows, require, shuffled
from recombine.supports.fixed_list import check_rest, with_reserve
from recombine.supports.listed import Listed
from recombine.supports.random_list import LONGEST, RandomList
from recombine.supports.within import alike, relabelled, size_within, undefined, within


class Popular(RandomList):
    """Trains on combinations with a popular constituent; the replicate's seed picks which are popular.

    In a product the popular values are spread over the factors, those with many values first, as the other values of a
    factor could not occur if all popular values were its own.
    """

    kind: Literal["popular"] = "popular"
    parts: PositiveInt = 2
    """How many constituents are popular."""
    number: PositiveInt | None = None
    """Train on so many of their combinations, drawn at random; on all of them when it is not given, and then the
    reserve has only combinations without a popular constituent."""

    def obstacle(self, space: Space) -> BadInput | None:
        wrong = undefined(self.kind, space)
        if wrong is not None:
            return wrong
        if sum(len(values) > 1 for values in alike(space)) < 2 and isinstance(space, ProductSpace):
            return BadInput("Popular values must come from two factors, but fewer have a choice of values.")
        if space.slots < 2:
            return BadInput("In combinations of one constituent the popular ones meet no others.")
        return super().obstacle(space)

    def _counts(self, space: Space) -> list[int]:
        """How many constituents are popular: of the modules, or of each factor's values."""
        # One value of each factor stays unpopular.
        most = [len(values) - 1 for values in alike(space)]
        if self.parts > sum(most):
            raise BadInput(
                f"parts={self.parts} of {space.width} constituents cannot be popular: others must be left.",
                fix=f"choose 1..{sum(most)}",
            )
        counts = [0] * len(most)
        while sum(counts) < self.parts:
            for factor in sorted(range(len(most)), key=lambda factor: -most[factor]):
                if sum(counts) < self.parts and counts[factor] < most[factor]:
                    counts[factor] += 1
        return counts

    def choices(self, space: Space) -> int:
        """How many combinations hold a popular constituent. All but those that hold none: nothing is listed."""
        others = [values[count:] for values, count in zip(alike(space), self._counts(space), strict=True)]
        return space.size - size_within(space, np.concatenate(others))

    def length(self, space: Space) -> int:
        return self.choices(space) if self.number is None else self.number

    def check(self, space: Space) -> None:
        self.require_possible(space)
        if self.require_connected and self.parts < 2 and isinstance(space, ProductSpace):
            raise BadInput(
                "With parts=1 the other values of the popular value's factor never occur.",
                fix="choose parts=2 or more, or set require_connected=false",
            )
        if self.number is None:
            check_rest(space, self.length(space), self.reserve, fix="choose fewer parts, or give number=...")
        else:
            super().check(space)

    def popular(self, space: Space, seed: int) -> Int[np.ndarray, " parts"]:
        """The popular constituents of a replicate."""
        rng = np.random.default_rng(seed)
        counts = self._counts(space)
        picked = [rng.permutation(values)[:count] for values, count in zip(alike(space), counts, strict=True)]
        return np.sort(np.concatenate(picked))

    def rows(self, space: Space, seed: int, key: Array, keep: Keep) -> Int[np.ndarray, "n slots"]:
        popular, length = self.popular(space, seed), self.length(space)
        if self.choices(space) <= SMALL:
            rows = shuffled(holding(space, popular), key)
            rows = rows[keep(rows)][:length]
        else:
            rows = distinct_rows(
                space, key, length, lambda rows: np.isin(rows, popular).any(axis=1) & keep(rows)
            )
        return require(rows, length, "combinations to train on")

    def draw(self, space: Space, seed: int) -> Listed:
        if self.number is not None:
            return super().draw(space, seed)
        self.check(space)
        return with_reserve(space, holding(space, self.popular(space, seed)), self.reserve, seed)


def holding(space: Space, popular: Int[np.ndarray, " parts"]) -> Int[np.ndarray, "n slots"]:
    """All combinations with one of these constituents. Costs memory by their number, not by that of the space."""
    blocks = []
    # Each combination is listed with the first popular constituent that it holds.
    for index, part in enumerate(popular):
        free = np.setdiff1d(np.arange(space.width), popular[: index + 1])
        blocks.append(_with_part(space, int(part), free))
    return np.concatenate(blocks)


def _with_part(space: Space, part: int, free: Int[np.ndarray, " m"]) -> Int[np.ndarray, "n slots"]:
    """All combinations of one part and free parts."""
    if isinstance(space, ProductSpace):
        own = next(values for values in alike(space) if part in values)
        found = within(space, np.append(np.setdiff1d(free, own), part))
        blocks = [] if found is None else [relabelled(found[0].enumerate(LONGEST), found[1], space.slots)]
        return np.concatenate([np.empty((0, space.slots), np.int32), *blocks])
    assert isinstance(space, SubsetSpace)
    alone = np.full((1 if space.min_active == 1 else 0, space.slots), space.width, np.int32)
    alone[:, :1] = part
    least, most = max(1, space.min_active - 1), min(space.max_active - 1, len(free))
    if least > most:
        return alone
    others = SubsetSpace(modules=len(free), max_active=most, min_active=least).enumerate(LONGEST)
    labels = np.array([*free, space.width], np.int32)
    rows = relabelled(others, labels, space.slots - 1)
    return np.concatenate([alone, np.sort(np.insert(rows, 0, part, axis=1), axis=1)])
