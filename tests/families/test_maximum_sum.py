"""The largest sum of no neighbours: against the graph of its steps, and against all subsets."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.families.maximum_sum import MaximumSum, solve as solve_plain
from recombine.graphs.dynamic_programming import maximum_sum_graph
from recombine.graphs.graph import evaluate
from recombine.language.vocabulary import END, PAD
from recombine.overrides import validate
from recombine.spaces.lists import ListSpace
from recombine.training.config import RunConfig

SPACE = ListSpace()
LISTS = st.lists(st.integers(-5, 5), min_size=2, max_size=8)

solve = jax.jit(solve_plain)


def spoken(family: MaximumSum, values: list[int]) -> tuple[list[int], list[int], np.ndarray]:
    teacher = family.draw(family.lists, jax.random.key(0))
    row = family.lists.of(np.array([values]))[0]
    task = teacher.task(jnp.asarray(row), jax.random.key(0))
    prompt, answer = np.asarray(teacher.prompt(task)), np.asarray(teacher.answer(task))
    words = family.vocabulary
    return [int(one) for one in words.spelled(prompt)], [int(one) for one in words.spelled(answer)], answer


@given(values=LISTS)
@settings(max_examples=60, deadline=None)
def test_labels_are_the_first_of_the_best_choices(values: list[int]) -> None:
    padded = np.zeros(8, np.int32)
    padded[: len(values)] = values
    best, labels = (np.asarray(part)[: len(values)] for part in solve(jnp.asarray(padded)))
    choices = [
        tuple(1 if place in chosen else 2 for place in range(len(values)))
        for count in range(len(values) + 1)
        for chosen in itertools.combinations(range(len(values)), count)
        if all(other - one > 1 for one, other in itertools.pairwise(chosen))
    ]
    sums = {labels: sum(v for v, label in zip(values, labels, strict=True) if label == 1) for labels in choices}
    assert best[0] == max(sums.values())
    assert tuple(labels) == min(labels for labels, total in sums.items() if total == best[0])


@given(values=LISTS)
@settings(max_examples=10, deadline=None)
def test_the_answer_is_the_graph_in_topological_order(values: list[int]) -> None:
    prompt, answer, tokens = spoken(MaximumSum(), values)
    graph = maximum_sum_graph(values)
    assert prompt == values
    assert answer == evaluate(graph)[list(graph.steps)].tolist()
    assert tokens[len(answer)] == END
    assert (tokens[len(answer) + 1 :] == PAD).all()


def test_without_steps_the_labels_alone_are_said() -> None:
    _, whole, _ = spoken(MaximumSum(), [3, 2, 1, 5, 2])
    _, short, tokens = spoken(MaximumSum(steps=False), [3, 2, 1, 5, 2])
    assert short == whole[5:] == [1, 2, 2, 1, 2]
    assert len(tokens) == 9


def test_every_sum_has_a_word() -> None:
    for lists in (SPACE, ListSpace(low=2, high=3, longest=3), ListSpace(low=-2, high=-1, longest=3)):
        family = MaximumSum(lists=lists)
        prompt, answer, _ = spoken(family, [lists.high] * lists.longest)
        assert prompt == [lists.high] * lists.longest
        assert len(answer) == 2 * lists.longest


def test_a_run_of_it_has_its_parts() -> None:
    config = RunConfig.model_validate({"family": "maximum-sum"})
    assert config.space == SPACE and config.support.kind == "short-lists" and config.model.kind == "decoder"
    with pytest.raises(BadInput, match="the same numbers"):
        validate(RunConfig, {"family": "maximum-sum", "space": {"kind": "lists", "longest": 9}})
