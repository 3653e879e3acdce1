"""Rates of single steps, and what they allow in the long run."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.errors import BadInput
from recombine.graphs.bound import StepRates, accuracy_bound, step_rates
from recombine.graphs.dynamic_programming import maximum_sum_graph
from recombine.graphs.graph import Graph, Node, evaluate
from recombine.graphs.labels import node_labels

CHANCES = st.floats(0.01, 0.99)


@settings(deadline=None, max_examples=60)
@given(error=CHANCES, recovery=CHANCES)
def test_the_bound_is_where_the_chain_settles(error, recovery):
    chain = np.array([[1 - error, error], [recovery, 1 - recovery]])
    settled = np.linalg.matrix_power(chain, 4096)
    assert accuracy_bound(error, recovery) == pytest.approx(settled[0, 0], abs=1e-9)


def test_the_ends():
    assert accuracy_bound(0, 0) == accuracy_bound(0, 0.3) == 1
    assert accuracy_bound(0.2, 0) == 0
    assert math.isnan(accuracy_bound(0.2, math.nan))
    with pytest.raises(BadInput, match=r"error of a step .* got 1\.5"):
        accuracy_bound(1.5, 0)


def test_rates_of_a_long_chain_give_back_what_made_it(operations):
    rng, length = np.random.default_rng(0), 400
    nodes = [
        Node("0", value=0),
        *(Node(str(at), operations["double"], (str(at - 1),)) for at in range(1, length)),
    ]
    graph = Graph(tuple(nodes))
    stated, right = np.zeros((200, length), np.int64), np.ones(200, bool)
    for at in range(1, length):
        right = np.where(right, rng.random(200) >= 0.1, rng.random(200) < 0.3)
        stated[:, at] = ~right
    rates = step_rates(graph, node_labels(graph, stated))
    assert rates.error == pytest.approx(0.1, abs=0.01)
    assert rates.recovery == pytest.approx(0.3, abs=0.01)
    assert rates.bound == pytest.approx((stated[:, 50:] == 0).mean(), abs=0.01)


def test_rates_by_hand():
    graph = maximum_sum_graph([1, 2])  # best[1] = 2, best[0] = 2, label[0] = 2, label[1] = 1
    stated = evaluate(graph)
    stated[graph.numbers["best[1]"]] = 5
    rates = step_rates(graph, node_labels(graph, stated))
    # best[0] rests on the wrong value and is right; so is label[1]; label[0] rests on right values.
    assert rates == StepRates(sound=2, slips=1, unsound=2, mended=2)
    assert rates + rates == StepRates(4, 2, 4, 4)
    nothing = step_rates(graph, node_labels(graph, evaluate(graph)))
    assert nothing.error == 0 and math.isnan(nothing.recovery) and nothing.bound == 1
