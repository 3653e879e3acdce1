"""The share of constraints that a network's answers satisfy, beside baselines and after repair."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import NonNegativeFloat, PositiveInt

from recombine.errors import BadInput
from recombine.families.problem import Problem as ProblemFamily
from recombine.families.sequences import WrittenTeacher
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import AnswerTask, over_tasks
from recombine.problems.base import Instances, Problem
from recombine.problems.checking import Check, ConstraintType
from recombine.supports.listed import Listed
from recombine.training.prepare import Setting
from recombine.training.streams import Stream

Answers = Float[np.ndarray, "n answer"]

BATCH = 128
"""Instances in one compiled call."""

EASY, BOX, BOUNDS, HARD, TOTAL, EVERY = "easy", "box", "bounds", "hard", "total", "every"
"""Groups of constraints. `easy`: the same for every instance. `box`: the easy ones that are limits, not balance equations.
`bounds`: bounds on one number of the answer. `hard`: those that depend on the instance. `total`: all. `every`: whether all
constraints of an instance hold at once."""
GROUPS = (EASY, BOX, BOUNDS, HARD, TOTAL, EVERY)


class ConstraintRates(Measurement):
    """The share of constraints that hold in answers to held-out instances, at every tolerance. For the family `problem`.

    Baselines are the mean training answer (`mean`) and the answer to the nearest training question (`nearest`). All answers
    are also checked after the problem's repair (`_repaired`). The rates of hard constraints and of all constraints are also
    given for the instances that the network answers with numbers throughout (`_formed`).
    """

    kind: Literal["constraint-rates"] = "constraint-rates"
    instances: PositiveInt = 256
    """The largest number of trained, and of held-out instances."""
    tolerance: NonNegativeFloat | None = None
    """The tolerance of the summary's rates; the problem's strictest by default, which its digits can express. The table has
    all tolerances."""

    summary_names: ClassVar[tuple[str, ...]] = (
        "share_box",
        "malformed_in",
        "error_in",
        "error_mean_in",
        *(f"error_{answers}" for answers in ("network", "mean", "nearest", "right")),
        *(
            f"{kind}_{answers}{version}{formed}"
            for kind in (*GROUPS, "gap", "feasible_gap", "malformed")
            for answers in ("network", "mean", "nearest", "right")
            for version in ("", "_repaired")
            for formed in ("", "_formed")
        ),
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, support, teacher = setting.config, setting.support, setting.teacher
        family = config.family
        if not (isinstance(family, ProblemFamily) and isinstance(teacher, WrittenTeacher)):
            raise BadInput(
                f"constraint-rates needs constrained problems; this run has the family {family.kind!r}.",
                fix="family=problem",
            )
        assert isinstance(support, Listed)
        problem = family.problem
        rows = {
            "in": setting.regions.require("trained", self.instances),
            "held_out": setting.regions.require("held_out", self.instances, "test"),
        }
        compute = AnswerTask(config.objective)
        answers = {}
        for region, some in rows.items():
            tokens = over_tasks(compute, setting, network, some, Stream.TEST, region, BATCH)["answer"]
            answers[region] = problem.read_answers(np.round(tokens).astype(np.int64), family.steps)
        training = written(family, teacher, np.asarray(support.rows)[:, 0])
        instances = {region: written(family, teacher, some[:, 0]) for region, some in rows.items()}
        return self._measured(problem, training, instances, answers)

    def _measured(
        self, problem: Problem, training: Instances, instances: dict[str, Instances], given: dict[str, Answers]
    ) -> Measured:
        held_out = instances["held_out"]
        scale = answer_scale(problem, training)
        tolerance = problem.tolerances[0] if self.tolerance is None else self.tolerance
        answers = {"network": given["held_out"]}
        answers |= {name: problem.baseline(name, training, held_out.questions) for name in ("mean", "nearest")}
        answers["right"] = held_out.answers
        mean_answer = problem.baseline("mean", training, instances["in"].questions)
        formed = ~_malformed(given["held_out"])
        summary = {
            "share_box": box_share(problem),
            "malformed_in": float(_malformed(given["in"]).mean()),
            "error_in": mean_error(instances["in"], given["in"], scale),
            "error_mean_in": mean_error(instances["in"], mean_answer, scale),
        }
        table: list[dict[str, Any]] = []
        for name, given_answers in answers.items():
            versions = {"": given_answers}
            if name != "right":
                versions["_repaired"] = problem.repair(held_out.questions, given_answers).answers
            for suffix, version in versions.items():
                check = problem.check(held_out, version)
                table += [
                    {"answers": name + suffix, "tolerance": float(tolerance), "constraints": kind, "rate": float(rate)}
                    for kind, rates in rates_of(problem, check).items()
                    for tolerance, rate in zip(check.tolerances, rates, strict=True)
                ]
                strict = problem.check(held_out, version, [tolerance])
                rates_at = rates_of(problem, strict)
                values = {kind: float(rates_at[kind][0]) for kind in GROUPS}
                values |= {
                    "gap": strict.gap,
                    "feasible_gap": float(strict.feasible_gap[0]),
                    "malformed": strict.malformed,
                }
                summary |= {f"{kind}_{name}{suffix}": value for kind, value in values.items()}
                among = rates_among(problem, held_out, version, formed, tolerance)
                summary |= {f"{kind}_{name}{suffix}_formed": rate for kind, rate in among.items()}
            summary[f"error_{name}"] = mean_error(held_out, given_answers, scale)
        return Measured.from_records(summary, table)


def rates_of(problem: Problem, check: Check) -> dict[str, Float[np.ndarray, " tolerance"]]:
    """The share of satisfied constraints of each type and of each group, by tolerance."""
    groups = {
        EASY: [kind for kind in problem.types if kind.easy],
        BOX: _box(problem),
        BOUNDS: [kind for kind in problem.types if kind.name.endswith("bounds")],
        HARD: [kind for kind in problem.types if not kind.easy],
    }
    by_group = {name: check.pooled(kind.name for kind in kinds) for name, kinds in groups.items()}
    return check.by_type | by_group | {TOTAL: check.total, EVERY: check.every}


def rates_among(
    problem: Problem, instances: Instances, answers: Answers, chosen: Bool[np.ndarray, " n"], tolerance: float
) -> dict[str, float]:
    """The rates of hard constraints and of all constraints in the chosen instances; NaN if none is chosen."""
    if not chosen.any():
        return dict.fromkeys((HARD, TOTAL), float("nan"))
    parts = (instances.questions, instances.answers, instances.costs, instances.numbers)
    some = Instances(*(values[chosen] for values in parts), dropped=0)
    rates = rates_of(problem, problem.check(some, answers[chosen], [tolerance]))
    return {kind: float(rates[kind][0]) for kind in (HARD, TOTAL)}


def box_share(problem: Problem) -> float:
    """The share of a problem's constraints that are limits and the same for every instance."""
    return sum(kind.number for kind in _box(problem)) / sum(kind.number for kind in problem.types)


