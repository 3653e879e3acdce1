"""string-tasks: answers are those of plain Python, prompts name the tasks, and composites are pairs of tasks."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.chained.string_tasks import LETTERS, NOTHING, RULES, StringTasks, composites, string_space
from recombine.overrides import validate
from recombine.testing import check_family
from recombine.training import RunConfig, Setting

IN_PYTHON = {
    "reverse": lambda text, last: text[::-1],
    "shift": lambda text, last: "".join("a" if letter == last else chr(ord(letter) + 1) for letter in text),
    "sort": lambda text, last: "".join(sorted(text)),
    "swap": lambda text, last: text[len(text) // 2 :] + text[: len(text) // 2],
    "rotate": lambda text, last: text[1:] + text[0],
    "repeat": lambda text, last: 2 * text[: len(text) // 2],
}


def test_answers_are_those_of_plain_python() -> None:
    family = StringTasks(tasks=tuple(RULES), alphabet=5, length=4)
    space, words = string_space(family.tasks), family.vocabulary
    teacher = family.draw(space, jax.random.key(0))
    rows = space.enumerate()
    tasks = jax.vmap(teacher.task)(jnp.asarray(rows), jax.random.split(jax.random.key(1), len(rows)))
    prompts, answers = (np.asarray(jax.vmap(make)(tasks)) for make in (teacher.prompt, teacher.answer))
    for row, prompt, answer in zip(rows, prompts, answers, strict=True):
        told = words.spelled(prompt)
        names, text = [word for word in told if word not in LETTERS], "".join(word for word in told if word in LETTERS)
        assert names == [
            name for name in (label.split("=")[1] for label in map(space.label, row.tolist())) if name != NOTHING
        ]
        for name in names:
            text = IN_PYTHON[name](text, LETTERS[family.alphabet - 1])
        assert "".join(words.spelled(answer)) == text
    assert len({tuple(string) for string in np.asarray(tasks.letters)}) > len(rows) // 2


def test_composites_have_every_task_first_and_second() -> None:
    pairs = composites(("a", "b", "c", "d"), (1, 3))
    assert len(set(pairs)) == 8 and all(first != then for first, then in pairs)
    for position in (0, 1):
        assert set(Counter(pair[position] for pair in pairs).values()) == {2}


def test_conformance_and_defaults() -> None:
    family = StringTasks(alphabet=4, length=4)
    check_family(family, string_space(family.tasks))
    setting = Setting(RunConfig.model_validate({"family": family}))
    trained = setting.regions.rows("trained", 99)
    assert len(trained) == len(family.tasks) and all(NOTHING in setting.config.space.name(row) for row in trained)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="each task may be named once"):
        StringTasks(tasks=("sort", "sort"))
    with pytest.raises(BadInput, match="leave the space out"):
        validate(RunConfig, {"family": "string-tasks", "space": {"kind": "subset", "modules": 4, "max_active": 2}})
