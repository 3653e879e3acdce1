"""Function calls: prompts and answers share drawn names, answers are right by another reader, and instances follow their programs."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.calling import Library, execute, read_calls
from recombine.calling.listed import description_words
from recombine.errors import BadInput
from recombine.families import FunctionCalls
from recombine.families.sequences.function_calls import SPLITS, FunctionCallsTeacher
from recombine.overrides import validate
from recombine.spaces import InstanceSpace
from recombine.testing import check_family
from recombine.training import RunConfig, Setting

SMALL = {"programs": 40, "tests": 8, "functions": 14, "held_out_functions": 2, "held_out_pairs": 8}


@pytest.fixture(scope="module", params=["granular", "umbrella"])
def setting(request: pytest.FixtureRequest) -> Setting:
    return Setting(validate(RunConfig, {"family": {"kind": "function-calls", "tasks": request.param, **SMALL}}))


def test_conformance() -> None:
    family = FunctionCalls(**SMALL)  # type: ignore[arg-type]
    check_family(family, InstanceSpace(number=family.instances))


def test_drawn_names_agree_in_prompt_and_answer(setting: Setting) -> None:
    family, teacher = setting.config.family, setting.teacher
    assert isinstance(family, FunctionCalls) and isinstance(teacher, FunctionCallsTeacher)
    written = family.written(np.asarray(teacher.bits))
    rows = jnp.arange(family.training_instances, family.instances)[:, None]

    def both(row, key):
        task = teacher.task(row, key)
        return teacher.prompt(task), teacher.answer(task)

    drawings = [jax.jit(jax.vmap(both))(rows, jax.random.split(jax.random.key(seed), len(rows))) for seed in (0, 1)]
    different = set()
    for prompts, answers in drawings:
        examples = zip(prompts, answers, written.tests, written.test_programs, strict=True)
        for prompt, answer, example, (_, program) in examples:
            names = family.listed_names(np.asarray(prompt), example)
            assert set(names.values()) == set(example.functions) and len(names) == family.candidates
            different.add(tuple(names))
            listed = Library(dataclasses.replace(written.library[own], name=name) for name, own in names.items())
            calls = read_calls(" ".join(family.vocabulary.spelled(np.asarray(answer))), listed).calls
            # The answer is executed with the names of the prompt, the program with those of the library.
            assert calls and execute(calls, listed)[-1] == execute(program.calls, written.library)[-1]
    assert len(different) == 2 * len(rows)


def test_training_instances_come_first_and_hold_nothing_out(setting: Setting) -> None:
    family, teacher = setting.config.family, setting.teacher
    assert isinstance(family, FunctionCalls) and isinstance(teacher, FunctionCallsTeacher)
    written = family.written(np.asarray(teacher.bits))
    first = family.training_instances
    assert set(setting.support.rows[:, 0]) == set(range(first)) and len(written.train) == first
    assert set(setting.support.reserved[:, 0]) == set(range(first, family.instances))
    assert [name for name, _ in written.test_programs] == [name for name in SPLITS for _ in range(family.tests)]
    assert {example.program for example in written.train} == set(range(family.programs))
    # The words of held-out functions are trained, in the descriptions of others.
    words = {word for example in written.train for word in example.prompt}
    for name in written.split.functions:
        assert set(description_words(written.library[name])) <= words
    # Training fits into the lengths that a study cuts at.
    prompt, answer = family.lengths(family.depth)
    assert max(len(example.prompt) for example in written.train) <= prompt
    assert max(len(example.answer) for example in written.train) < answer
    # The umbrella task has one right answer: requests that look the same are answered in the same way.
    if family.tasks == "umbrella":
        for program in written.split.train:
            assert program.form != "chained" or program.depth > 1


def test_mean_tokens_are_those_of_the_replicates(setting: Setting) -> None:
    family, teacher = setting.config.family, setting.teacher
    assert isinstance(family, FunctionCalls) and isinstance(teacher, FunctionCallsTeacher)
    drawn = np.mean([example.tokens for example in family.written(np.asarray(teacher.bits)).train])
    assert abs(drawn / family.mean_tokens() - 1) < 0.1


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="needs a space of 312 instances"):
        FunctionCalls(**SMALL).check(InstanceSpace(number=300))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="candidates=2 must be at least 3"):
        FunctionCalls(candidates=2)
    greedy = FunctionCalls(**(SMALL | {"held_out_functions": 10}))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="10 of 14 functions could not be held out"):
        greedy.written(np.zeros(4, np.uint32))
