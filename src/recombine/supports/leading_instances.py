"""The first instances are trained on, later ones are held out: for families whose instances are in the order of their depth."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Bool, Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.instances import InstanceSpace
from recombine.supports.base import SupportKind
from recombine.supports.listed import Listed

MOST_HELD_OUT = 5
"""At most one block in so many of the leading ones is held out."""


class LeadingInstances(SupportKind):
    """Trains on the leading `share` of all instances, but for some that are held out, as is all that comes later.

    Instances that are the same but for names stand next to each other in a block; blocks are trained on or held out whole.
    """

    kind: Literal["leading-instances"] = "leading-instances"
    share: float = Field(default=0.6, gt=0, lt=1)
    """The part of the blocks that lead."""
    block: PositiveInt = 4
    """Instances in a block."""
    reserve: PositiveInt = 64
    """The most leading blocks that are held out; at most a fifth of them."""

    def obstacle(self, space: Space) -> BadInput | None:
        if not isinstance(space, InstanceSpace):
            return BadInput(
                f"leading-instances is for instances, got a space of kind {space.kind!r}.",
                fix="space=instances",
            )
        blocks, over = divmod(space.number, self.block)
        if over or not 2 <= round(self.share * blocks) < blocks:
            return BadInput(
                f"{space.number} instances are no blocks of block={self.block} of which share={self.share} can lead.",
                fix=f"space.number={max(4, blocks) * self.block}",
            )
        return None

    def check(self, space: Space) -> None:
        self.require_possible(space)

    def _blocks(self, space: Space) -> tuple[int, int]:
        """How many blocks lead, and how many of them are held out."""
        leading = round(self.share * (space.size // self.block))
        return leading, min(self.reserve, max(1, leading // MOST_HELD_OUT))

    def leads(self, space: Space, rows: Int[np.ndarray, "row slots"]) -> Bool[np.ndarray, " row"]:
        """Which instances are in leading blocks, trained on or held out."""
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
