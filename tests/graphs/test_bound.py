"""Rates of single steps, and what they allow in the long run."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.errors import BadInput
from recombine.graphs.bound import StepRates, accuracy_bound, highest_accuracy, rates_by_step, step_rates
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


@settings(deadline=None, max_examples=40)
@given(error=st.floats(0.0, 0.5), recovery=st.floats(0.0, 0.5), length=st.integers(2, 30))
def test_in_a_chain_the_most_is_what_the_chain_has(operations, error, recovery, length):
    nodes = [
        Node("0", value=0),
        *(Node(str(at), operations["double"], (str(at - 1),)) for at in range(1, length)),
    ]
    rates = {"double": StepRates(10_000, round(10_000 * error), 10_000, round(10_000 * recovery))}
    found = highest_accuracy(Graph(tuple(nodes)), rates)
    e, c = rates["double"].error, rates["double"].recovery
    chain = np.array([[1 - e, e], [c, 1 - c]])
    wanted = [np.linalg.matrix_power(chain, at)[0, 0] for at in range(length)]
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    if error + recovery > 0.3 and length == 30:
        assert found[-1] == pytest.approx(accuracy_bound(e, c), abs=1e-3)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_steps_that_err_at_random_are_never_right_more_often(seed):
    rng = np.random.default_rng(seed)
    graph = maximum_sum_graph([0] * 6)
    chance = {
        word: (rng.uniform(0, 0.4), rng.uniform(0, 0.5)) for word in ("best sum", "first label", "label")
    }
    right = np.ones((4000, len(graph)), bool)
    for step in graph.steps:
        error, recovery = chance[graph.nodes[step].word]
        sound = right[:, list(graph.parents[step])].all(axis=1)
        right[:, step] = np.where(sound, rng.random(4000) >= error, rng.random(4000) < recovery)
    rates = {
        word: StepRates(10**6, round(10**6 * error), 10**6, round(10**6 * recovery))
        for word, (error, recovery) in chance.items()
    }
    assert (right.mean(axis=0) <= highest_accuracy(graph, rates) + 0.04).all()


def test_rates_of_single_steps_add_up():
    graph = maximum_sum_graph([1, 2, 3])
    labels = np.random.default_rng(0).integers(0, 4, (50, len(graph)))
    single = rates_by_step(graph, labels)
    assert set(single) == set(graph.steps)
    assert sum(single.values(), StepRates(0, 0, 0, 0)) == step_rates(graph, labels)
    assert all(one.sound + one.unsound == 50 for one in single.values())
