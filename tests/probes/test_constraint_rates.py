"""Rates of constraints: exact where the answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.probes.constraint_rates import (
    EVERY,
    GROUPS,
    HARD,
    TOTAL,
    ConstraintRates,
    answer_scale,
    box_share,
    mean_error,
    written,
)
from recombine.problems.base import Instances, Problem
from recombine.problems.knapsack import Knapsack
from recombine.problems.power_flow import PowerFlow
from recombine.studies.constraints import Constraints
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SACK = Knapsack(items=3, count=4, solver="listing", text="pairs")
FLOW = PowerFlow(solver="batched", text="pairs")


def rounded(problem: Problem, number: int, seed: int) -> Instances:
    found = problem.instances(number, seed)
    answers = problem.texts.answer.rounded(found.answers)
    return Instances(found.questions, answers, problem.costs(found.questions, answers), found.numbers, 0)


@pytest.mark.parametrize("problem", [SACK, FLOW])
def test_right_answers_satisfy_everything_and_the_mean_does_not(problem: Problem) -> None:
    training, held_out = rounded(problem, 40, 0), rounded(problem, 20, 1)
    asked = {"in": training, "held_out": held_out}
    found = ConstraintRates()._measured(
        problem, training, asked, {"in": training.answers, "held_out": held_out.answers}
    )
    got = found.summary
    assert got["total_network"] == got["every_network"] == got["hard_network"] == 1
    assert got["error_network"] == got["error_in"] == got["gap_network"] == got["malformed_network"] == 0
    assert got["hard_mean"] < 1 and 0.4 < got["error_mean"] < 1.5
    assert {name for name in set(found.columns["answers"]) if "repaired" in name} == {
        "network_repaired",
        "mean_repaired",
        "nearest_repaired",
    }
    table = list(zip(*found.columns.values(), strict=True))
    kinds = {one.name for one in problem.types} | set(GROUPS)
    assert len(table) == 7 * len(problem.tolerances) * len(kinds)
    strictest = {(answers, kind): rate for answers, at, kind, rate in table if at == min(problem.tolerances)}
    for kind in (HARD, TOTAL, EVERY):
        assert strictest["mean", kind] == got[f"{kind}_mean"]


def test_a_missing_number_violates_what_needs_it_and_has_no_error() -> None:
    training, held_out = rounded(SACK, 40, 0), rounded(SACK, 20, 1)
    broken = held_out.answers.copy()
    broken[:5, 1] = np.nan
    given = {"in": training.answers, "held_out": broken}
    got = ConstraintRates()._measured(SACK, training, {"in": training, "held_out": held_out}, given).summary
    assert got["malformed_network"] == 0.25 and got["every_network"] == 0.75
    assert got["error_network"] == 0 and got["hard_network"] == 0.75
    # Of 6 constraints 4 need the number: its own bound, the count, and both weights.
    assert got["total_network"] == pytest.approx(1 - 0.25 * 4 / 6)


@pytest.mark.parametrize("problem", [SACK, FLOW])
def test_rates_over_well_formed_answers_are_those_of_these_instances_alone(problem: Problem) -> None:
    training, held_out = rounded(problem, 40, 0), rounded(problem, 20, 1)
    given = held_out.answers[::-1].copy()
    given[:5, 1] = np.nan
    asked = {"in": training, "held_out": held_out}
    got = ConstraintRates()._measured(problem, training, asked, {"in": training.answers, "held_out": given})
    left = Instances(held_out.questions[5:], held_out.answers[5:], held_out.costs[5:], held_out.numbers[5:], dropped=0)
    alone = ConstraintRates()._measured(
        problem, training, {"in": training, "held_out": left}, {"in": training.answers, "held_out": given[5:]}
    )
    for name in ("network", "network_repaired", "mean", "mean_repaired"):
        for kind in (HARD, TOTAL):
            assert got.summary[f"{kind}_{name}_formed"] == pytest.approx(alone.summary[f"{kind}_{name}"])
    assert got.summary["total_network_formed"] > got.summary["total_network"]


def test_without_well_formed_answers_the_rate_is_nan() -> None:
    training = rounded(SACK, 40, 0)
    given = np.full_like(training.answers, np.nan)
    asked = {"in": training, "held_out": training}
    got = ConstraintRates()._measured(SACK, training, asked, {"in": given, "held_out": given}).summary
    assert np.isnan(got["total_network_formed"]) and np.isnan(got["total_mean_formed"])
    assert got["total_network"] == 0 < got["total_mean"]


def test_the_error_of_the_mean_is_also_that_on_trained_instances() -> None:
    training, held_out = rounded(SACK, 40, 0), rounded(SACK, 20, 1)
    asked = {"in": training, "held_out": held_out}
    given = {"in": training.answers, "held_out": held_out.answers}
    got = ConstraintRates()._measured(SACK, training, asked, given).summary
    mean = np.rint(training.answers.mean(axis=0))
    spread = np.maximum(np.abs(training.answers - training.answers.mean(axis=0)).mean(axis=0), 1)
    for name, own in (("error_mean_in", training), ("error_mean", held_out)):
        assert got[name] == pytest.approx((np.abs(own.answers - mean) / spread).mean())


def test_the_error_is_in_units_of_the_spread() -> None:
    training = rounded(FLOW, 60, 0)
    scale = answer_scale(FLOW, training)
    mean = np.tile(training.answers.mean(axis=0), (60, 1))
    differ = np.abs(training.answers - mean).mean(axis=0) > FLOW.texts.answer.units
    each = np.abs(training.answers - mean) / scale
    np.testing.assert_allclose(each.mean(axis=0)[differ], 1)
    assert 0.5 < mean_error(training, mean, scale) <= 1


def test_boxes_are_counted() -> None:
    assert box_share(SACK) == 4 / 6
    assert box_share(FLOW) == 25 / 43


def test_an_untrained_network_is_measured_on_held_out_instances() -> None:
    study = Constraints.profile("smoke")
    config = next(one for one, labels in study.runs() if labels["arm"] == "knapsack")
    setting = Setting(config)
    found = ConstraintRates(instances=8).measure(setting, setting.network())
    assert found.summary["every_right"] == 1 and found.summary["error_right"] == 0
    assert 0 <= found.summary["total_network"] < 1
    family, teacher = config.family, setting.teacher
    rows = np.asarray(setting.support.rows)[:, 0]  # type: ignore[attr-defined]
    training = written(family, teacher, rows)  # type: ignore[arg-type]
    np.testing.assert_array_equal(training.answers, family.problem.optima(training.questions))  # type: ignore[attr-defined]


def test_other_families_are_refused() -> None:
    setting = Setting(RunConfig())
    with pytest.raises(BadInput, match="needs constrained problems"):
        ConstraintRates().measure(setting, setting.network())
