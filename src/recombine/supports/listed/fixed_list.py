"""The base class of kinds whose rule decides the training combinations. Only the rest can be reserved."""

from __future__ import annotations

import abc
from typing import ClassVar

import jax
import numpy as np
from pydantic import NonNegativeInt

from recombine.errors import BadInput
from recombine.spaces.base import Space, in_words
from recombine.spaces.rows import Rows, RowSet
from recombine.supports import Listed, SupportKind
from recombine.supports.listed.drawing import distinct_rows, require, seed_key
from recombine.supports.listed.random_list import check_memory


class FixedList(SupportKind, abc.ABC):
    """A list whose length follows from its rule."""

    too_long: ClassVar[str] = "choose a larger space"
    """The advice where the list leaves too few combinations to test on."""

    reserve: NonNegativeInt = 0
    """The number of combinations in the held-out test. With 0 it is every combination that is not trained on."""

    @abc.abstractmethod
    def length(self, space: Space) -> int:
        """The number of training combinations."""

    @abc.abstractmethod
    def rows(self, space: Space, seed: int) -> Rows:
        """The training combinations."""

    def check(self, space: Space) -> None:
        super().check(space)
        check_rest(space, self.length(space), self.reserve, self.too_long)

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        return with_reserve(space, self.rows(space, seed), self.reserve, seed)


def check_rest(space: Space, length: int, reserve: int, fix: str) -> None:
    """Raise BadInput if a list of this length leaves too few combinations to test on, or does not fit in memory."""
    left = space.size - length
    if left < max(2, reserve):
        raise BadInput(
            f"Training uses {in_words(length)} of {in_words(space.size)} combinations and leaves {in_words(left)}, but "
            f"validation and test need {max(2, reserve)}.",
            fix="reserve fewer" if left >= 2 else fix,
        )
    check_memory(length)


def with_reserve(space: Space, rows: Rows, reserve: int, seed: int, weights: np.ndarray | None = None) -> Listed:
    """The list as a support, with a reserve drawn from all other combinations."""
    trained = RowSet(rows)
    key = jax.random.fold_in(seed_key(seed), 0)
    reserved = distinct_rows(space, key, reserve, lambda rows: ~trained.contains(rows)) if reserve else None
    if reserved is not None:
        require(reserved, reserve, "combinations to reserve")
    return Listed(space, rows, weights, reserved)
