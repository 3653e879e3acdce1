"""What every problem can do that has a known best answer and constraints that any answer can be held against."""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.component import Component
from recombine.errors import BadInput
from recombine.problems import baseline
from recombine.problems.baseline import Baseline
from recombine.problems.checking import Check, ConstraintType, Values, check
from recombine.problems.digits import Numbers
from recombine.problems.instances import Instances

Violations = dict[str, Float[Values, "instance _"]]
"""By how much each constraint of each type is violated: 0 where it holds, infinite where a number it needs is none."""


@dataclass(frozen=True)
class Repaired:
    """Answers that a solver has corrected."""

    answers: Float[np.ndarray, "instance answer"]
    """Those that could not be corrected are as they were."""
    corrected: Bool[np.ndarray, " instance"]


class Texts(NamedTuple):
    """How questions and answers are written."""

    question: Numbers
    answer: Numbers
    steps: Numbers
    """An answer with intermediate steps."""
    columns: tuple[int, ...]
    """Where among the numbers of `steps` those of the answer stand."""


class Problem(Component, abc.ABC):
    """Instances with best answers, the constraints on any answer, their text, and a repair.

    A question and an answer are vectors of numbers. Nothing here is trained and nothing is kept: who wants instances
    again asks again with the same seed, or stores the arrays.
    """

    text: Literal["digits", "pairs"] = "digits"
    """How numbers are written: digit by digit with separators, or, much shorter, two digits a token, no finer than the
    tolerances need, and without separators."""

    @property
    @abc.abstractmethod
    def tolerances(self) -> tuple[float, ...]:
        """At which rates are stated unless others are given. At the strictest, the text of a best answer still satisfies
        everything."""

    @property
    @abc.abstractmethod
    def types(self) -> tuple[ConstraintType, ...]:
        """The types of constraints, in the order of `violations`."""

    @abc.abstractmethod
    def question(self, rng: np.random.Generator) -> Float[np.ndarray, " question"]:
        """One question, of numbers as they are written."""

    @abc.abstractmethod
    def optima(self, questions: Float[np.ndarray, "n question"]) -> Float[np.ndarray, "n answer"]:
        """The best answers, by a known solver; NaN where it does not finish."""

    @abc.abstractmethod
    def violations(
        self, questions: Float[Values, "n question"], answers: Float[Values, "n answer"], xp: ModuleType = np
    ) -> Violations:
        """By how much answers violate each constraint. Numbers that could not be read are NaN. `xp` may be `jax.numpy`."""

    def satisfied(
        self,
        questions: Float[Values, "n question"],
        answers: Float[Values, "n answer"],
        tolerance: float,
        xp: ModuleType = np,
    ) -> Float[Values, " n"]:
        """The share of its constraints that each answer satisfies, as `check` counts them: where a number is none, all that need
        it are violated."""
        found = xp.concatenate(list(self.violations(questions, answers, xp).values()), axis=1)
        return (found <= tolerance).mean(axis=1)

    @abc.abstractmethod
    def costs(
        self, questions: Float[np.ndarray, "n question"], answers: Float[np.ndarray, "n answer"]
    ) -> Float[np.ndarray, " n"]:
        """What is to be as small as possible."""

    @abc.abstractmethod
    def repair(
        self, questions: Float[np.ndarray, "n question"], answers: Float[np.ndarray, "n answer"]
    ) -> Repaired:
        """Answers corrected by a solver that takes what it needs from them and no gold answer."""

    @abc.abstractmethod
    def layout(self) -> Texts:
        """How questions and answers are written; `texts` keeps it."""

    @abc.abstractmethod
    def steps(
        self, questions: Float[np.ndarray, "n question"], answers: Float[np.ndarray, "n answer"]
    ) -> Float[np.ndarray, "n number"]:
        """Answers with intermediate steps before and between their numbers."""

    @functools.cached_property
    def texts(self) -> Texts:
        """How questions and answers are written."""
        return self.layout()

    def instances(self, number: int, seed: int, start: int = 0) -> Instances:
        """Draws `start` to `start + number` of a seed, with their best answers.

        Each draw has random numbers of its own, so that parts can be made side by side and put `together`. Draws
        for which the solver does not finish are left out and counted.
        """
        if number < 1 or seed < 0 or start < 0:
            raise BadInput(
                f"Asked for {number} draws of seed {seed}, from draw {start} on.",
                fix="ask for at least one; a seed and a draw are at least 0",
            )
        draws = np.arange(start, start + number)
        asked = np.stack([self.question(np.random.default_rng([seed, int(draw)])) for draw in draws])
        answers = self.optima(asked)
        answered = np.asarray(np.isfinite(answers).all(axis=1))
        return Instances(
            questions=asked[answered],
            answers=answers[answered],
            costs=self.costs(asked[answered], answers[answered]),
            numbers=draws[answered],
            dropped=int((~answered).sum()),
        )

    def check(
        self,
        instances: Instances,
        answers: Float[np.ndarray, "n answer"],
        tolerances: Sequence[float] | np.ndarray | None = None,
    ) -> Check:
        """The rates of answers to instances, at the problem's own tolerances unless others are given."""
        if not len(instances) or answers.shape != instances.answers.shape:
            raise BadInput(
                f"There are {len(instances)} instances with answers of {instances.answers.shape[1]} numbers, but "
                f"{len(answers)} answers of {answers.shape[1]}.",
                fix="give one answer to each instance, and at least one",
            )
        costs = self.costs(instances.questions, answers)
        gaps = (costs - instances.costs) / np.abs(instances.costs)
        violated = self.violations(instances.questions, answers)
        found = {name: np.asarray(over) for name, over in violated.items()}
        malformed = np.asarray(~np.isfinite(answers).all(axis=1))
        return check(found, gaps, malformed, self.tolerances if tolerances is None else tolerances)

    def baseline(
        self, name: Baseline, training: Instances, questions: Float[np.ndarray, "n question"]
    ) -> Float[np.ndarray, "n answer"]:
        """The answers of a baseline, rounded as a text would."""
        made = {"mean": baseline.mean, "nearest": baseline.nearest}[name](training, questions)
        return self.texts.answer.rounded(made)

    def write_questions(self, questions: Float[np.ndarray, "n question"]) -> Int[np.ndarray, "n token"]:
        """The texts of questions, without an end."""
        return self.texts.question.write(questions)[:, :-1]

    def write_answers(
        self,
        questions: Float[np.ndarray, "n question"],
        answers: Float[np.ndarray, "n answer"],
        steps: bool = False,
    ) -> Int[np.ndarray, "n token"]:
        """The texts of answers, with their intermediate steps if those are wanted."""
        if not steps:
            return self.texts.answer.write(answers)
        # Steps of what is written, not of what was rounded away.
        return self.texts.steps.write(self.steps(questions, self.texts.answer.rounded(answers)))

    def read_answers(
        self, tokens: Int[np.ndarray, "n token"], steps: bool = False
    ) -> Float[np.ndarray, "n answer"]:
        """The answers that texts give, NaN where they do not say a number. Steps are read over, never judged."""
        if not steps:
            return self.texts.answer.read(tokens)
        return self.texts.steps.read(tokens)[:, list(self.texts.columns)]
