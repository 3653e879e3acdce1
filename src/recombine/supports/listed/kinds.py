"""The base classes of kinds that make lists: random ones, drawn until they are connected, and those that a rule decides."""

from __future__ import annotations

import abc
from fractions import Fraction
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Array, Int
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from recombine.errors import BadInput
from recombine.spaces.base import Space, in_words
from recombine.spaces.rows import Rows, RowSet, groups
from recombine.supports import Listed, SupportKind
from recombine.supports.certificate import Promise, whole
from recombine.supports.listed.drawing import Keep, distinct_rows, require, seed_key

LONGEST = 5_000_000
"""The longest list of combinations that is held in memory."""

DEFAULT_SHARE = 0.25
"""The share held out when neither a number nor a share is given: the usual choice in the literature."""

TRIES = 1000


class RandomList(SupportKind, abc.ABC):
    """A list drawn without replacement; complete and connected unless `require_connected` is false."""

    reserve: NonNegativeInt = 0
    """The number of combinations set aside first, the same for every `number`: one common held-out test."""
    require_connected: bool = True
    """Draw again until every constituent occurs and the graph of constituents that occur together is connected."""

    def pool(self, space: Space) -> Space:
        """The space that training combinations are drawn from."""
        return space

    def choices(self, space: Space) -> int:
        """The number of combinations that training can be drawn from."""
        return self.pool(space).size

    @abc.abstractmethod
    def length(self, space: Space) -> int:
        """The number of training combinations."""

    def obstacle(self, space: Space) -> BadInput | None:
        if space.size < 3:
            return BadInput(
                f"{space!r} has {space.size} combinations, but training, validation and test need one each."
            )
        if self.require_connected and space.slots == 1 and space.width > 1:
            return BadInput(
                "Combinations of one constituent never connect two constituents.", fix="set require_connected=false"
            )
        return None

    def check(self, space: Space) -> None:
        super().check(space)
        length = self.length(space)
        check_number(space, length, self.choices(space), self.reserve)
        if self.require_connected:
            check_connected(space, length, self.pool(space).slots)

    def promises(self, space: Space) -> Promise:
        length = self.length(space)
        return whole(length) if self.require_connected else Promise(size=length)

    def rows(self, space: Space, seed: int, key: Array, keep: Keep) -> Rows | None:
        """The training combinations of one attempt, or None if it failed. `seed` is the replicate's, `key` the attempt's."""
        pool, length = self.pool(space), self.length(space)
        rows = distinct_rows(pool, key, length, lambda rows: keep(widened(rows, space)))
        return require(widened(rows, space), length, "combinations to train on")

    def reserved(self, space: Space, seed: int) -> Rows:
        """The combinations that no support of this replicate trains on, whatever its kind and length."""
        rows = distinct_rows(space, jax.random.fold_in(seed_key(seed), 0), self.reserve)
        return require(rows, self.reserve, "combinations to reserve")

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        key = seed_key(seed)
        reserved = self.reserved(space, seed)
        set_aside = RowSet(reserved)
        for attempt in range(TRIES):
            fresh = jax.random.fold_in(key, 1 + attempt)
            rows = self.rows(space, seed, fresh, lambda rows: ~set_aside.contains(rows))
            if rows is None or (self.require_connected and groups(rows, space.width) > 1):
                continue
            return Listed(space, rows, reserved=reserved)
        promise = self.promises(space)
        wanted = [name for name in ("balanced", "complete", "connected") if getattr(promise, name)]
        raise BadInput(
            f"{TRIES} random supports of {promise.size} combinations were drawn, and none was {' and '.join(wanted)}.",
            fix="train on more combinations, or set require_connected=false",
        )


class NumberOrShare(RandomList, abc.ABC):
    """A random list given by its length, or by the share that it holds out."""

    number: PositiveInt | None = None
    """The number of training combinations."""
    held_out: float | None = Field(default=None, gt=0, lt=1)
    """The share of the space that is not trained on, instead of `number`. A quarter when neither is given."""

    @model_validator(mode="after")
    def _one_of(self) -> NumberOrShare:
        if self.number is not None and self.held_out is not None:
            raise ValueError("give either number or held_out, not both")
        return self

    def length(self, space: Space) -> int:
        if self.number is not None:
            return self.number
        share = DEFAULT_SHARE if self.held_out is None else self.held_out
        pool = self.pool(space).size
        # Fractions, because the size of a space may not fit a float; through text, so that 0.1 means one tenth.
        return pool - max(1, round(Fraction(str(share)) * pool))


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


def widened(rows: Int[np.ndarray, "n few"], space: Space) -> Rows:
    """Rows of a space with fewer slots as rows of this one."""
    missing = space.slots - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing)), constant_values=space.width) if missing else rows


def check_number(space: Space, length: int, choices: int, reserve: int) -> None:
    """Raise BadInput if `length` of `choices` combinations cannot be trained on when `reserve` are reserved first."""
    if length < 1:
        raise BadInput(
            f"None of {in_words(choices)} combinations is left to train on.",
            fix="lower held_out, or ask for more combinations",
        )
    # In the worst case the whole reserve is drawn from the choices.
    sure = choices - min(reserve, choices)
    most = min(sure, space.size - max(2, reserve))
    if length > most:
        why = "validation and test need at least one combination each"
        if most == sure and choices < space.size:
            why = f"only {in_words(choices)} can be trained on, and the reserve may take some of these"
        raise BadInput(
            f"Training on {in_words(length)} of {in_words(space.size)} combinations with {reserve} "
            f"reserved is not possible: {why}.",
            fix=f"train on at most {in_words(most)} combinations" if most > 0 else "reserve fewer",
        )
    check_memory(length)


def check_memory(length: int, fix: str = f"give number=..., at most {LONGEST}") -> None:
    """Raise BadInput if a list is too long."""
    if length > LONGEST:
        raise BadInput(f"A list of {in_words(length)} training combinations would not fit in memory.", fix=fix)


def check_connected(space: Space, length: int, slots: int) -> None:
    """Raise BadInput if `length` combinations of up to `slots` constituents cannot connect all constituents."""
    # The first combination adds all its constituents; each further one shares at least one with those before it.
    linked = 1 + length * (slots - 1)
    if linked < space.width:
        fix = "set require_connected=false"
        if slots > 1:
            fix = f"train on at least {-(-(space.width - 1) // (slots - 1))} combinations, or {fix}"
        raise BadInput(
            f"{length} connected combinations contain at most {linked} constituents, but the space has {space.width}.",
            fix=fix,
        )


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
