"""Properties of all problems."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.component import find, kinds, resolve
from recombine.errors import BadInput
from recombine.problems.base import Problem, together

STRICT = 1e-6
"""At which best answers, before they are text, satisfy everything."""


def test_problems_are_found_by_name():
    assert kinds("problems") == ("knapsack", "power-flow")
    for kind in kinds("problems"):
        assert issubclass(find("problems", kind), Problem)
    assert resolve("problems", {"kind": "power-flow", "case": "case14"}).case == "case14"


def test_the_best_answer_satisfies_everything(problem, drawn):
    instances = drawn(problem)
    assert instances.dropped == 0 and len(instances) == 12
    found = problem.check(instances, instances.answers, [STRICT])
    assert found.every == [1.0] and found.total == [1.0] and found.malformed == 0
    assert found.gap == pytest.approx(0, abs=1e-9) and found.feasible_gap == pytest.approx([0], abs=1e-9)
    assert [one.name for one in problem.types] == list(found.by_type)
    violations = problem.violations(instances.questions, instances.answers)
    assert [one.number for one in problem.types] == [each.shape[1] for each in violations.values()]


@pytest.mark.parametrize("steps", [False, True])
def test_the_text_of_the_best_answer_satisfies_everything_at_the_strictest_tolerance(problem, drawn, steps):
    instances = drawn(problem)
    tokens = problem.write_answers(instances.questions, instances.answers, steps=steps)
    read = problem.read_answers(tokens, steps=steps)
    np.testing.assert_array_equal(read, problem.texts.answer.rounded(instances.answers))
    found = problem.check(instances, read)
    assert np.all(found.every == 1) and problem.tolerances == tuple(sorted(problem.tolerances))
    assert abs(found.gap) < 1e-3


def test_a_question_is_recovered_from_its_text(problem, drawn):
    questions = drawn(problem).questions
    tokens = problem.write_questions(questions)
    np.testing.assert_array_equal(problem.texts.question.read(tokens), questions)
    assert len(np.unique(questions, axis=0)) == len(questions)


def test_draws_can_be_made_in_parts(problem, drawn):
    whole = drawn(problem)
    parts = together([problem.instances(4, seed=0), problem.instances(8, seed=0, start=4)])
    np.testing.assert_array_equal(parts.questions, whole.questions)
    np.testing.assert_array_equal(parts.numbers, whole.numbers)
    # Many at once are solved in another order of sums.
    np.testing.assert_allclose(parts.answers, whole.answers, atol=1e-6)
    np.testing.assert_allclose(parts.costs, whole.costs, rtol=1e-9)
    again = problem.instances(12, seed=0)
    np.testing.assert_array_equal(again.answers, whole.answers)
    other = problem.instances(2, seed=1)
    assert not np.isin(other.questions[:, 0], whole.questions[:, 0]).all()


def test_a_draw_without_an_answer_is_left_out_and_counted(problem, drawn, monkeypatch):
    whole = drawn(problem)
    solve = type(problem).optima

    def sometimes(self, questions):
        answers = solve(self, questions)
        answers[1, -1] = np.nan
        return answers

    monkeypatch.setattr(type(problem), "optima", sometimes)
    left = problem.instances(3, seed=0)
    assert left.dropped == 1 and left.numbers.tolist() == [0, 2]
    np.testing.assert_array_equal(left.questions, whole.questions[[0, 2]])
    monkeypatch.setattr(type(problem), "optima", lambda self, questions: 0 * whole.answers[:2] / 0)
    with np.errstate(invalid="ignore"):
        none = problem.instances(2, seed=0)
    assert none.dropped == 2 and none.answers.shape == (0, whole.answers.shape[1])
    with pytest.raises(BadInput, match="needs training instances"):
        problem.baseline("mean", none, whole.questions)


def test_baselines(problem, drawn):
    training = problem.instances(20, seed=5)
    asked = drawn(problem)
    constant = problem.baseline("mean", training, asked.questions)
    assert (constant == constant[0]).all()
    assert np.all(np.abs(constant[0] - training.answers.mean(axis=0)) <= 0.5)
    near = problem.baseline("nearest", training, asked.questions)
    scale = training.questions.std(axis=0)
    for question, answer in zip(asked.questions, near, strict=True):
        away = np.linalg.norm((training.questions - question) / np.where(scale > 0, scale, 1), axis=1)
        best = training.answers[away.argmin()][None]
        np.testing.assert_array_equal(answer, problem.texts.answer.rounded(best)[0])
    own = problem.baseline("nearest", training, training.questions)
    assert np.all(problem.check(training, own).every == 1)


def test_a_missing_number_satisfies_nothing(problem, drawn):
    instances = drawn(problem)
    nothing = np.full_like(instances.answers, np.nan)
    found = problem.check(instances, nothing, [0.0, 1e9])
    assert found.malformed == 1 and np.isnan(found.gap) and np.isnan(found.feasible_gap).all()
    assert np.all(found.total == 0) and np.all(found.every == 0)
    one = instances.answers.copy()
    one[0, 0] = np.nan
    found = problem.check(instances, one, [STRICT])
    assert found.malformed == pytest.approx(1 / 12) and found.every[0] == pytest.approx(11 / 12)
    assert 0 < found.total[0] < 1


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 1000),
    noise=st.sampled_from([0.0, 0.01, 1.0, 30.0]),
    tolerances=st.lists(st.floats(0, 10), min_size=2, max_size=6),
)
def test_rates_are_monotone_in_the_tolerance(problem, drawn, seed, noise, tolerances):
    instances = drawn(problem)
    rng = np.random.default_rng(seed)
    answers = instances.answers + noise * rng.normal(size=instances.answers.shape)
    answers[rng.random(answers.shape) < 0.02] = np.nan
    found = problem.check(instances, answers, sorted(tolerances))
    for rates in (found.total, found.every, *found.by_type.values()):
        assert np.all(np.diff(rates) >= 0) and np.all((rates >= 0) & (rates <= 1))
    for rates in found.by_type.values():
        assert np.all(found.every <= rates + 1e-12)
    assert found.numbers == {one.name: one.number for one in problem.types}
    np.testing.assert_allclose(found.pooled(found.numbers), found.total)
    easy = [one for one in problem.types if one.easy]
    held = sum(one.number * found.by_type[one.name] for one in easy)
    np.testing.assert_allclose(found.pooled(one.name for one in easy), held / sum(one.number for one in easy))


def test_repair_leaves_the_best_answer(problem, drawn):
    instances = drawn(problem)
    repaired = problem.repair(instances.questions, instances.answers)
    assert repaired.corrected.all()
    np.testing.assert_allclose(repaired.answers, instances.answers, atol=1e-4)


def test_bad_requests_are_refused(problem, drawn):
    instances = drawn(problem)
    with pytest.raises(BadInput, match="at least one"):
        problem.instances(0, seed=0)
    with pytest.raises(BadInput, match="one answer per instance"):
        problem.check(instances, instances.answers[:3])
    with pytest.raises(BadInput, match="Tolerances"):
        problem.check(instances, instances.answers, [-0.1])


def test_violations_are_the_same_inside_a_compiled_program(problem, drawn):
    instances = drawn(problem)
    answers = instances.answers[::-1].copy()
    answers[0, 1] = np.nan
    found = jax.jit(lambda *given: problem.violations(*given, jnp))(instances.questions, answers)
    expected = problem.violations(instances.questions, answers)
    assert list(expected) == [one.name for one in problem.types] and set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=2e-5, err_msg=name)


def test_shares_of_single_answers_average_to_the_total(problem, drawn):
    instances = drawn(problem)
    shares = problem.satisfied(instances.questions, instances.answers[::-1], problem.tolerances[0])
    total = problem.check(instances, instances.answers[::-1], [problem.tolerances[0]]).total[0]
    assert shares.mean() == pytest.approx(total)
    broken = instances.answers.copy()
    broken[3, 0] = np.nan
    shares = problem.satisfied(instances.questions, broken, problem.tolerances[-1])
    total = problem.check(instances, broken, [problem.tolerances[-1]]).total[0]
    assert shares.mean() == pytest.approx(total) and 0 < shares[3] < 1
