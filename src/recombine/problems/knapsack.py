"""A knapsack with several kinds of weight: the most valuable choice of items within all capacities.

A question is the value of each item, its weight of each kind, and the capacity of each kind. An answer is the number of
each item to take. The best answer is found in a list of all answers. Among equally good answers it is the one that takes
most of the first item, then of the second, and so on.
"""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field as Setting, model_validator

from recombine.problems.base import Problem, Repaired, Texts, Violations
from recombine.problems.checking import Answers, AnswerValues, ConstraintType, Questions, QuestionValues, Values
from recombine.problems.digits import Field, Numbers

BATCH = 64
"""Questions for which all answers are compared in one step."""
MAX_ANSWERS = 100_000
"""The largest number of answers that are listed."""
TIGHTNESS = (0.3, 0.6)
"""The range of a capacity, as a share of the weight of all items."""


class Quantities(NamedTuple):
    """The quantities of questions."""

    values: Float[Values, "n item"]
    weights: Float[Values, "n kind item"]
    capacities: Float[Values, "n kind"]


class Knapsack(Problem):
    """Weights are uniform, and values are drawn around the mean of an item's weights, so that no item is clearly best.

    The number of copies and the largest number of items are the same in all instances (easy constraints). Weights and
    capacities are in the question (the hard constraint). Its violation is the excess weight as a share of the capacity.

    With intermediate steps an answer gives, after each item, what is left of each capacity.
    """

    kind: Literal["knapsack"] = "knapsack"
    items: int = Setting(default=8, ge=2)
    copies: int = Setting(default=2, ge=1, le=9)
    """The number of copies of each item."""
    kinds: int = Setting(default=2, ge=1)
    """The number of kinds of weight, each with a capacity."""
    count: int = Setting(default=10, ge=1)
    """The largest number of items in an answer."""

    solver: Literal["listing"] = "listing"
    """How best answers are found: in a list of all answers, for many questions at once."""

    @model_validator(mode="after")
    def _small(self) -> Knapsack:
        if (self.copies + 1) ** self.items > MAX_ANSWERS:
            raise ValueError(
                f"{self.items} items with {self.copies} copies have {(self.copies + 1) ** self.items} answers, more "
                f"than {MAX_ANSWERS}: use fewer items or copies"
            )
        return self

    @property
    def tolerances(self) -> tuple[float, ...]:
        return (0.0, 0.01, 0.03, 0.1, 0.3)

    @property
    def types(self) -> tuple[ConstraintType, ...]:
        return (
            ConstraintType("bounds", self.items, True),
            ConstraintType("count", 1, True),
            ConstraintType("weight", self.kinds, False),
        )

    def question(self, rng: np.random.Generator) -> Float[np.ndarray, " question"]:
        weights = rng.integers(10, 100, (self.kinds, self.items))
        values = np.clip(np.rint(weights.mean(axis=0) + rng.uniform(-20, 20, self.items)), 10, 99)
        everything = self.copies * weights.sum(axis=1)
        capacities = np.rint(everything * rng.uniform(*TIGHTNESS, self.kinds))
        return np.concatenate([values, weights.ravel(), capacities]).astype(float)

    def _quantities(self, questions: QuestionValues) -> Quantities:
        first, last = self.items, self.items * (1 + self.kinds)
        values, weights, capacities = questions[:, :first], questions[:, first:last], questions[:, last:]
        return Quantities(values, weights.reshape(len(questions), self.kinds, self.items), capacities)

    def optima(self, questions: Questions) -> Answers:
        every = np.array(list(itertools.product(range(self.copies + 1), repeat=self.items)), dtype=float)
        every = every[every.sum(axis=1) <= self.count]
        rows = range(0, len(questions), BATCH)
        return every[np.concatenate([self._best(every, questions[row : row + BATCH]) for row in rows])]

    def _best(self, every: Float[np.ndarray, "choice item"], questions: Questions) -> Int[np.ndarray, " n"]:
        """The indices of the best answers; among equally good ones the last, which takes most of the first items."""
        given = self._quantities(questions)
        fits = (np.einsum("nki,ci->nkc", given.weights, every) <= given.capacities[:, :, None]).all(axis=1)
        worth = np.where(fits, given.values @ every.T, -1.0)
        return len(every) - 1 - worth[:, ::-1].argmax(axis=1)

    def violations(self, questions: QuestionValues, answers: AnswerValues, xp: ModuleType = np) -> Violations:
        given = self._quantities(questions)
        whole = xp.abs(answers - xp.rint(answers))
        load = xp.einsum("nki,ni->nk", given.weights, answers)
        excess = {
            "bounds": xp.maximum(xp.maximum(-answers, answers - self.copies), whole),
            "count": answers.sum(axis=1, keepdims=True) - self.count,
            "weight": load / given.capacities - 1,
        }
        return {name: xp.nan_to_num(xp.maximum(over, 0), nan=xp.inf, posinf=xp.inf) for name, over in excess.items()}

    def costs(self, questions: Questions, answers: Answers) -> Float[np.ndarray, " n"]:
        """Minus the value of the items that are taken."""
        return -(self._quantities(questions).values * answers).sum(axis=1)

    def repair(self, questions: Questions, answers: Answers) -> Repaired:
        """Repair greedily: clip numbers to their bounds and take missing ones as 0. Then, while a capacity is exceeded,
        remove one copy of the item with the least value for its share of the exceeded capacities."""
        given = self._quantities(questions)
        taken = np.clip(np.rint(np.nan_to_num(answers)), 0, self.copies)
        # The largest number of items is one more capacity, of which each item needs 1.
        needs = np.concatenate([given.weights, np.ones_like(given.weights[:, :1])], axis=1)
        room = np.concatenate([given.capacities, np.full_like(given.capacities[:, :1], self.count)], axis=1)
        while True:
            over = np.einsum("nki,ni->nk", needs, taken) > room
            rows = np.flatnonzero(over.any(axis=1))
            if not len(rows):
                return Repaired(taken, np.ones(len(taken), dtype=bool))
            burden = ((over / room)[:, :, None] * needs).sum(axis=1)[rows]
            worth = np.where(taken[rows] > 0, given.values[rows] / burden, np.inf)
            taken[rows, worth.argmin(axis=1)] -= 1

    def layout(self) -> Texts:
        items, kinds = range(1, self.items + 1), range(1, self.kinds + 1)
        # Enough digits for the weight of all items.
        digits = len(str(99 * self.items * self.copies))
        values = [Field(f"value of item {item}", 2, 0) for item in items]
        weights = [Field(f"weight {kind} of item {item}", 2, 0) for kind in kinds for item in items]
        capacities = [Field(f"capacity {kind}", digits, 0) for kind in kinds]
        taken = [Field(f"number of item {item}", 1, 0) for item in items]
        left = [Field(f"left of capacity {kind}", digits, 0, signed=True) for kind in kinds]
        return Texts(
            question=Numbers([*values, *weights, *capacities]),
            answer=Numbers(taken),
            steps=Numbers([field for number in taken for field in (number, *left)]),
            columns=tuple(range(0, self.items * (self.kinds + 1), self.kinds + 1)),
        )

    def steps(self, questions: Questions, answers: Answers) -> Float[np.ndarray, "n number"]:
        given = self._quantities(questions)
        used = np.cumsum(given.weights * answers[:, None], axis=2)
        left = given.capacities[:, :, None] - used
        return np.concatenate([answers[:, None], left], axis=1).transpose(0, 2, 1).reshape(len(answers), -1)