def _box(problem: Problem) -> list[ConstraintType]:
    return [kind for kind in problem.types if kind.easy and "balance" not in kind.name]


def written(family: ProblemFamily, teacher: WrittenTeacher, numbers: Int[np.ndarray, " n"]) -> Instances:
    """Instances as read from their texts, with the best answers rounded as written."""
    problem = family.problem
    questions = problem.texts.question.read(np.asarray(teacher.questions)[numbers])
    answers = problem.read_answers(np.asarray(teacher.answers)[numbers], family.steps)
    return Instances(questions, answers, problem.costs(questions, answers), np.asarray(numbers), dropped=0)


def _malformed(answers: Answers) -> Bool[np.ndarray, " n"]:
    return np.asarray(~np.isfinite(answers).all(axis=1))


def answer_scale(problem: Problem, training: Instances) -> Float[np.ndarray, " answer"]:
    """The mean deviation of training answers from their mean; at least one unit of the last digit."""
    deviation = np.abs(training.answers - training.answers.mean(axis=0)).mean(axis=0)
    return np.maximum(deviation, problem.texts.answer.units)


def mean_error(instances: Instances, answers: Answers, scale: Float[np.ndarray, " answer"]) -> float:
    """The mean error of answers without a missing number, averaged over their numbers. About 1 for the mean answer."""
    errors = (np.abs(answers - instances.answers) / scale).mean(axis=1)
    known = errors[np.isfinite(errors)]
    return float(known.mean()) if len(known) else float("nan")
