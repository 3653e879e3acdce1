"""A list around one combination: it, and what differs from it in few factors. All else is left out, at several distances."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np
from jaxtyping import Int
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.supports.fixed_list import FixedList, check_rest
from recombine.supports.promise import Promise, whole


class Corner(FixedList):
    """All combinations that differ from one drawn at random in at most `reach` factors.

    Every part is seen, and hardly a pair of parts but with the corner's: a combination that differs from the corner in
    three factors is two away from all that is trained on.
    """

    kind: Literal["corner"] = "corner"
    reach: NonNegativeInt = 1
    """Factors that may differ from the corner's."""

    def obstacle(self, space: Space) -> BadInput | None:
        if not isinstance(space, ProductSpace):
            return BadInput(
                "A corner is one of a product space.", fix="another support, or a space of factors"
            )
        if not self.reach:
            return BadInput("reach=0 trains on one combination alone.", fix="reach=1")
        if self.reach >= space.slots:
            return BadInput(
                f"Combinations have {space.slots} factors; with reach={self.reach} nothing is left to test on.",
                fix=f"a reach below {space.slots}",
            )
        return None

    def check(self, space: Space) -> None:
        self.require_possible(space)
        check_rest(space, self.length(space), self.reserve, fix="choose a smaller reach")

    def length(self, space: Space) -> int:
        assert isinstance(space, ProductSpace)
        return sum(
            math.prod(space.levels[factor] - 1 for factor in factors)
            for number in range(self.reach + 1)
            for factors in itertools.combinations(range(space.slots), number)
        )

    def promises(self, space: Space) -> Promise:
        return whole(self.length(space))

    def rows(self, space: Space, seed: int) -> Int[np.ndarray, "n slots"]:
        assert isinstance(space, ProductSpace)
        rng = np.random.default_rng([seed, 31])
        corner = [
            offset + int(rng.integers(level))
            for offset, level in zip(space.offsets, space.levels, strict=True)
        ]
        others = [
            [part for part in range(offset, offset + level) if part != own]
            for offset, level, own in zip(space.offsets, space.levels, corner, strict=True)
        ]
        found = []
        for number in range(self.reach + 1):
            for factors in itertools.combinations(range(space.slots), number):
                for parts in itertools.product(*(others[factor] for factor in factors)):
                    row = list(corner)
                    for factor, part in zip(factors, parts, strict=True):
                        row[factor] = part
                    found.append(row)
        return rng.permutation(np.array(found, np.int32))
