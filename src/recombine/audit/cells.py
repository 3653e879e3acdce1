"""A table of scores by combination: what an audit works on."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

NOTHING = -1
"""The constituent in a slot that is empty."""


@dataclasses.dataclass(frozen=True)
class Factor:
    """What a combination has a value of."""

    name: str
    values: tuple[str, ...]
    """The names of its constituents."""
    columns: tuple[str, ...]
    """The columns that hold it: one, or one for each role."""
    kind: Literal["value", "roles", "set"] = "value"
    """One value; one value in each of several roles that share their values; any number of values."""

    @property
    def places(self) -> tuple[str, ...]:
        """Where a value of it can stand: its roles, or the factor itself."""
        return self.columns if self.kind == "roles" else (self.name,)


@dataclasses.dataclass(frozen=True)
class Cells:
    """The rows of a table, put together by combination. Constituents are numbered through all factors."""

    factors: tuple[Factor, ...]
    parts: Int[np.ndarray, "cell slot"]
    """The constituents of each combination, `NOTHING` in empty slots. No combination is here twice."""
    place: tuple[str, ...]
    """What each slot is: the factor's name, the role's column; a set has several slots of one name, in ascending order."""
    scores: tuple[str, ...]
    """The names of the score columns."""
    binary: tuple[bool, ...]
    """Which of them are 0 or 1 only."""
    count: Int[np.ndarray, " cell"]
    """Scored rows of each combination; none for combinations that are only trained on."""
    mean: Float[np.ndarray, "cell score"]
    """Mean score; not a number where there is none."""
    spread: Float[np.ndarray, "cell score"]
    """The sum of squared deviations from the mean inside the cell."""
    trained: Bool[np.ndarray, " cell"] | None = None
    """Which combinations the model was trained on; None if nobody said."""
    notes: tuple[str, ...] = ()
    """What happened on reading: rows set aside and why, levels that are many, and so on. Sentences."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each constituent, with its factor: colour=red."""
        return tuple(f"{factor.name}={value}" for factor in self.factors for value in factor.values)

    @property
    def factor_of(self) -> Int[np.ndarray, " constituent"]:
        """The number of the factor of each constituent."""
        return np.repeat(np.arange(len(self.factors)), [len(factor.values) for factor in self.factors])

    @property
    def width(self) -> int:
        """How many constituents there are."""
        return sum(len(factor.values) for factor in self.factors)

    @property
    def evaluated(self) -> Bool[np.ndarray, " cell"]:
        """Which combinations have a score."""
        return self.count > 0

    def name(self, cell: int | np.integer) -> str:
        """A combination in words: red + cube; roles with their column: object=dog + object_2=cat."""
        values = [value for factor in self.factors for value in factor.values]
        several = {column for factor in self.factors if factor.kind == "roles" for column in factor.columns}
        told = (
            f"{place}={values[part]}" if place in several else values[part]
            for place, part in zip(self.place, self.parts[cell], strict=True)
            if part != NOTHING
        )
        return " + ".join(told)
