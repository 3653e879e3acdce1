"""The base of all problems: instances with known best answers, and constraints that any answer can be checked against."""

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
from recombine.problems.checking import Answers, AnswerValues, Check, ConstraintType, Questions, QuestionValues, Values
from recombine.problems.digits import Numbers

Violations = dict[str, Float[Values, "instance _"]]
"""The violation of each constraint, by type: 0 where it holds, infinite where a number that it needs is missing."""

Baseline = Literal["mean", "nearest"]
"""Answers without a model: the mean training answer, or the answer to the nearest training question."""

BATCH = 256
"""Questions that are compared with all training questions in one step."""


@dataclass(frozen=True)
class Instances:
    """Questions with their best answers, one row per instance."""

    questions: Float[np.ndarray, "instance question"]
    answers: Float[np.ndarray, "instance answer"]
    costs: Float[np.ndarray, " instance"]
    """The cost of each best answer; negative values where the problem maximises."""
    numbers: Int[np.ndarray, " instance"]
    """The index of each instance among the draws of the seed; draws without an answer are missing."""
    dropped: int
    """The number of draws that were left out because the solver found no answer."""

    def __len__(self) -> int:
        return len(self.questions)


def together(parts: Sequence[Instances]) -> Instances:
    """Join instances that were drawn in parts."""
    columns = ("questions", "answers", "costs", "numbers")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    return Instances(**joined, dropped=sum(part.dropped for part in parts))


@dataclass(frozen=True)
class Repaired:
    """Answers after a solver's correction."""

    answers: Float[np.ndarray, "instance answer"]
    """Answers that could not be corrected are unchanged."""
    corrected: Bool[np.ndarray, " instance"]


class Texts(NamedTuple):
    """How questions and answers are written as text."""

    question: Numbers
    answer: Numbers
    steps: Numbers
    """The text of an answer with intermediate steps."""
    columns: tuple[int, ...]
    """The positions of the answer's numbers among those of `steps`."""


