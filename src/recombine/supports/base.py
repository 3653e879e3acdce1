"""The base classes of supports: the configuration `SupportKind` and the drawn `Support`."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from recombine import _html
from recombine._show import shorten
from recombine.component import Component, find, kinds
from recombine.errors import BadInput
from recombine.spaces.base import Space, in_words
from recombine.spaces.rows import Rows
from recombine.spaces.subspace import subspace

if TYPE_CHECKING:
    from recombine.supports.certificate import Certificate, Promise

FEW = 1000
"""The number of combinations to ask for where a kind takes a number and its default list would be too long."""


class Sampler(eqx.Module):
    """Draws one training combination inside a compiled program."""

    @abc.abstractmethod
    def __call__(self, key: Array) -> Int[Array, " slots"]:
        """One combination, drawn by the support's weights."""


class Support(abc.ABC):
    """A drawn support: which combinations are trained, how often, and which are reserved for the common test."""

    def __init__(self, space: Space, reserved: Int[np.ndarray, "n slots"] | None = None) -> None:
        self.space = space
        self.reserved = np.empty((0, space.slots), np.int32) if reserved is None else reserved
        """Combinations that no support of this replicate trains on: one common test for all sizes of support."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The exact number of combinations that can be trained on."""

    @property
    def structure(self) -> Any:
        """Arrays that determined this support and must also determine the tasks of its family; None for most."""
        return None

    @property
    def most_parts(self) -> int:
        """The most constituents that a training combination has."""
        return self.space.slots

    @abc.abstractmethod
    def contains(self, rows: Int[np.ndarray, "n slots"]) -> Bool[np.ndarray, " n"]:
        """Which of these combinations can be trained on."""

    @abc.abstractmethod
    def sampler(self, pad_to: int | None = None) -> Sampler:
        """Make the part of the support that draws inside a compiled program.

        Args:
            pad_to: The length to which lists are padded, so that lists of different length share one program. Rules
                ignore it.
        """

    @abc.abstractmethod
    def second_moment(self) -> Float[np.ndarray, "width width"]:
        """E[z z'] of the indicator vector z of a training combination, exactly.

        The diagonal has the share of training tasks with each constituent, and the other entries the share with each
        pair. A zero says that a constituent, or a pair, never occurs in training.
        """

    def parts_met(self) -> Float[np.ndarray, "width width"]:
        """Positive where two constituents met in training, for strata. Constituents that are no parts met all others."""
        return self.second_moment()

    @abc.abstractmethod
    def covers(self, interactions: Int[np.ndarray, "n strength"]) -> Bool[np.ndarray, " n"]:
        """Which interactions of the space occur in some training combination."""

    def certificate(self, strengths: tuple[int, ...] = (1, 2, 3)) -> Certificate:
        """Compute what is known about this support before any training.

        Args:
            strengths: The sizes of interactions whose coverage is computed: 2 for pairs of constituents.

        Returns:
            Completeness, connectedness, usage, coverage and spectrum.
        """
        from recombine.supports.certificate import certify

        return certify(self, strengths)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("training combinations", f"{in_words(self.size)} of {in_words(self.space.size)}"),
            ("space", shorten(self.space.title)),
        ]
        return [*facts, ("reserved for the test", str(len(self.reserved)))] if len(self.reserved) else facts

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(f'{name} {value}' for name, value in self._facts())}>"

    def _repr_html_(self) -> str:
        return _html.card(type(self).__name__, _html.table(("", ""), self._facts()))


class OnSubspaces(Support):
    """A rule: all combinations of some subspaces. Its memory does not depend on the number of combinations."""

    def __init__(self, space: Space, *groups: Iterable[int] | np.ndarray) -> None:
        """Each group of constituents gives a subspace. A constituent is in at most one group."""
        super().__init__(space)
        self.subspaces = [smaller for parts in groups if (smaller := subspace(space, parts)) is not None]
        """Each subspace, and the numbers of its constituents and of its pad in the whole space."""
        if len(self.subspaces) < len(groups):
            raise BadInput("A group of constituents has no combination.")

    @property
    def size(self) -> int:
        return sum(smaller.size for smaller, _ in self.subspaces)

    @property
    def most_parts(self) -> int:
        return max(smaller.slots for smaller, _ in self.subspaces)

    def contains(self, rows: Rows) -> Bool[np.ndarray, " n"]:
        return self.space.contains(rows) & self.covers(rows)

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        moment = np.zeros((self.space.width, self.space.width))
        for smaller, labels in self.subspaces:
            kept = labels[:-1]
            moment[np.ix_(kept, kept)] = smaller.second_moment() * (smaller.size / self.size)
        return moment

    def covers(self, interactions: Int[np.ndarray, "n strength"]) -> Bool[np.ndarray, " n"]:
        return np.any([np.isin(interactions, labels).all(axis=1) for _, labels in self.subspaces], axis=0)


class SupportKind(Component, abc.ABC):
    """The configuration of a support: which combinations training sees."""

    defined_on: ClassVar[tuple[type[Space], ...]] = (Space,)
    """The spaces for which this kind is defined."""

    def obstacle(self, space: Space) -> BadInput | None:
        """The reason why no support of this kind exists for a space of `defined_on`, whatever its number of combinations."""
        return None

    def prevented(self, space: Space) -> BadInput | None:
        """The obstacle, or that this kind is not defined for such a space."""
        if isinstance(space, self.defined_on):
            return self.obstacle(space)
        kinds_of_space = [known.model_fields["kind"].default for known in self.defined_on]
        return BadInput(
            f"{self.kind} is not defined for a space of kind {space.kind!r}.",
            fix=f"space={' or space='.join(kinds_of_space)}",
        )

    def check(self, space: Space) -> None:
        """Raise BadInput if no such support exists for this space, and name those that do. Nothing is drawn."""
        error = self.prevented(space)
        if error is not None:
            fix = instead(space) if error.fix is None else f"{error.fix}; {instead(space)}"
            raise BadInput(error.message, fix=fix)

    def length(self, space: Space) -> int | None:
        """The number of combinations of a listed support, known before it is drawn; None for a rule."""
        return None

    def promises(self, space: Space) -> Promise:
        """What the certificate of every support of this kind shows, known before it is drawn."""
        from recombine.supports.certificate import Promise

        return Promise(size=self.length(space))

    @abc.abstractmethod
    def draw(self, space: Space, seed: int) -> Support:
        """Draw the support of one replicate.

        Args:
            space: The space of all combinations.
            seed: The replicate's seed. Equal seeds give equal supports.

        Returns:
            The drawn support. `BadInput` if no such support exists for the space.
        """


def existing(space: Space) -> tuple[str, ...]:
    """The kinds of support that exist for this space with default settings, or with a number of combinations."""
    return tuple(kind for kind in kinds("supports") if _exists(kind, space))


def _exists(kind: str, space: Space) -> bool:
    component: Any = find("supports", kind)
    attempts: list[dict[str, Any]] = [{}]
    if "number" in component.model_fields:
        attempts.append({"number": min(FEW, max(1, space.size // 2))})
    for settings in attempts:
        try:
            # The obstacle comes first: `check` calls `existing` where there is one, without end.
            support = component(**settings)
            if support.prevented(space) is None:
                support.check(space)
                return True
        except ValueError:  # Some settings have no default, or the support does not exist with these.
            continue
    return False


def instead(space: Space) -> str:
    """The kinds that exist for this space, as the end of an error message."""
    names = existing(space)
    return f"supports that exist here: {', '.join(names)}" if names else "choose a larger space"
