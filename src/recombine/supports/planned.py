"""A list as `recombine plan` makes it: every combination meets as much as it can of what was met least."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.supports.covering import Forbidden, cover
from recombine.supports.drawing import require
from recombine.supports.listed import Listed
from recombine.supports.random_list import NumberOrShare, widened
from recombine.supports.within import undefined


class Planned(NumberOrShare):
    """A covering design of `strength`, and beyond it what was met least; nothing that is reserved.

    The reserve is that of `random`. Subset spaces: combinations of exactly max_active modules, which meet most.
    """

    kind: Literal["planned"] = "planned"
    strength: PositiveInt = 2
    """How many constituents are to meet: 2 for pairs."""
    require_connected: bool = False
    """Few combinations may not reach every constituent; a plan is taken as it is."""

    def obstacle(self, space: Space) -> BadInput | None:
        if (wrong := undefined(self.kind, space)) is not None:
            return wrong
        if space.slots == 1:
            return BadInput("Combinations of one constituent meet nothing, so none is better than another.")
        if self.strength > space.slots:
            return BadInput(
                f"No {self.strength} constituents occur together in {space!r}.",
                fix=f"strength={space.slots} at most",
            )
        return super().obstacle(space)

    def pool(self, space: Space) -> Space:
        return space.exactly(space.max_active) if isinstance(space, SubsetSpace) else space

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        reserved, pool = self.reserved(space, seed), self.pool(space)
        parts = [space.constituents(row) for row in reserved]
        # Smaller combinations are not in the pool, and as parts of larger ones they are allowed.
        forbidden = [Forbidden(one) for one in parts if len(one) == pool.slots]
        length = self.length(space)
        found = cover(pool, strength=self.strength, number=length, forbidden=forbidden, seed=seed)
        rows = require(widened(found.rows, space), length, "combinations to train on")
        return Listed(space, rows, reserved=reserved)