class Problem(Component, abc.ABC):
    """A problem: instances with best answers, the constraints on any answer, their text, and a repair.

    Questions and answers are vectors of numbers. Instances follow from a seed and are not stored.

    Example:
        ```python
        problem = Knapsack(items=4, count=5)
        instances = problem.instances(100, seed=0)
        problem.check(instances, problem.baseline("mean", instances, instances.questions)).total
        ```
    """

    text: Literal["pairs"] = "pairs"
    """How numbers are written: two digits per token, without separators, and no more digits than the tolerances need."""

    @property
    @abc.abstractmethod
    def tolerances(self) -> tuple[float, ...]:
        """The default tolerances. At the strictest, the text of a best answer still satisfies every constraint."""

    @property
    @abc.abstractmethod
    def types(self) -> tuple[ConstraintType, ...]:
        """The types of constraints, in the order of `violations`."""

    @abc.abstractmethod
    def question(self, rng: np.random.Generator) -> Float[np.ndarray, " question"]:
        """Draw one question, rounded as its text."""

    @abc.abstractmethod
    def optima(self, questions: Questions) -> Answers:
        """The best answers, by a known solver; NaN where it does not converge."""

    @abc.abstractmethod
    def violations(self, questions: QuestionValues, answers: AnswerValues, xp: ModuleType = np) -> Violations:
        """The violation of each constraint, by type. Numbers of answers that could not be read are NaN.

        `xp` is `numpy`, or `jax.numpy` inside compiled code.
        """

    def satisfied(
        self, questions: QuestionValues, answers: AnswerValues, tolerance: float, xp: ModuleType = np
    ) -> Float[Values, " n"]:
        """The share of its constraints that each answer satisfies. A missing number violates all constraints that need it."""
        violations = xp.concatenate(list(self.violations(questions, answers, xp).values()), axis=1)
        return (violations <= tolerance).mean(axis=1)

    @abc.abstractmethod
    def costs(self, questions: Questions, answers: Answers) -> Float[np.ndarray, " n"]:
        """The cost of each answer, which the best answer minimises."""

    @abc.abstractmethod
    def repair(self, questions: Questions, answers: Answers) -> Repaired:
        """Correct answers with a solver that starts from them and does not know the best answer."""

    @abc.abstractmethod
    def layout(self) -> Texts:
        """Define how questions and answers are written; `texts` caches it."""

    @abc.abstractmethod
    def steps(self, questions: Questions, answers: Answers) -> Float[np.ndarray, "n number"]:
        """Add intermediate steps before and between the numbers of answers."""

    @functools.cached_property
    def texts(self) -> Texts:
        """How questions and answers are written."""
        return self.layout()

    def instances(self, number: int, seed: int, start: int = 0) -> Instances:
        """Draw instances with their best answers.

        Each draw has its own random numbers, so that parts can be computed in parallel and joined by `together`.

        Args:
            number: The number of draws. Those for which the solver does not converge are left out and counted.
            seed: The seed.
            start: The index of the first draw.
        """
        if number < 1 or seed < 0 or start < 0:
            raise BadInput(
                f"Cannot draw {number} instances with seed {seed}, starting at draw {start}.",
                fix="draw at least one; the seed and the first draw are 0 or more",
            )
        draws = np.arange(start, start + number)
        questions = np.stack([self.question(np.random.default_rng([seed, int(draw)])) for draw in draws])
        answers = self.optima(questions)
        solved = np.asarray(np.isfinite(answers).all(axis=1))
        return Instances(
            questions=questions[solved],
            answers=answers[solved],
            costs=self.costs(questions[solved], answers[solved]),
            numbers=draws[solved],
            dropped=int((~solved).sum()),
        )

    def check(
        self, instances: Instances, answers: Answers, tolerances: Sequence[float] | np.ndarray | None = None
    ) -> Check:
        """Compute the rates of satisfied constraints, and the gap to the optimum.

        A constraint is satisfied where its violation is at most the tolerance.

        Args:
            instances: The instances.
            answers: One answer per instance.
            tolerances: The problem's own by default.
        """
        if not len(instances) or answers.shape != instances.answers.shape:
            raise BadInput(
                f"There are {len(instances)} instances with answers of {instances.answers.shape[1]} numbers, but "
                f"{len(answers)} answers of {answers.shape[1]}.",
                fix="give one answer per instance, and at least one",
            )
        limits = np.asarray(self.tolerances if tolerances is None else tolerances, dtype=float)
        if limits.ndim != 1 or not len(limits) or not np.all(limits >= 0):
            raise BadInput(f"Tolerances must be a list of numbers, 0 or more; got {tolerances}.")
        gaps = (self.costs(instances.questions, answers) - instances.costs) / np.abs(instances.costs)
        malformed = np.asarray(~np.isfinite(answers).all(axis=1))
        violations = self.violations(instances.questions, answers)
        # A missing number violates its constraints at any tolerance.
        holds = {name: (values <= limits[:, None, None]) & np.isfinite(values) for name, values in violations.items()}
        each = np.concatenate(list(holds.values()), axis=2)
        every = np.asarray(each.all(axis=2))
        return Check(
            tolerances=limits,
            by_type={name: held.mean(axis=(1, 2)) for name, held in holds.items()},
            total=each.mean(axis=(1, 2)),
            every=every.mean(axis=1),
            gap=_mean(gaps, ~malformed),
            feasible_gap=np.array([_mean(gaps, feasible & ~malformed) for feasible in every]),
            malformed=float(malformed.mean()),
            numbers={name: values.shape[1] for name, values in violations.items()},
        )

    def baseline(self, name: Baseline, training: Instances, questions: Questions) -> Answers:
        """Compute the answers of a baseline, rounded as their text.

        Args:
            name: `mean`, the mean training answer; or `nearest`, the answer to the nearest training question, with each
                number of a question scaled by its spread.
            training: The training instances.
            questions: The questions to answer, each by one answer.
        """
        if not len(training):
            raise BadInput("A baseline needs training instances, got none.")
        mean = np.tile(training.answers.mean(axis=0), (len(questions), 1))
        return self.texts.answer.rounded(mean if name == "mean" else _nearest(training, questions))

    def write_questions(self, questions: Questions) -> Int[np.ndarray, "n token"]:
        """Write questions as text, without an end token."""
        return self.texts.question.write(questions)[:, :-1]

    def write_answers(self, questions: Questions, answers: Answers, steps: bool = False) -> Int[np.ndarray, "n token"]:
        """Write answers as text, with or without intermediate steps."""
        if not steps:
            return self.texts.answer.write(answers)
        # Steps follow from the rounded answers, so that they agree with the text.
        return self.texts.steps.write(self.steps(questions, self.texts.answer.rounded(answers)))

    def read_answers(self, tokens: Int[np.ndarray, "n token"], steps: bool = False) -> Answers:
        """Read answers from text; NaN where there is no number. Intermediate steps are skipped."""
        if not steps:
            return self.texts.answer.read(tokens)
        return self.texts.steps.read(tokens)[:, list(self.texts.columns)]


def _mean(values: Float[np.ndarray, " instance"], which: np.ndarray) -> float:
    return float(values[which].mean()) if which.any() else float("nan")


def _nearest(training: Instances, questions: Questions) -> Answers:
    """The answers to the nearest training questions."""
    spread = training.questions.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    known, scaled = training.questions / scale, questions / scale
    starts = range(0, len(scaled), BATCH)
    distances = (((scaled[row : row + BATCH, None] - known) ** 2).sum(axis=2) for row in starts)
    return training.answers[[best for batch in distances for best in batch.argmin(axis=1)]]
