"""The knapsack: against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.problems.knapsack import Knapsack

SMALL = Knapsack(items=4, copies=2, kinds=2, count=4)


def brute_force(problem, question):
    """The best answer of all, the lexicographically last of equally good ones."""
    every = np.array(list(itertools.product(range(problem.copies + 1), repeat=problem.items)), dtype=float)
    values = question[: problem.items]
    weights = question[problem.items : -problem.kinds].reshape(problem.kinds, problem.items)
    fits = (every @ weights.T <= question[-problem.kinds :]).all(axis=1)
    fits &= every.sum(axis=1) <= problem.count
    worth = np.where(fits, every @ values, -1)
    return every[np.flatnonzero(worth == worth.max())[-1]]


@pytest.mark.parametrize(
    "problem, number", [(SMALL, 60), (Knapsack(items=6, copies=1, kinds=3, count=3), 40), (Knapsack(), 15)]
)
def test_the_best_answer_is_that_of_brute_force(problem, number):
    instances = problem.instances(number, seed=3)
    for question, answer, cost in zip(instances.questions, instances.answers, instances.costs, strict=True):
        expected = brute_force(problem, question)
        np.testing.assert_array_equal(answer, expected)
        assert cost == -(question[: problem.items] @ expected)


@pytest.mark.parametrize("problem", [SMALL, Knapsack(items=5, count=6)])
def test_an_integer_program_finds_the_same(problem):
    from scipy.optimize import Bounds, milp

    instances, items = problem.instances(30, seed=5), problem.items
    # Values are whole numbers, and the tie-breaking terms sum to less than 1.
    ranks = float(problem.copies + 1) ** -np.arange(1, items + 1)
    for question, answer in zip(instances.questions, instances.answers, strict=True):
        limits = np.vstack([question[items : -problem.kinds].reshape(problem.kinds, items), np.ones(items)])
        solution = milp(
            -(question[:items] + ranks),
            integrality=np.ones(items),
            bounds=Bounds(0, problem.copies),
            constraints=(limits, -np.inf, np.append(question[-problem.kinds :], problem.count)),
            options={"mip_rel_gap": 0, "presolve": False},
        )
        np.testing.assert_array_equal(answer, np.rint(solution.x))


def test_of_equally_good_answers_the_first_items_are_taken():
    # Items 1 to 4 are the same, and two of them fit.
    question = np.array([50.0] * 4 + [30.0] * 8 + [60.0, 65.0])
    np.testing.assert_array_equal(SMALL.optima(question[None])[0], [2, 0, 0, 0])
    np.testing.assert_array_equal(brute_force(SMALL, question), [2, 0, 0, 0])


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 1000))
def test_violations_are_counted_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    question = SMALL.question(rng)
    answer = rng.integers(0, 4, SMALL.items).astype(float)
    found = SMALL.violations(question[None], answer[None])
    weights, room = question[4:12].reshape(2, 4), question[12:]
    np.testing.assert_array_equal(found["bounds"][0], np.maximum(answer - 2, 0))
    assert found["count"][0, 0] == max(answer.sum() - 4, 0)
    over = [max(float(row @ answer) / most - 1, 0) for row, most in zip(weights, room, strict=True)]
    np.testing.assert_allclose(found["weight"][0], over, atol=1e-12)
    # A weight that fits exactly, or less, is no violation at all.
    assert all(
        (row @ answer <= most) == (v == 0) for row, most, v in zip(weights, room, found["weight"][0], strict=True)
    )


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 1000))
def test_a_repaired_answer_is_feasible_and_nothing_is_added(seed):
    rng = np.random.default_rng(seed)
    questions = np.stack([SMALL.question(rng) for _ in range(20)])
    answers = rng.integers(0, 10, (20, SMALL.items)).astype(float)
    answers[rng.random(answers.shape) < 0.1] = np.nan
    repaired = SMALL.repair(questions, answers)
    assert repaired.corrected.all()
    violations = SMALL.violations(questions, repaired.answers)
    assert all(not found.any() for found in violations.values())
    assert np.all(repaired.answers <= np.nan_to_num(answers))
    again = SMALL.repair(questions, repaired.answers)
    np.testing.assert_array_equal(again.answers, repaired.answers)


def test_repair_removes_the_item_with_the_least_value_for_its_weight():
    question = np.array([90.0, 10, 50, 50] + [30.0] * 4 + [10.0] * 4 + [90.0, 99.0])
    repaired = SMALL.repair(question[None], np.array([[1.0, 1, 1, 1]])).answers
    np.testing.assert_array_equal(repaired, [[1, 0, 1, 1]])


def test_steps_give_the_remaining_capacity():
    instances = SMALL.instances(5, seed=0)
    written = SMALL.texts.steps.read(SMALL.write_answers(instances.questions, instances.answers, steps=True))
    last = written[:, -2:]
    weights = instances.questions[:, 4:12].reshape(-1, 2, 4)
    used = np.einsum("nki,ni->nk", weights, instances.answers)
    np.testing.assert_array_equal(last, instances.questions[:, 12:] - used)
    assert np.all(last >= 0)
    np.testing.assert_array_equal(written[:, list(SMALL.texts.columns)], instances.answers)


def test_too_many_answers_are_refused():
    with pytest.raises(ValueError, match="use fewer items or copies"):
        Knapsack(items=20, copies=1)
