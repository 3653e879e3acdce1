"""A list of combinations with at least one of a few popular constituents: all of them, or a number of them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Array, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.spaces import ProductSpace, Space, SubsetSpace
from recombine.spaces.rows import SMALL, Rows
from recombine.spaces.subspace import WITH_SUBSPACES, interchangeable, relabelled, subspace, subspace_size
from recombine.supports import Listed, SupportKind
from recombine.supports.listed.drawing import Keep, distinct_rows, require, shuffled
from recombine.supports.listed.kinds import LONGEST, RandomList, check_rest, with_reserve


class Popular(RandomList):
    """Trains on combinations with a popular constituent. The replicate's seed picks the popular ones.

    In a product the popular values are spread over the factors, factors with many values first. If one factor had all
    popular values, its other values would never occur.
    """

    kind: Literal["popular"] = "popular"
    defined_on = WITH_SUBSPACES
    parts: PositiveInt = 2
    """The number of popular constituents."""
    number: PositiveInt | None = None
    """The number of training combinations, drawn at random. By default all combinations with a popular constituent are
    trained on, and the reserve has only combinations without one."""

    def obstacle(self, space: Space) -> BadInput | None:
        if sum(len(values) > 1 for values in interchangeable(space)) < 2 and isinstance(space, ProductSpace):
            return BadInput("Popular values must come from two factors, but fewer than two have several values.")
        if space.slots < 2:
            return BadInput("In combinations of one constituent, popular constituents never occur with others.")
        return super().obstacle(space)

    def _counts(self, space: Space) -> list[int]:
        """The number of popular modules, or of popular values of each factor."""
        # One value of each factor stays unpopular.
        most = [len(values) - 1 for values in interchangeable(space)]
        if self.parts > sum(most):
            raise BadInput(
                f"parts={self.parts} of {space.width} constituents cannot all be popular: some others are needed.",
                fix=f"choose 1..{sum(most)}",
            )
        counts = [0] * len(most)
        while sum(counts) < self.parts:
            for factor in sorted(range(len(most)), key=lambda factor: -most[factor]):
                if sum(counts) < self.parts and counts[factor] < most[factor]:
                    counts[factor] += 1
        return counts

    def choices(self, space: Space) -> int:
        """The number of combinations with a popular constituent, computed without listing them."""
        others = [values[count:] for values, count in zip(interchangeable(space), self._counts(space), strict=True)]
        return space.size - subspace_size(space, np.concatenate(others))

    def length(self, space: Space) -> int:
        return self.choices(space) if self.number is None else self.number

    def check(self, space: Space) -> None:
        SupportKind.check(self, space)
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
        picked = [rng.permutation(values)[:count] for values, count in zip(interchangeable(space), counts, strict=True)]
        return np.sort(np.concatenate(picked))

    def rows(self, space: Space, seed: int, key: Array, keep: Keep) -> Rows:
        popular, length = self.popular(space, seed), self.length(space)
        if self.choices(space) <= SMALL:
            rows = shuffled(holding(space, popular), key)
            rows = rows[keep(rows)][:length]
        else:
            rows = distinct_rows(space, key, length, lambda rows: np.isin(rows, popular).any(axis=1) & keep(rows))
        return require(rows, length, "combinations to train on")

    def draw(self, space: Space, seed: int) -> Listed:
        if self.number is not None:
            return super().draw(space, seed)
        self.check(space)
        return with_reserve(space, holding(space, self.popular(space, seed)), self.reserve, seed)


def holding(space: Space, popular: Int[np.ndarray, " parts"]) -> Rows:
    """All combinations with one of these constituents. Memory depends on their number, not on the space."""
    blocks = []
    # Each combination is listed with its first popular constituent.
    for index, part in enumerate(popular):
        free = np.setdiff1d(np.arange(space.width), popular[: index + 1])
        blocks.append(_with_part(space, int(part), free))
    return np.concatenate(blocks)


def _with_part(space: Space, part: int, free: Int[np.ndarray, " m"]) -> Rows:
    """All combinations of one constituent with free constituents."""
    if isinstance(space, ProductSpace):
        own = next(values for values in interchangeable(space) if part in values)
        smaller = subspace(space, np.append(np.setdiff1d(free, own), part))
        blocks = [] if smaller is None else [relabelled(smaller[0].enumerate(LONGEST), smaller[1], space.slots)]
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
