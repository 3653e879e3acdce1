"""Problems as text: the texts are those of the solver's answers, and no question is there twice."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.problem import Problem, instances
from recombine.families.sequences import WrittenTeacher
from recombine.problems.base import Instances
from recombine.problems.knapsack import Knapsack
from recombine.problems.power_flow import PowerFlow
from recombine.problems.power_flow.network import network_of
from recombine.spaces.instances import InstanceSpace
from recombine.spaces.subset import SubsetSpace
from recombine.testing import check_family
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting
from recombine.training.streams import named_key

SPACE = InstanceSpace(number=24)
SACK = Knapsack(items=3, count=4, solver="listing", text="pairs")
FLOW = PowerFlow(solver="batched", text="pairs")


@pytest.mark.parametrize("problem", [SACK, FLOW])
@pytest.mark.parametrize("steps", [False, True])
def test_conformance(problem: Knapsack | PowerFlow, steps: bool) -> None:
    check_family(Problem(problem=problem, steps=steps), SPACE)


def test_an_answer_is_the_best_one() -> None:
    family = Problem(problem=SACK)
    teacher = jax.jit(lambda key: family.draw(SPACE, key))(jax.random.key(4))
    questions = SACK.texts.question.read(np.asarray(teacher.questions))
    answers = SACK.read_answers(np.asarray(teacher.answers))
    np.testing.assert_array_equal(answers, SACK.optima(questions))
    assert len(np.unique(questions, axis=0)) == SPACE.number


def test_replicates_have_other_instances_and_steps_the_same() -> None:
    plain, steps = Problem(problem=SACK), Problem(problem=SACK, steps=True)
    one, other = (plain.draw(SPACE, jax.random.key(key)).questions for key in (1, 2))
    assert not np.array_equal(one, other)
    again = steps.draw(SPACE, jax.random.key(1))
    np.testing.assert_array_equal(again.questions, one)
    said = SACK.read_answers(np.asarray(again.answers), steps=True)
    np.testing.assert_array_equal(said, SACK.optima(SACK.texts.question.read(np.asarray(one))))


def test_a_task_is_told_by_its_question() -> None:
    family = Problem(problem=SACK)
    teacher = family.draw(SPACE, jax.random.key(0))
    task = teacher.task(jnp.array([5]), jax.random.key(1))
    np.testing.assert_array_equal(np.asarray(teacher.prompt(task)), np.asarray(teacher.questions)[5])
    batch = teacher.batch(task, jax.random.key(2), 1)
    np.testing.assert_array_equal(batch.targets[0], teacher.answers[5])


def test_questions_that_run_out_are_said() -> None:
    class Few(Knapsack):
        """One of ten questions."""

        def question(self, rng: np.random.Generator) -> np.ndarray:
            return super().question(np.random.default_rng(int(rng.integers(10))))

    with pytest.raises(BadInput, match="of 11 different questions"):
        instances(Few(items=3, count=4, solver="listing"), 11, 0)
    assert len(instances(Few(items=3, count=4, solver="listing"), 8, 0)) == 8


def test_what_cannot_be_drawn_is_said_before_it_is_compiled() -> None:
    class Same(Knapsack):
        """One question."""

        def question(self, rng: np.random.Generator) -> np.ndarray:
            return super().question(np.random.default_rng(0))

    family = Problem(problem=Same(items=3, count=4, solver="listing", text="pairs"))
    with pytest.raises(BadInput, match="of 24 different questions"):
        _ = Setting(RunConfig(family=family, space=SPACE)).teacher


def test_preparing_finds_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(RunConfig(family=Problem(problem=SACK), space=SPACE))
    setting.config.family.prepare(SPACE, named_key(setting.config.seeds.teacher, "teacher"))

    def never(*_: object) -> Instances:
        raise AssertionError("drawn again")

    monkeypatch.setattr(Knapsack, "instances", never)
    teacher = setting.teacher
    assert isinstance(teacher, WrittenTeacher) and len(teacher.questions) == SPACE.number


def test_other_spaces_are_refused() -> None:
    with pytest.raises(BadInput, match="needs a space of instances"):
        Problem(problem=SACK).draw(SubsetSpace(modules=4, max_active=2), jax.random.key(0))


def test_without_pypower_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    network_of.cache_clear()
    for name in [one for one in sys.modules if one.split(".")[0] == "pypower"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pypower", None)
    with pytest.raises(BadInput, match="pypower") as caught:
        Problem(problem=PowerFlow(spread=0.1, text="pairs")).longest_answer  # noqa: B018
    assert "recombine[constraints]" in str(caught.value.fix)
    assert Problem(problem=SACK).longest_answer == 4
