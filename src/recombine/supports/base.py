"""What training may see: the configuration of a support, and the drawn support."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from recombine.component import Component
from recombine.errors import BadInput
from recombine.spaces.base import Space

if TYPE_CHECKING:
    from recombine.supports.certificate import Certificate
    from recombine.supports.promise import Promise


class Sampler(eqx.Module):
    """Draws one training combination inside a compiled program."""

    @abc.abstractmethod
    def __call__(self, key: Array) -> Int[Array, " slots"]:
        """One combination, by the support's weights."""


class Support(abc.ABC):
    """A drawn support: which combinations are trained, how often, and which are kept for the common test."""

    def __init__(self, space: Space, reserved: Int[np.ndarray, "n slots"] | None = None) -> None:
        self.space = space
        self.reserved = np.empty((0, space.slots), np.int32) if reserved is None else reserved
        """Combinations that no support of this replicate trains on: one common test for all sizes of support."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """How many combinations can be trained on, exactly."""

    @property
    def structure(self) -> Any:
        """Arrays by which the support was made and the tasks of its family must be, too; None for most."""
        return None

    @property
    def most_parts(self) -> int:
        """The most constituents that a training combination has."""
        return self.space.slots

    @abc.abstractmethod
    def contains(self, rows: Int[np.ndarray, "n slots"]) -> Bool[np.ndarray, " n"]:
        """Which of these combinations may be trained on."""

    @abc.abstractmethod
    def sampler(self, pad_to: int | None = None) -> Sampler:
        """The compiled side of the support. `pad_to` gives listed supports of different length one shape."""

    @abc.abstractmethod
    def second_moment(self) -> Float[np.ndarray, "width width"]:
        """E[z z'] of the indicator vector of a training combination, exactly."""

    @abc.abstractmethod
    def covers(self, interactions: Int[np.ndarray, "n strength"]) -> Bool[np.ndarray, " n"]:
        """Which interactions of the space (sets of parts that can meet) occur in some training combination."""

    def certificate(self, strengths: tuple[int, ...] = (1, 2, 3)) -> Certificate:
        """What can be said of this support before any training."""
        from recombine.supports.certificate import certify

        return certify(self, strengths)


class SupportKind(Component, abc.ABC):
    """The configuration of a support."""

    @abc.abstractmethod
    def check(self, space: Space) -> None:
        """Raise BadInput if no such support exists for this space. Cheap: nothing is drawn."""

    def obstacle(self, space: Space) -> BadInput | None:
        """Why there is no support of this kind for this space, whatever number is asked for."""
        return None

    def require_possible(self, space: Space) -> None:
        """Raise the obstacle, if there is one, and say which kinds of support exist for the space instead."""
        error = self.obstacle(space)
        if error is not None:
            from recombine.supports.existing import instead

            fix = instead(space) if error.fix is None else f"{error.fix}; {instead(space)}"
            raise BadInput(error.message, fix=fix)

    def length(self, space: Space) -> int | None:
        """How many combinations a listed support has, known before it is drawn; None for a rule."""
        return None

    def promises(self, space: Space) -> Promise:
        """What the certificate of every support of this kind shows, known before it is drawn."""
        from recombine.supports.promise import Promise

        return Promise(size=self.length(space))

    @abc.abstractmethod
    def draw(self, space: Space, seed: int) -> Support:
        """The support of one replicate."""
