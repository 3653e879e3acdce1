"""The base class of all spaces of combinations."""

from __future__ import annotations

import abc
import hashlib
import json
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from recombine import _html
from recombine._lazy import jax, jnp
from recombine._show import shorten
from recombine.component import Component
from recombine.errors import BadInput, did_you_mean

ENUMERATION_LIMIT = 200_000

Interactions = Int[np.ndarray, "number strength"]
"""Sets of `strength` constituents, one per row."""

REPR_LENGTH = 120
"""The most characters of a `repr` that lists all settings."""


def in_words(number: int) -> str:
    """A count for a message, in powers of ten when it is long: Python refuses to print very long integers."""
    digits = int(number.bit_length() * math.log10(2))
    return str(number) if digits < 15 else f"about 10^{digits}"


class Space(Component, abc.ABC):
    """All combinations that a task can have.

    In arrays a combination is a *row*: the sorted numbers of its constituents. A row has one slot for each constituent
    that a combination can have; unused slots at its end hold `width`, the *pad*. The memory of a row depends on the
    number of constituents in a combination, not on the number of constituents in the space.
    """

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """The number of constituents: the length of a combination's vector."""

    @property
    @abc.abstractmethod
    def slots(self) -> int:
        """The most constituents that one combination has: the length of a row."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The exact number of combinations."""

    @abc.abstractmethod
    def sample(self, key: jax.Array) -> Int[jax.Array, " slots"]:
        """Draw one combination as a row, uniform over all combinations. Can be compiled and vmapped."""

    @abc.abstractmethod
    def contains(self, rows: Int[np.ndarray, "n slots"]) -> np.ndarray:
        """Which rows are combinations of this space."""

    @abc.abstractmethod
    def _rows(self) -> Int[np.ndarray, "size slots"]:
        """All combinations, those with fewer constituents first, in lexicographic order within one size."""

    @abc.abstractmethod
    def interactions(self, strength: int) -> int:
        """The number of interactions: sets of `strength` constituents that occur together in some combination."""

    def sample_interactions(self, rng: np.random.Generator, strength: int, number: int) -> Interactions:
        """Interactions of `strength` constituents, uniform over all of them."""
        self._require_strength(strength)
        every = self.list_interactions(strength)
        return every[rng.integers(len(every), size=number)]

    @abc.abstractmethod
    def list_interactions(self, strength: int) -> Int[np.ndarray, "n strength"]:
        """All interactions of `strength` constituents."""

    @abc.abstractmethod
    def second_moment(self) -> Float[np.ndarray, "width width"]:
        """E[z z'] of the indicator vector z of a uniform combination, exactly.

        The diagonal has the share of combinations with each constituent, and the other entries the share of combinations
        with each pair.
        """

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """A short description of the space, for tables."""

    @abc.abstractmethod
    def label(self, constituent: int) -> str:
        """The readable name of a constituent."""

    def enumerate(self, limit: int = ENUMERATION_LIMIT) -> Int[np.ndarray, "size slots"]:
        """List all combinations as rows, those with fewer constituents first. For small spaces only.

        Args:
            limit: The most combinations to list. A larger space raises `BadInput`.
        """
        if self.size > limit:
            raise BadInput(
                f"This space has {in_words(self.size)} combinations, more than the limit of {limit}.",
                fix="draw from it with sample(), or pass a larger limit",
            )
        return self._rows()

    def vector(
        self, row: Int[jax.Array, " slots"], coefficients: Float[jax.Array, " slots"] | None = None
    ) -> Float[jax.Array, " width"]:
        """The combination's vector: its coefficients (or ones) at its constituents, zeros elsewhere."""
        values = jnp.ones(row.shape) if coefficients is None else coefficients
        return jnp.zeros(self.width).at[row].add(values, mode="drop")

    def constituents(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> tuple[int, ...]:
        """The numbers of the constituents of one combination, without the pad."""
        return tuple(int(part) for part in row if part < self.width)

    def name(self, row: Sequence[int] | Int[np.ndarray, " slots"]) -> str:
        """A readable name of one combination."""
        return " + ".join(self.label(part) for part in self.constituents(row))

    def row(self, constituents: Sequence[int | str]) -> Int[np.ndarray, " slots"]:
        """Make the row of one combination.

        Args:
            constituents: The numbers of the constituents in any order, or their names (see `numbered`).

        Returns:
            The sorted numbers, with the pad at the end. `BadInput` if the space has no such combination.

        Example:
            ```python
            space = ProductSpace(factors={"colour": ["red", "blue"], "shape": ["cube", "ball"]})
            space.row((0, 3))  # red, ball
            space.row(("red", "ball"))  # the same
            ```
        """
        parts = sorted(self.numbered(constituents))
        row = np.full(self.slots, self.width, dtype=np.int32)
        # The pad's number is refused here: inside a row it would look like the end of the row.
        fits = len(parts) <= self.slots and all(0 <= part < self.width for part in parts)
        if fits:
            row[: len(parts)] = parts
        if not fits or not self.contains(row[None])[0]:
            raise BadInput(f"{tuple(parts)} is not a combination of {self!r}.")
        return row

    def numbered(self, constituents: Sequence[int | str]) -> list[int]:
        """The numbers of constituents that are given by number or by name.

        A whole number is always the number of a constituent, and a string is always a name, also where it looks like a
        number. In one combination all constituents are numbers or all are names. The name of a constituent is its
        `label`; a product space also takes the values alone, in the order of its factors.
        """
        names = [part for part in constituents if isinstance(part, str)]
        if not names:
            return [int(part) for part in constituents]
        if len(names) < len(constituents):
            raise BadInput(
                f"The combination {tuple(constituents)!r} mixes numbers and names.",
                fix="give all constituents by number, or all by name",
            )
        return self._named(names)

    def _named(self, names: Sequence[str]) -> list[int]:
        """The numbers of constituents that are given by their labels."""
        known = {self.label(part): part for part in range(self.width)}
        for name in names:
            if name not in known:
                raise BadInput(
                    f"The space has no constituent called {name!r}.", fix=did_you_mean(name, list(known)[:50])
                )
        return [known[name] for name in names]

    def _require_strength(self, strength: int) -> None:
        if strength < 1 or not self.interactions(strength):
            raise BadInput(f"No {strength} constituents occur together in {self!r}.", fix=f"choose 1..{self.slots}")

    def __repr__(self) -> str:
        name, text = type(self).__name__, super().__repr__()
        if len(text) <= REPR_LENGTH:
            return text
        # Static fields identify compiled programs by their repr, so a shortened repr carries a digest.
        meaning = json.dumps(self.meaning(), sort_keys=True).encode()
        digest = hashlib.blake2b(meaning, digest_size=4).hexdigest()
        return f"<{name} {digest}: {shorten(self.title)}, {in_words(self.size)} combinations>"

    def _repr_html_(self) -> str:
        rows = [
            ("combinations", in_words(self.size)),
            ("constituents", self.width),
            ("constituents in one combination", f"up to {self.slots}"),
        ]
        return _html.card(f"{type(self).__name__}: {shorten(self.title)}", _html.table(("", ""), rows))
