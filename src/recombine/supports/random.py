"""A random list of combinations, by number or by held-out share; complete and connected unless told otherwise."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import jax
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from recombine.errors import BadInput
from recombine.spaces.base import Space, in_words
from recombine.spaces.subset import SubsetSpace
from recombine.supports.base import SupportKind
from recombine.supports.drawing import distinct_rows, require, seed_key
from recombine.supports.listed import Listed
from recombine.supports.rows import RowSet, groups

LONGEST = 5_000_000
"""The longest list of combinations that is held in memory."""

DEFAULT_SHARE = 0.25
"""What is held out when neither a number nor a share is given: the literature's usual choice."""

TRIES = 1000


class Random(SupportKind):
    """`number` combinations, or all but a share of them, drawn without replacement."""

    kind: Literal["random"] = "random"
    number: PositiveInt | None = None
    """How many combinations are trained on."""
    held_out: float | None = Field(default=None, gt=0, lt=1)
    """The share of the space that is not trained on, instead of `number`; a quarter when neither is given."""
    sizes: Literal["up_to", "exactly"] = "up_to"
    """Subset spaces: combinations of up to max_active modules, or of exactly so many."""
    reserve: NonNegativeInt = 0
    """So many combinations are set aside first, the same for every `number`: one common held-out test."""
    require_connected: bool = True
    """Draw again until every constituent occurs and the graph of constituents that meet is connected."""

    @model_validator(mode="after")
    def _one_of(self) -> Random:
        if self.number is not None and self.held_out is not None:
            raise ValueError("give either number or held_out, not both")
        return self

    def _pool(self, space: Space) -> Space:
        if self.sizes == "up_to":
            return space
        if not isinstance(space, SubsetSpace):
            raise BadInput(
                "sizes=exactly is for subset spaces.", fix="leave it out: here all sizes are equal"
            )
        return space.exactly(space.max_active)

    def length(self, space: Space) -> int:
        if self.number is not None:
            return self.number
        share = DEFAULT_SHARE if self.held_out is None else self.held_out
        pool = self._pool(space).size
        # Fractions, as the size of a space need not fit a float; by way of text, so that 0.1 means a tenth.
        return pool - max(1, round(Fraction(str(share)) * pool))

    def check(self, space: Space) -> None:
        length, pool = self.length(space), self._pool(space)
        if length < 1:
            raise BadInput(
                f"held_out={self.held_out} of {in_words(pool.size)} combinations leaves none to train on.",
                fix="lower held_out",
            )
        # What is reserved may all come out of the pool.
        most = min(pool.size - min(self.reserve, pool.size), space.size - max(2, self.reserve))
        if length > most:
            raise BadInput(
                f"Training on {in_words(length)} of {in_words(space.size)} combinations with {self.reserve} "
                "reserved is not possible: at least two must be left, one to validate and one to test on.",
                fix=f"train on at most {in_words(most)} combinations" if most > 0 else "reserve fewer",
            )
        if length > LONGEST:
            raise BadInput(
                f"A list of {in_words(length)} training combinations would not fit in memory.",
                fix=f"give number=..., at most {LONGEST}",
            )
        if self.require_connected:
            _check_connected(space, length)

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        key = seed_key(seed)
        reserved = distinct_rows(space, jax.random.fold_in(key, 0), self.reserve)
        set_aside = RowSet(require(reserved, self.reserve, "combinations to reserve"))
        pool, length = self._pool(space), self.length(space)
        for attempt in range(TRIES):
            fresh = jax.random.fold_in(key, 1 + attempt)
            rows = distinct_rows(pool, fresh, length, lambda rows: ~set_aside.contains(rows))
            require(rows, length, "combinations to train on")
            if not self.require_connected or groups(rows, space.width) == 1:
                return Listed(space, rows, reserved=reserved)
        raise BadInput(
            f"None of {TRIES} random supports of {length} combinations was complete and connected.",
            fix="train on more combinations, or set require_connected=false",
        )


def _check_connected(space: Space, length: int) -> None:
    """Raise BadInput if so few combinations cannot link all constituents."""
    # The first combination brings its parts; each further one must share a part with those before it.
    linked = 1 + length * (space.slots - 1)
    if linked < space.width:
        fix = "set require_connected=false"
        if space.slots > 1:
            fix = f"train on at least {-(-(space.width - 1) // (space.slots - 1))} combinations, or {fix}"
        raise BadInput(
            f"{length} connected combinations hold at most {linked} constituents, so they cannot be complete: "
            f"the space has {space.width}.",
            fix=fix,
        )
