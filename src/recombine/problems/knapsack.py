"""A knapsack with several kinds of weight: the most valuable load of a few items that no capacity forbids.

A question is the value of each item, its weight of each kind, and the capacity of each kind; an answer is how many of
each item are taken. The best answer is that of HiGHS, by SciPy, or the best of all answers, one by one; of several
equally good ones it is the one that takes most of the first item, then of the second, and so on.
"""

from __future__ import annotations

import functools
import itertools
from types import ModuleType
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field as Setting
from pydantic import model_validator

from recombine.problems.base import Problem, Repaired, Texts, Violations
from recombine.problems.checking import ConstraintType, Values
from recombine.problems.digits import Field, Numbers

AT_ONCE = 64
"""Questions for which all answers are compared together."""
MOST_ANSWERS = 100_000
"""So many answers there may be: more than that, and ties could not be broken within the solver's precision."""
TIGHTNESS = (0.3, 0.6)
"""Between which shares of the weight of everything a capacity is."""


class Asked(NamedTuple):
    """Questions, taken apart."""

    values: Float[Values, "n item"]
    weights: Float[Values, "n kind item"]
    capacities: Float[Values, "n kind"]


class Knapsack(Problem):
    """Weights are drawn uniformly, values around the mean of an item's weights: the best items are not plain to see.

    How many of an item there are and how many can be taken together are the same in all instances (easy constraints);
    weights and capacities are told (the hard one). A weight violates its capacity by the share of it that is too much.

    With intermediate steps an answer says, after each item, what is left of each capacity.
    """

    kind: Literal["knapsack"] = "knapsack"
    items: int = Setting(default=8, ge=2)
    copies: int = Setting(default=2, ge=1, le=9)
    """How many there are of each item."""
    kinds: int = Setting(default=2, ge=1)
    """Kinds of weight, each with a capacity."""
    count: int = Setting(default=10, ge=1)
    """How many can be taken together."""

    solver: Literal["milp", "listing"] = "milp"
    """What finds the best answers: an integer program for each question, or a list of all answers for many questions at
    once, which is much faster where there are few."""

    @model_validator(mode="after")
    def _small(self) -> Knapsack:
        if (self.copies + 1) ** self.items > MOST_ANSWERS:
            raise ValueError(
                f"{self.items} items with {self.copies} copies have {(self.copies + 1) ** self.items} answers, more "
                f"than {MOST_ANSWERS}: take fewer"
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

    def _asked(self, questions: Float[Values, "n question"]) -> Asked:
        first, last = self.items, self.items * (1 + self.kinds)
        values, weights, capacities = questions[:, :first], questions[:, first:last], questions[:, last:]
        return Asked(values, weights.reshape(len(questions), self.kinds, self.items), capacities)

    def optima(self, questions: Float[np.ndarray, "n question"]) -> Float[np.ndarray, "n answer"]:
        if self.solver == "milp":
            return np.stack([self._optimum(question) for question in questions])
        every = np.array(list(itertools.product(range(self.copies + 1), repeat=self.items)), dtype=float)
        every = every[every.sum(axis=1) <= self.count]
        rows = range(0, len(questions), AT_ONCE)
        return every[np.concatenate([self._best(every, questions[row : row + AT_ONCE]) for row in rows])]

    def _best(
        self, every: Float[np.ndarray, "choice item"], questions: Float[np.ndarray, "n question"]
    ) -> Int[np.ndarray, " n"]:
        """The numbers of the best answers; of equally good ones the last, which takes most of the first items."""
        asked = self._asked(questions)
        fits = (np.einsum("nki,ci->nkc", asked.weights, every) <= asked.capacities[:, :, None]).all(axis=1)
        worth = np.where(fits, asked.values @ every.T, -1.0)
        return len(every) - 1 - worth[:, ::-1].argmax(axis=1)

    def _optimum(self, question: Float[np.ndarray, " question"]) -> Float[np.ndarray, " answer"]:
        from scipy.optimize import Bounds, milp

        asked = self._asked(question[None])
        # Values are whole numbers, so what breaks ties is worth less than 1 altogether.
        ranks = float(self.copies + 1) ** -np.arange(1, self.items + 1)
        found = milp(
            -(asked.values[0] + ranks),
            integrality=np.ones(self.items),
            bounds=Bounds(0, self.copies),
            constraints=(
                np.vstack([asked.weights[0], np.ones(self.items)]),
                -np.inf,
                np.append(asked.capacities[0], self.count),
            ),
            # Its presolve writes to the terminal, whatever it is told, and gains nothing on what is so small.
            options={"mip_rel_gap": 0, "presolve": False},
        )
        return np.rint(found.x) if found.success else np.full(self.items, np.nan)

    def violations(
        self, questions: Float[Values, "n question"], answers: Float[Values, "n answer"], xp: ModuleType = np
    ) -> Violations:
        asked = self._asked(questions)
        whole = xp.abs(answers - xp.rint(answers))
        load = xp.einsum("nki,ni->nk", asked.weights, answers)
        found = {
            "bounds": xp.maximum(xp.maximum(-answers, answers - self.copies), whole),
            "count": answers.sum(axis=1, keepdims=True) - self.count,
            "weight": load / asked.capacities - 1,
        }
        return {
            name: xp.nan_to_num(xp.maximum(over, 0), nan=xp.inf, posinf=xp.inf)
            for name, over in found.items()
        }

    def costs(
        self, questions: Float[np.ndarray, "n question"], answers: Float[np.ndarray, "n answer"]
    ) -> Float[np.ndarray, " n"]:
        """The value of what is taken, its sign turned."""
        return -(self._asked(questions).values * answers).sum(axis=1)

    def repair(
        self, questions: Float[np.ndarray, "n question"], answers: Float[np.ndarray, "n answer"]
    ) -> Repaired:
        """Greedy: what is out of bounds is clipped and what is not a number left out; then, until all fits, one of the
        item goes that is worth least for its share of the capacities that are exceeded."""
        asked = self._asked(questions)
        taken = np.clip(np.rint(np.nan_to_num(answers)), 0, self.copies)
        # That no more than so many are taken is one more capacity, of which each item needs one.
        needs = np.concatenate([asked.weights, np.ones_like(asked.weights[:, :1])], axis=1)
        room = np.concatenate([asked.capacities, np.full_like(asked.capacities[:, :1], self.count)], axis=1)
        while True:
            over = np.einsum("nki,ni->nk", needs, taken) > room
            rows = np.flatnonzero(over.any(axis=1))
            if not len(rows):
                return Repaired(taken, np.ones(len(taken), dtype=bool))
            burden = ((over / room)[:, :, None] * needs).sum(axis=1)[rows]
            worth = np.where(taken[rows] > 0, asked.values[rows] / burden, np.inf)
            taken[rows, worth.argmin(axis=1)] -= 1

    def layout(self) -> Texts:
        items, kinds = range(1, self.items + 1), range(1, self.kinds + 1)
        # As many digits as everything together may weigh.
        digits = len(str(99 * self.items * self.copies))
        values = [Field(f"value of item {item}", 2, 0) for item in items]
        weights = [Field(f"weight {kind} of item {item}", 2, 0) for kind in kinds for item in items]
        capacities = [Field(f"capacity {kind}", digits, 0) for kind in kinds]
        taken = [Field(f"number of item {item}", 1, 0) for item in items]
        left = [Field(f"left of capacity {kind}", digits, 0, signed=True) for kind in kinds]
        short = self.text == "pairs"
        numbers = functools.partial(Numbers, group=2 if short else 1, separated=not short)
        return Texts(
            question=numbers([*values, *weights, *capacities]),
            answer=numbers(taken),
            steps=numbers([field for one in taken for field in (one, *left)]),
            columns=tuple(range(0, self.items * (self.kinds + 1), self.kinds + 1)),
        )

    def steps(
        self, questions: Float[np.ndarray, "n question"], answers: Float[np.ndarray, "n answer"]
    ) -> Float[np.ndarray, "n number"]:
        asked = self._asked(questions)
        used = np.cumsum(asked.weights * answers[:, None], axis=2)
        left = asked.capacities[:, :, None] - used
        return np.concatenate([answers[:, None], left], axis=1).transpose(0, 2, 1).reshape(len(answers), -1)
