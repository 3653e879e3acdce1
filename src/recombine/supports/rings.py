"""A list of neighbouring pairs: constituents are on a ring in random order, and pairs within reach are trained."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import Rows
from recombine.spaces.subset import SubsetSpace
from recombine.spaces.subspace import interchangeable, undefined
from recombine.supports.certificate import Promise, whole
from recombine.supports.listed.fixed_list import FixedList


class Rings(FixedList):
    """Pairs at most `reach` apart on a ring, with all single modules where the space has them.

    In a product of two factors, value i of the first occurs with values i to i + `reach` of the second. Where one factor
    has more values, several of them share a position on the ring, as evenly as possible.
    """

    too_long: ClassVar[str] = "choose a smaller reach"

    kind: Literal["rings"] = "rings"
    reach: PositiveInt = 1
    """The largest distance on the ring between two constituents of a training combination."""

    def obstacle(self, space: Space) -> BadInput | None:
        wrong = undefined(self.kind, space)
        if wrong is not None:
            return wrong
        if space.slots != 2:
            parts = "factors" if isinstance(space, ProductSpace) else "modules"
            return BadInput(f"Rings consist of pairs, but combinations here have up to {space.slots} {parts}.")
        if space.size - len(_pairs(space, 1)) - _singles(space) < 2:
            return BadInput("The ring is too small: validation and test need one pair each that is not neighbouring.")
        return None

    def length(self, space: Space) -> int:
        return len(_pairs(space, self.reach)) + _singles(space)

    def promises(self, space: Space) -> Promise:
        return dataclasses.replace(whole(self.length(space)), balanced=True)

    def rows(self, space: Space, seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        order = np.concatenate([rng.permutation(parts) for parts in interchangeable(space)])
        rows = np.sort(order[_pairs(space, self.reach)], axis=1)
        single = np.arange(_singles(space))
        alone = np.stack([single, np.full_like(single, space.width)], axis=1)
        return np.concatenate([alone, rows]).astype(np.int32)


def _singles(space: Space) -> int:
    return space.modules if isinstance(space, SubsetSpace) and space.min_active == 1 else 0


def _pairs(space: Space, reach: int) -> Int[np.ndarray, "n two"]:
    """The pairs within reach, before the constituents are put in random order."""
    if isinstance(space, ProductSpace):
        first, second = space.levels
        around, partners = max(first, second), min(reach, second - 1) + 1
        position, apart = np.divmod(np.arange(around * partners), partners)
        left = position * first // around
        right = (position * second // around + apart) % second
        return np.unique(np.stack([left, first + right], axis=1), axis=0)
    most = min(reach, space.width // 2)
    position, apart = np.divmod(np.arange(space.width * most), max(1, most))
    pairs = np.stack([position, (position + apart + 1) % space.width], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)
