"""Trains on the first instances and holds out later ones, for families whose instances are ordered by depth."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Bool, Int
from pydantic import Field, NonNegativeInt, PositiveInt

from recombine.errors import BadInput
from recombine.spaces import InstanceSpace, Space
from recombine.supports import Listed, SupportKind

MOST_HELD_OUT = 5
"""At most one leading block in this many is held out."""


class LeadingInstances(SupportKind):
    """Trains on the leading `share` of all instances, except some that are held out. All later instances are held out.

    A block has neighbouring instances that differ only in names. A block is trained on or held out as a whole.
    """

    kind: Literal["leading-instances"] = "leading-instances"
    defined_on = (InstanceSpace,)
    share: float = Field(default=0.6, gt=0, lt=1)
    """The share of blocks that are leading."""
    block: PositiveInt = 4
    """The number of instances in a block."""
    reserve: NonNegativeInt = 64
    """The number of leading blocks that are held out, but at most a fifth of them."""

    def obstacle(self, space: Space) -> BadInput | None:
        assert isinstance(space, InstanceSpace)
        blocks, over = divmod(space.number, self.block)
        if over or not 2 <= round(self.share * blocks) < blocks:
            return BadInput(
                f"{space.number} instances cannot be divided into blocks of {self.block} with a leading share of {self.share}.",
                fix=f"space.number={max(4, blocks) * self.block}",
            )
        return None

    def _blocks(self, space: Space) -> tuple[int, int]:
        """The number of leading blocks, and the number of them that are held out."""
        leading = round(self.share * (space.size // self.block))
        return leading, min(self.reserve, max(1, leading // MOST_HELD_OUT))

    def leads(self, space: Space, rows: Int[np.ndarray, "row slots"]) -> Bool[np.ndarray, " row"]:
        """Which instances are in leading blocks, whether trained on or held out."""
        return rows[:, 0] < self.block * self._blocks(space)[0]

    def length(self, space: Space) -> int:
        self.check(space)
        leading, held_out = self._blocks(space)
        return (leading - held_out) * self.block

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        leading, held_out = self._blocks(space)
        order = np.random.default_rng([seed, 67]).permutation(leading)
        later = np.arange(leading, space.size // self.block)
        return Listed(
            space,
            self._rows(np.sort(order[held_out:])),
            reserved=self._rows(np.concatenate([np.sort(order[:held_out]), later])),
        )

    def _rows(self, blocks: Int[np.ndarray, " block"]) -> Int[np.ndarray, "row slots"]:
        return (self.block * blocks[:, None] + np.arange(self.block)).reshape(-1, 1).astype(np.int32)
