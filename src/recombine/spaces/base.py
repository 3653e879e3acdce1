"""What every space of combinations can do."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.component import Component
from recombine.errors import BadInput

ENUMERATION_LIMIT = 200_000


def in_words(number: int) -> str:
    """A count for a message. Python refuses to print very long integers, and nobody would read them."""
    digits = int(number.bit_length() * math.log10(2))
    return str(number) if digits < 15 else f"about 10^{digits}"


class Space(Component, abc.ABC):
    """All combinations that a task may have.

    In arrays a combination is a *row*: the sorted numbers of its constituents, padded at the end with
    `width`, which is the number of no constituent. Rows cost memory by the number of parts that a
    combination has, not by the number of parts that there are.
    """

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """How many constituents there are: the length of a combination's vector."""

    @property
    @abc.abstractmethod
    def slots(self) -> int:
        """The most constituents that one combination has: the length of a row."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """How many combinations there are, exactly."""

    @abc.abstractmethod
    def sample(self, key: Array) -> Int[Array, " slots"]:
        """One combination, uniform over all combinations. Can be compiled and vmapped."""

    @abc.abstractmethod
    def contains(self, rows: Int[np.ndarray, "n slots"]) -> np.ndarray:
        """Which rows are combinations of this space."""

    @abc.abstractmethod
    def _rows(self) -> Int[np.ndarray, "size slots"]:
        """All combinations, smaller ones first, those of one size in lexicographic order."""

    @abc.abstractmethod
    def interactions(self, strength: int) -> int:
        """How many sets of `strength` constituents occur together in some combination of the space."""

    @abc.abstractmethod
    def sample_interactions(
        self, rng: np.random.Generator, strength: int, number: int
    ) -> Int[np.ndarray, "number strength"]:
        """Sets of `strength` constituents that can occur together, uniform over all such sets."""

    @abc.abstractmethod
    def list_interactions(self, strength: int) -> Int[np.ndarray, "n strength"]:
        """All sets of `strength` constituents that can occur together."""

    @abc.abstractmethod
    def second_moment(self) -> Float[np.ndarray, "width width"]:
        """E[z z'] of the indicator vector of a uniform combination, exactly."""

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """The space in a few words, for tables."""

    @abc.abstractmethod
    def label(self, constituent: int) -> str:
        """The readable name of a constituent."""

    def enumerate(self, limit: int = ENUMERATION_LIMIT) -> Int[np.ndarray, "size slots"]:
        """All combinations as rows. Only for small spaces, and only when asked for."""
        if self.size > limit:
            raise BadInput(
                f"This space has {in_words(self.size)} combinations, more than the {limit} that may be listed.",
                fix="draw from it with sample(), or pass a larger limit",
            )
        return self._rows()

    def vector(
        self, row: Int[Array, " slots"], coefficients: Float[Array, " slots"] | None = None
    ) -> Float[Array, " width"]:
        """The combination's vector: its coefficients (or ones) at its constituents, zeros elsewhere."""
        values = jnp.ones(row.shape) if coefficients is None else coefficients
        return jnp.zeros(self.width).at[row].add(values, mode="drop")

    def constituents(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> tuple[int, ...]:
        """The numbers of the constituents of one combination."""
        return tuple(int(part) for part in row if part < self.width)

    def name(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> str:
        """A readable name of one combination."""
        return " + ".join(self.label(part) for part in self.constituents(row))

    def row(self, constituents: Sequence[int]) -> Int[np.ndarray, " slots"]:
        """The row of a combination given by the numbers of its constituents."""
        parts = sorted(int(part) for part in constituents)
        made = np.full(self.slots, self.width, dtype=np.int32)
        # The pad's number is refused here: as a member of a row it would pass for the end of the row.
        fits = len(parts) <= self.slots and all(0 <= part < self.width for part in parts)
        if fits:
            made[: len(parts)] = parts
        if not fits or not self.contains(made[None])[0]:
            raise BadInput(f"{tuple(parts)} is not a combination of {self!r}.")
        return made

    def _require_strength(self, strength: int) -> None:
        if strength < 1 or not self.interactions(strength):
            raise BadInput(
                f"No {strength} constituents occur together in {self!r}.", fix=f"choose 1..{self.slots}"
            )
