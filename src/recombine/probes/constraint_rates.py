"""How many constraints the answers of a network satisfy, beside answers that need no network and after a repair."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import NonNegativeFloat, PositiveInt

from recombine.errors import BadInput
from recombine.families.problem import Problem as ProblemFamily
from recombine.families.sequences import WrittenTeacher
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.graph_steps import Answer
from recombine.probes.tasks import over_tasks
from recombine.problems.base import Problem
from recombine.problems.checking import Check, ConstraintType
from recombine.problems.instances import Instances
from recombine.supports.listed import Listed
from recombine.training.prepare import Setting
from recombine.training.streams import Stream

COLUMNS = ("answers", "tolerance", "constraints", "rate")

BATCH = 128
"""Instances that are answered at a time."""

EASY, BOX, BOUNDS, HARD, TOTAL, EVERY = "easy", "box", "bounds", "hard", "total", "every"
"""Constraints that ask the same of every instance; those of them that are limits and no equations of balance; those that bound
one number of the answer; those that depend on what is asked; all; whether all of an instance hold at once."""
GROUPS = (EASY, BOX, BOUNDS, HARD, TOTAL, EVERY)


@dataclasses.dataclass(frozen=True)
class Scale:
    """By how much the right answers differ from their mean: what the error of numbers is measured in."""

    spread: Float[np.ndarray, " answer"]

    @classmethod
    def of(cls, problem: Problem, training: Instances) -> Scale:
        """Of training answers. Where they hardly differ, the last digit counts instead."""
        apart = np.abs(training.answers - training.answers.mean(axis=0)).mean(axis=0)
        return cls(np.maximum(apart, problem.texts.answer.units))

    def error(
        self, right: Float[np.ndarray, "n answer"], answers: Float[np.ndarray, "n answer"]
    ) -> Float[np.ndarray, " n"]:
        """How far each answer is from the right one: mean over its numbers, 1 for the mean where all of them differ. NaN
        where a number is none."""
        return (np.abs(answers - right) / self.spread).mean(axis=1)


class ConstraintRates(Measurement):
    """Held-out instances answered by the network itself: which constraints hold, at every tolerance of the problem. For `problem`.

    The answer that is the mean of training, the one to the nearest training question, and all of these after the problem's
    repair are held against the same constraints. The rates of hard constraints and of all are also stated for those instances
    alone that the network answers by numbers throughout (`_formed`).
    """

    kind: Literal["constraint-rates"] = "constraint-rates"
    instances: PositiveInt = 256
    """The most instances of each side, trained and held out, that are answered."""
    tolerance: NonNegativeFloat | None = None
    """At which the few rates are stated that stand beside a run: else the strictest of the problem, at which its digits are
    fine enough for the best answers. The table has all tolerances."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, support, teacher = setting.config, setting.support, setting.teacher
        family = config.family
        if not (isinstance(family, ProblemFamily) and isinstance(teacher, WrittenTeacher)):
            raise BadInput(
                f"Constraints are those of problems; the answers of {family.kind!r} have none.",
                fix="family=problem",
            )
        assert isinstance(support, Listed)
        problem = family.problem
        rows = {
            "in": setting.regions.require("trained", self.instances),
            "held_out": setting.regions.require("held_out", self.instances, "test"),
        }
        said = {
            where: over_tasks(Answer(config.objective), setting, network, own, Stream.TEST, where, BATCH)[
                "said"
            ]
            for where, own in rows.items()
        }
        given = {
            where: family.problem.read_answers(np.round(own).astype(np.int64), family.steps)
            for where, own in said.items()
        }
        training = written(family, teacher, np.asarray(support.rows)[:, 0])
        asked = {where: written(family, teacher, own[:, 0]) for where, own in rows.items()}
        return self._measured(problem, training, asked, given)

    def _measured(
        self,
        problem: Problem,
        training: Instances,
        asked: dict[str, Instances],
        given: dict[str, Float[np.ndarray, "n answer"]],
    ) -> Measured:
        scale, held_out = Scale.of(problem, training), asked["held_out"]
        tolerance = problem.tolerances[0] if self.tolerance is None else self.tolerance
        answers = {"network": given["held_out"]}
        answers |= {
            name: problem.baseline(name, training, held_out.questions) for name in ("mean", "nearest")
        }
        answers["right"] = held_out.answers
        usual = problem.baseline("mean", training, asked["in"].questions)
        formed = ~_malformed(given["held_out"])
        summary = {
            "share_box": box_share(problem),
            "malformed_in": float(_malformed(given["in"]).mean()),
            "error_in": _mean(scale.error(asked["in"].answers, given["in"])),
            "error_mean_in": _mean(scale.error(asked["in"].answers, usual)),
        }
        table: list[dict[str, Any]] = []
        for name, own in answers.items():
            made = {"": own}
            if name != "right":
                made["_repaired"] = problem.repair(held_out.questions, own).answers
            for after, these in made.items():
                check = problem.check(held_out, these)
                table += [
                    {
                        "answers": name + after,
                        "tolerance": float(tolerance),
                        "constraints": kind,
                        "rate": float(rate),
                    }
                    for kind, rates in rates_of(problem, check).items()
                    for tolerance, rate in zip(check.tolerances, rates, strict=True)
                ]
                at = problem.check(held_out, these, [tolerance])
                found = {kind: float(rates[0]) for kind, rates in rates_of(problem, at).items()}
                few = {kind: found[kind] for kind in GROUPS}
                few |= {"gap": at.gap, "feasible_gap": float(at.feasible_gap[0]), "malformed": at.malformed}
                summary |= {f"{kind}_{name}{after}": value for kind, value in few.items()}
                among = rates_among(problem, held_out, these, formed, tolerance)
                summary |= {f"{kind}_{name}{after}_formed": rate for kind, rate in among.items()}
            summary[f"error_{name}"] = _mean(scale.error(held_out.answers, own))
        return Measured(summary, {name: [row[name] for row in table] for name in COLUMNS})


