"""Long multiplication: the graph's answer is the product, of numbers of every size."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.graphs.graph import evaluate
from recombine.graphs.multiplication import digit_table, multiplication_graph, multiplication_scratchpad

DIGITS = st.text("0123456789", min_size=1, max_size=5)


def answer(left, right):
    graph = multiplication_graph(left, right)
    return int(evaluate(graph)[graph.index["answer"]])


def test_the_published_example_comes_out_right():
    assert answer("23", "45") == 1035
    graph = multiplication_graph("23", "45")
    values = dict(zip((node.name for node in graph.nodes), evaluate(graph).tolist(), strict=True))
    # 23 x 5 = 115 and 23 x 4 = 92, one place to the left.
    assert [values[name] for name in ("carry[0,1]", "digit[0,1]", "digit[0,0]")] == [1, 1, 5]
    assert [values[name] for name in ("carry[1,1]", "digit[1,1]", "digit[1,0]")] == [0, 9, 2]
    assert [values[name] for name in ("column[1]", "digit[1]", "carry[1]")] == [3, 3, 0]
    assert {node.operation_name for node in graph.nodes} == {
        "input",
        "digit product",
        "sum",
        "mod 10",
        "carry",
        "concatenate",
    }


@settings(deadline=None, max_examples=60)
@given(left=DIGITS, right=DIGITS)
def test_the_answer_is_the_product(left, right):
    assert answer(left, right) == int(left) * int(right)


@pytest.mark.parametrize(("left", "right"), [(1, 1), (1, 4), (2, 2), (3, 2)])
def test_every_pair_of_a_size(left, right):
    graph = multiplication_graph("1" * left, "1" * right)
    table = digit_table(left, right)
    # Inputs are the digits from the units on.
    inputs = np.concatenate([table.left[:, ::-1], table.right[:, ::-1]], axis=1)
    values = evaluate(graph, inputs)[:, graph.index["answer"]]
    weights = 10 ** np.arange(left + right)[::-1]
    first, second = table.left @ weights[-left:], table.right @ weights[-right:]
    assert len(table.left) == 81 * 10 ** (left + right - 2)
    assert values.tolist() == (first * second).tolist()
    assert (table.product @ weights).tolist() == values.tolist()


@settings(deadline=None, max_examples=60)
@given(left=DIGITS, right=DIGITS)
def test_steps_are_small_and_all_are_needed(left, right):
    graph = multiplication_graph(left, right)
    values = evaluate(graph)
    needed = {parent for parents in graph.parents for parent in parents}
    assert needed == set(range(len(graph) - 1))
    assert graph.nodes[-1].name == "answer"
    assert values[:-1].min() >= 0 and values[:-1].max() < 100


@settings(deadline=None, max_examples=60)
@given(left=DIGITS, right=DIGITS)
def test_the_scratchpad_ends_in_the_digits_of_the_product(left, right):
    graph = multiplication_graph(left, right)
    pad = multiplication_scratchpad(graph)
    tokens = pad.write()
    places = len(left) + len(right)
    assert len(tokens) == pad.length == len(graph.steps) - 1 + places
    assert "".join(tokens[-places:]) == str(int(left) * int(right)).zfill(places)
    assert pad.read(tokens).tolist() == evaluate(graph).tolist()


def test_factors_may_be_numbers():
    assert answer(23, 45) == answer(23, "45") == 1035 and answer(0, 7) == 0
    assert multiplication_graph(23, 45) == multiplication_graph("23", "45")


@pytest.mark.parametrize("wrong", ["", "2x", "-3", "²", "1.0", "٣", -3])
def test_values_that_are_not_numbers_are_refused(wrong):
    with pytest.raises(BadInput, match="decimal digits"):
        multiplication_graph("12", wrong)


def test_values_that_are_too_large_are_refused():
    with pytest.raises(BadInput, match="holds 18"):
        multiplication_graph("1" * 10, "1" * 9)
    with pytest.raises(BadInput, match="at most"):
        digit_table(4, 4)
    assert answer("9" * 9, "9" * 9) == (10**9 - 1) ** 2
