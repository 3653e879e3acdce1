"""Products as text: against Python's own multiplication, and against the graph of the steps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.families.multiplication import MOST, Multiplication
from recombine.graphs.graph import evaluate
from recombine.graphs.multiplication import multiplication_graph, multiplication_scratchpad
from recombine.language.vocabulary import END, PAD
from recombine.overrides import validate
from recombine.spaces.number_pairs import NumberPairs
from recombine.training.config import RunConfig

FAMILIES = {steps: Multiplication(steps=steps) for steps in (True, False)}
NUMBERS = st.integers(1, 999)


@pytest.fixture(scope="module")
def speak():
    """The prompt and the answer of a pair, in words, and the answer's tokens."""
    teachers = {steps: one.draw(one.pairs, jax.random.key(0)) for steps, one in FAMILIES.items()}

    @jax.jit
    def tokens(row):
        task = teachers[True].task(row, jax.random.key(0))
        return teachers[True].prompt(task), {steps: one.answer(task) for steps, one in teachers.items()}

    def spoken(left: int, right: int, steps: bool):
        words = FAMILIES[steps].vocabulary
        row = NumberPairs().of(np.array([left]), np.array([right]))[0]
        prompt, answers = tokens(jnp.asarray(row))
        said = np.asarray(answers[steps])
        return words.spelled(np.asarray(prompt)), words.spelled(said), said

    return spoken


@given(left=NUMBERS, right=NUMBERS)
@settings(max_examples=60, deadline=None)
def test_the_result_is_the_product(speak, left: int, right: int) -> None:
    digits = len(str(left)) + len(str(right))
    prompt, answer, tokens = speak(left, right, False)
    assert "".join(prompt) == f"{left}x{right}"
    assert "".join(answer) == str(left * right).zfill(digits)
    assert tokens[digits] == END and (tokens[digits + 1 :] == PAD).all()


@given(left=NUMBERS, right=NUMBERS)
@settings(max_examples=60, deadline=None)
def test_with_steps_the_answer_is_the_scratchpad(speak, left: int, right: int) -> None:
    graph = multiplication_graph(str(left), str(right))
    _, answer, _ = speak(left, right, True)
    assert answer == multiplication_scratchpad(graph).write()
    assert int("".join(answer[-len(str(left)) - len(str(right)) :])) == left * right


def test_the_known_product(speak) -> None:
    _, answer, _ = speak(23, 45, True)
    assert answer[-4:] == ("1", "0", "3", "5")


def test_every_value_has_a_word() -> None:
    for size in ((4, 4), (3, 4)):
        graph = multiplication_graph("9" * size[0], "9" * size[1])
        rng = np.random.default_rng(0)
        inputs = rng.integers(0, 10, (5000, sum(size)))
        values = evaluate(graph, np.concatenate([inputs, np.full((1, sum(size)), 9)]))
        assert values[:, [step for step in graph.steps if graph.nodes[step].name != "answer"]].max() <= MOST


def test_what_is_stated_is_read_of_the_answer(speak) -> None:
    family = FAMILIES[True]
    rows = family.pairs.of(np.array([23, 40]), np.array([45, 99]))
    said = np.stack([speak(23, 45, True)[2], speak(40, 99, True)[2]])
    graph, inputs, stated = family.stated(rows, said)
    assert inputs.tolist() == [[3, 2, 5, 4], [0, 4, 9, 9]]
    np.testing.assert_array_equal(stated, evaluate(graph, inputs))
    assert stated[:, graph.index["answer"]].tolist() == [1035, 3960]
    assert family.sizes(rows).tolist() == [22, 22] and family.size_name(22) == "2 x 2"
    assert family.results(rows).tolist() == [4, 4]
    assert family.lengths(22) == (5, 1 + len(family.vocabulary.spelled(said[0])))


def test_a_run_of_it_has_its_parts() -> None:
    config = RunConfig.model_validate({"family": "multiplication"})
    assert config.space == NumberPairs() and config.support.kind == "small-factors"
    with pytest.raises(BadInput, match="the same numbers"):
        validate(RunConfig, {"family": "multiplication", "space": {"kind": "number-pairs", "left": 2}})
