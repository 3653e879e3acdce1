"""A list of combinations of your own, with weights if you like."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field, NonNegativeInt, PositiveFloat, model_validator

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.supports.fixed_list import FixedList, with_reserve
from recombine.supports.listed import Listed


class Given(FixedList):
    """Trains on these combinations, e.g. `Given(combinations=((0, 1), (1, 2), (2,)))`."""

    kind: Literal["given"] = "given"
    combinations: tuple[tuple[NonNegativeInt, ...], ...] = Field(min_length=1)
    """The combinations, each by the numbers of its constituents in any order."""
    weights: tuple[PositiveFloat, ...] | None = None
    """How often each is drawn, relative to the others; equally often when not given."""

    @model_validator(mode="after")
    def _fit_together(self) -> Given:
        if self.weights is not None and len(self.weights) != len(self.combinations):
            raise ValueError(
                f"{len(self.weights)} weights were given for {len(self.combinations)} combinations"
            )
        met: set[tuple[int, ...]] = set()
        for combination in self.combinations:
            parts = tuple(sorted(combination))
            if parts in met:
                raise ValueError(f"{combination} is given twice: give it once, with a larger weight")
            met.add(parts)
        return self

    def length(self, space: Space) -> int:
        return len(self.combinations)

    def check(self, space: Space) -> None:
        self.rows(space, 0)
        super().check(space)

    def rows(self, space: Space, seed: int) -> Int[np.ndarray, "n slots"]:
        try:
            return np.stack([space.row(combination) for combination in self.combinations])
        except BadInput as error:
            raise BadInput(
                error.message, fix=f"constituents are numbered 0..{space.width - 1}; {space.title}"
            ) from None

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        # Weights also where they are equal: lists with and without them then share one compiled program.
        weights = np.ones(len(self.combinations)) if self.weights is None else np.array(self.weights)
        return with_reserve(space, self.rows(space, seed), self.reserve, seed, weights)
