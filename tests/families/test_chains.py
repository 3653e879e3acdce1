"""Chains of functions and nested expressions: prompts and answers against plain loops and Python's own parser."""

from __future__ import annotations

import ast
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.families import Chains, LookupChains, Nested
from recombine.language.vocabulary import END, PAD, SPECIAL
from recombine.spaces import ListSpace

CHAINS = ListSpace(low=0, high=3, longest=5)
EXPRESSIONS = ListSpace(low=-2, high=2, longest=5)


@jax.jit
def written(teacher: Any, row: Any) -> tuple[Any, Any]:
    task = teacher.task(row, jax.random.key(0))
    return teacher.prompt(task), teacher.answer(task)


def words(family: Any, tokens: Any) -> list[str]:
    """The words of a prompt; pads are only at its end."""
    real = np.asarray(tokens) != PAD
    assert (np.diff(real.astype(int)) <= 0).all()
    return [family.vocabulary.words[token - SPECIAL] for token in np.asarray(tokens)[real]]


@pytest.mark.parametrize("rule", ["composed", "last"])
def test_chains_follow_their_functions(rule: Any) -> None:
    family = Chains(lists=CHAINS, rule=rule)
    teacher = family.draw(CHAINS, jax.random.key(1))
    assert (np.sort(teacher.functions, axis=1) == np.arange(4)).all(), "each function is a permutation"
    for values in ([2, 0], [3, 1, 1], [0, 3, 2, 1, 0]):
        prompt, answer = written(teacher, jnp.asarray(CHAINS.of(np.array([values]))[0]))
        assert words(family, prompt) == [str(values[0]), *(f"f{value}" for value in values[1:])]
        value = values[0]
        for function in values[1:] if rule == "composed" else values[-1:]:
            value = int(teacher.functions[function, value])
        assert np.asarray(answer).tolist() == [SPECIAL + value, END]


def test_the_answers_of_the_control_are_drawn_one_by_one() -> None:
    teacher = LookupChains(lists=CHAINS).draw(CHAINS, jax.random.key(0))
    rows = jnp.asarray(CHAINS.enumerate())
    prompts, answers = jax.vmap(lambda row: written(teacher, row))(rows)
    plain = Chains(lists=CHAINS).draw(CHAINS, jax.random.key(0))
    assert (prompts == jax.vmap(lambda row: written(plain, row)[0])(rows)).all()
    assert (answers[:, 1] == END).all()
    shares = np.bincount(np.asarray(answers[:, 0]) - SPECIAL, minlength=4) / len(rows)
    assert np.abs(shares - 0.25).max() < 0.05


def parsed(text: str) -> Any:
    """The tree that Python reads once neighbours are separated by commas."""
    spaced = re.sub(r"(?<=[\d)]) (?=[-\d(])", ", ", text)
    return ast.literal_eval(spaced)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=2, max_size=5))
def test_expressions_are_bracketed_and_worth_their_value(values: list[int]) -> None:
    family = Nested(lists=EXPRESSIONS)
    teacher = family.draw(EXPRESSIONS, jax.random.key(3))
    prompt, answer = written(teacher, jnp.asarray(EXPRESSIONS.of(np.array([values]))[0]))
    tree = parsed(" ".join(words(family, prompt)))
    inside = values[0]
    for operand in values[1:]:
        inside = (operand, inside) if operand < 0 else (inside, operand)  # type: ignore[assignment]
    assert tree == inside
    result = int(answer[0]) - SPECIAL - 2
    assert answer[1] == END
    innermost = values[0]
    for operand in values[1:]:
        innermost = int(teacher.operation[operand + 2, innermost + 2]) - 2
    assert result == innermost


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="needs lists of 2 to 5 numbers from 0 to 3"):
        Chains(lists=CHAINS).check(EXPRESSIONS)
    with pytest.raises(BadInput, match="negative and other numbers"):
        Nested(lists=CHAINS).check(CHAINS)
