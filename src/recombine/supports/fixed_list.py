"""What lists share that say themselves what is trained on, so that only the rest of the space can be reserved."""

from __future__ import annotations

import abc

import jax
import numpy as np
from jaxtyping import Int
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.spaces.base import Space, in_words
from recombine.supports.base import SupportKind
from recombine.supports.drawing import distinct_rows, require, seed_key
from recombine.supports.listed import Listed
from recombine.supports.random_list import check_memory
from recombine.supports.rows import RowSet


class FixedList(SupportKind, abc.ABC):
    """A list whose length follows from its rule."""

    reserve: NonNegativeInt = 0
    """So many of the combinations that are not trained on are the held-out test; all of them when it is 0."""

    @abc.abstractmethod
    def length(self, space: Space) -> int:
        """How many combinations are trained on."""

    @abc.abstractmethod
    def rows(self, space: Space, seed: int) -> Int[np.ndarray, "n slots"]:
        """The combinations that are trained on."""

    def check(self, space: Space) -> None:
        self.require_possible(space)
        check_rest(space, self.length(space), self.reserve)

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        return with_reserve(space, self.rows(space, seed), self.reserve, seed)


def check_rest(space: Space, length: int, reserve: int, fix: str = "choose a larger space") -> None:
    """Raise BadInput if so long a list leaves too little of the space, or does not fit in memory."""
    left = space.size - length
    if left < max(2, reserve):
        raise BadInput(
            f"{in_words(length)} of {in_words(space.size)} combinations are trained on, so {in_words(left)} are left, "
            f"but {max(2, reserve)} must be: to validate and to test on.",
            fix="reserve fewer" if left >= 2 else fix,
        )
    check_memory(length)


def with_reserve(
    space: Space,
    rows: Int[np.ndarray, "n slots"],
    reserve: int,
    seed: int,
    weights: np.ndarray | None = None,
) -> Listed:
    """The list as a support, with a reserve from what it leaves."""
    trained = RowSet(rows)
    key = jax.random.fold_in(seed_key(seed), 0)
    reserved = distinct_rows(space, key, reserve, lambda rows: ~trained.contains(rows)) if reserve else None
    if reserved is not None:
        require(reserved, reserve, "combinations to reserve")
    return Listed(space, rows, weights, reserved)
