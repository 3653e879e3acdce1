"""A list around one combination, the corner: all combinations that differ from it in few factors."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.spaces import ProductSpace, Space
from recombine.spaces.rows import Rows
from recombine.supports.certificate import Promise, whole
from recombine.supports.listed.kinds import FixedList


class Corner(FixedList):
    """All combinations that differ from a random one, the corner, in at most `reach` factors.

    Every value occurs in training, but with reach=1 every pair has at least one value of the corner. A combination that
    differs from the corner in three factors then differs from every training combination in at least two.
    """

    too_long = "choose a smaller reach"

    kind: Literal["corner"] = "corner"
    defined_on = (ProductSpace,)
    reach: NonNegativeInt = 1
    """The most factors that differ from the corner."""

    def obstacle(self, space: Space) -> BadInput | None:
        if not self.reach:
            return BadInput("reach=0 trains on a single combination.", fix="reach=1")
        if self.reach >= space.slots:
            return BadInput(
                f"Combinations have {space.slots} factors, so reach={self.reach} leaves nothing to test on.",
                fix=f"a reach below {space.slots}",
            )
        return None

    def length(self, space: Space) -> int:
        assert isinstance(space, ProductSpace)
        return sum(
            math.prod(space.levels[factor] - 1 for factor in factors)
            for number in range(self.reach + 1)
            for factors in itertools.combinations(range(space.slots), number)
        )

    def promises(self, space: Space) -> Promise:
        return whole(self.length(space))

    def rows(self, space: Space, seed: int) -> Rows:
        assert isinstance(space, ProductSpace)
        rng = np.random.default_rng([seed, 31])
        corner = [offset + int(rng.integers(level)) for offset, level in zip(space.offsets, space.levels, strict=True)]
        others = [
            [part for part in range(offset, offset + level) if part != own]
            for offset, level, own in zip(space.offsets, space.levels, corner, strict=True)
        ]
        rows = []
        for number in range(self.reach + 1):
            for factors in itertools.combinations(range(space.slots), number):
                for parts in itertools.product(*(others[factor] for factor in factors)):
                    changed = dict(zip(factors, parts, strict=True))
                    rows.append([changed.get(factor, own) for factor, own in enumerate(corner)])
        return rng.permutation(np.array(rows, np.int32))
