"""A list of combinations that you give, with weights if you like."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Discriminator, Field, NonNegativeInt, PositiveFloat, Tag, model_validator

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.rows import Rows
from recombine.supports.listed import Listed
from recombine.supports.listed.kinds import FixedList, with_reserve

Constituent = Annotated[
    Annotated[NonNegativeInt, Tag("number")] | Annotated[str, Tag("name")],
    Discriminator(lambda value: "name" if isinstance(value, str) else "number"),
]


class Given(FixedList):
    """Trains on these combinations.

    A whole number is always the number of a constituent. A string is always a name, also where it looks like a number:
    in `ProductSpace(factors={"colour": ["red", "blue"], "shape": 3})` the combination `("red", "0")` is red with shape
    0, which is `(0, 2)` in numbers. Names are the values in the order of the factors, or `factor=value` in any order.
    The constituents of one combination are all numbers or all names.

    Example:
        ```python
        Given(combinations=[(0, 1), (1, 2), (2,)])  # modules of a subset space
        Given(combinations=[("red", "cube"), ("blue", "ball")])  # values of a product space
        ```
    """

    kind: Literal["given"] = "given"
    combinations: tuple[tuple[Constituent, ...], ...] = Field(min_length=1)
    """The combinations: numbers of constituents in any order, or names of values in the order of the factors."""
    weights: tuple[PositiveFloat, ...] | None = None
    """How often each combination is drawn, relative to the others. Equally often by default."""

    @model_validator(mode="after")
    def _fit_together(self) -> Given:
        if self.weights is not None and len(self.weights) != len(self.combinations):
            raise ValueError(f"{len(self.weights)} weights were given for {len(self.combinations)} combinations")
        return self

    def length(self, space: Space) -> int:
        return len(self.combinations)

    def check(self, space: Space) -> None:
        self.rows(space, 0)
        super().check(space)

    def rows(self, space: Space, seed: int) -> Rows:
        try:
            rows = np.stack([space.row(combination) for combination in self.combinations])
        except BadInput as error:
            fix = error.fix or f"constituents are numbered 0..{space.width - 1}; {space.title}"
            raise BadInput(error.message, fix=fix) from None
        _, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
        if (count > 1).any():
            twice = rows[first[count > 1][0]]
            raise BadInput(f"{space.name(twice)} is given twice.", fix="give it once, with a larger weight")
        return rows

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        # Equal weights are written out: lists with and without weights then share one compiled program.
        weights = np.ones(len(self.combinations)) if self.weights is None else np.array(self.weights)
        return with_reserve(space, self.rows(space, seed), self.reserve, seed, weights)
