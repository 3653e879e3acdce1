"""A list as `recombine plan` makes it: each combination covers as many of the least covered interactions as it can."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.spaces import Space, SubsetSpace
from recombine.spaces.subspace import WITH_SUBSPACES
from recombine.supports.covering import Forbidden, cover
from recombine.supports.listed import Listed
from recombine.supports.listed.drawing import require
from recombine.supports.listed.kinds import NumberOrShare, widened


class Planned(NumberOrShare):
    """A covering design of `strength`, continued with the least covered interactions, without reserved combinations.

    The reserve is that of `random`. In subset spaces combinations have exactly max_active modules, which cover most.
    """

    kind: Literal["planned"] = "planned"
    defined_on = WITH_SUBSPACES
    strength: PositiveInt = 2
    """The size of the interactions to cover: 2 for pairs."""
    require_connected: bool = False
    """By default the plan is not redrawn. A short one may not contain every constituent."""

    def obstacle(self, space: Space) -> BadInput | None:
        if space.slots == 1:
            return BadInput("Combinations of one constituent have no pairs, so none is better than another.")
        if self.strength > space.slots:
            return BadInput(
                f"No {self.strength} constituents occur together in {space!r}.", fix=f"strength={space.slots} at most"
            )
        return super().obstacle(space)

    def pool(self, space: Space) -> Space:
        return space.exactly(space.max_active) if isinstance(space, SubsetSpace) else space

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        reserved, pool = self.reserved(space, seed), self.pool(space)
        parts = [space.constituents(row) for row in reserved]
        # Smaller combinations are not in the pool; larger ones may contain them.
        forbidden = [Forbidden(present) for present in parts if len(present) == pool.slots]
        length = self.length(space)
        design = cover(pool, strength=self.strength, number=length, forbidden=forbidden, seed=seed)
        rows = require(widened(design.rows, space), length, "combinations to train on")
        return Listed(space, rows, reserved=reserved)