def rates_of(problem: Problem, check: Check) -> dict[str, Float[np.ndarray, " tolerance"]]:
    """Rates of each type, and of types together."""
    groups = {
        EASY: [one for one in problem.types if one.easy],
        BOX: _box(problem),
        BOUNDS: [one for one in problem.types if one.name.endswith("bounds")],
        HARD: [one for one in problem.types if not one.easy],
    }
    together = {name: check.pooled(one.name for one in types) for name, types in groups.items()}
    return check.by_type | together | {TOTAL: check.total, EVERY: check.every}


def rates_among(
    problem: Problem,
    asked: Instances,
    answers: Float[np.ndarray, "n answer"],
    which: Bool[np.ndarray, " n"],
    tolerance: float,
) -> dict[str, float]:
    """The rates of hard constraints and of all in some of the instances; NaN where there is none of them."""
    if not which.any():
        return dict.fromkeys((HARD, TOTAL), float("nan"))
    own = Instances(
        asked.questions[which], asked.answers[which], asked.costs[which], asked.numbers[which], dropped=0
    )
    found = rates_of(problem, problem.check(own, answers[which], [tolerance]))
    return {kind: float(found[kind][0]) for kind in (HARD, TOTAL)}


def box_share(problem: Problem) -> float:
    """The share of a problem's constraints that are limits which are the same for every instance."""
    return sum(one.number for one in _box(problem)) / sum(one.number for one in problem.types)


def _box(problem: Problem) -> list[ConstraintType]:
    return [one for one in problem.types if one.easy and "balance" not in one.name]


def written(family: ProblemFamily, teacher: WrittenTeacher, numbers: Int[np.ndarray, " n"]) -> Instances:
    """Instances as their texts have them, the best answers rounded as written."""
    problem = family.problem
    questions = problem.texts.question.read(np.asarray(teacher.questions)[numbers])
    answers = problem.read_answers(np.asarray(teacher.answers)[numbers], family.steps)
    return Instances(questions, answers, problem.costs(questions, answers), np.asarray(numbers), dropped=0)


def _malformed(answers: Float[np.ndarray, "n answer"]) -> Bool[np.ndarray, " n"]:
    return np.asarray(~np.isfinite(answers).all(axis=1))


def _mean(values: Float[np.ndarray, " n"]) -> float:
    """Of those that are numbers."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
