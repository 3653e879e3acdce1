"""Error rates of single steps, and the accuracy of long chains."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.graphs.bound import StepRates, accuracy_bound, kind_of, predicted_accuracy, rates_by_step
from recombine.graphs.dynamic_programming import maximum_sum_graph
from recombine.graphs.graph import Graph, Node, evaluate
from recombine.graphs.labels import node_labels

CHANCES = st.floats(0.01, 0.99)


def all_steps(graph, labels):
    return sum(rates_by_step(graph, labels).values(), StepRates(0, 0, 0, 0))


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
    nodes = [Node("0", value=0), *(Node(str(at), operations["double"], (str(at - 1),)) for at in range(1, length))]
    graph = Graph(tuple(nodes))
    stated, right = np.zeros((200, length), np.int64), np.ones(200, bool)
    for at in range(1, length):
        right = np.where(right, rng.random(200) >= 0.1, rng.random(200) < 0.3)
        stated[:, at] = ~right
    rates = all_steps(graph, node_labels(graph, stated))
    assert rates.error == pytest.approx(0.1, abs=0.01)
    assert rates.recovery == pytest.approx(0.3, abs=0.01)
    assert rates.bound == pytest.approx((stated[:, 50:] == 0).mean(), abs=0.01)


def test_rates_by_hand():
    graph = maximum_sum_graph([1, 2])  # best[1] = 2, best[0] = 2, label[0] = 2, label[1] = 1
    stated = evaluate(graph)
    stated[graph.index["best[1]"]] = 5
    rates = all_steps(graph, node_labels(graph, stated))
    # best[0] rests on the wrong value and is right; so is label[1]; label[0] rests on right values.
    assert rates == StepRates(sound=2, slips=1, unsound=2, mended=2)
    assert rates + rates == StepRates(4, 2, 4, 4)
    nothing = all_steps(graph, node_labels(graph, evaluate(graph)))
    assert nothing.error == 0 and math.isnan(nothing.recovery) and nothing.bound == 1


@settings(deadline=None, max_examples=40)
@given(error=st.floats(0.0, 0.5), recovery=st.floats(0.0, 0.5), length=st.integers(2, 30))
def test_in_a_chain_the_prediction_is_what_the_chain_has(operations, error, recovery, length):
    nodes = [Node("0", value=0), *(Node(str(at), operations["double"], (str(at - 1),)) for at in range(1, length))]
    own = StepRates(10_000, round(10_000 * error), 10_000, round(10_000 * recovery))
    found = predicted_accuracy(Graph(tuple(nodes)), {("double", 1): own}, draws=40_000)
    e, c = own.error, own.recovery
    chain = np.array([[1 - e, e], [c, 1 - c]])
    wanted = [np.linalg.matrix_power(chain, at)[0, 0] for at in range(length)]
    np.testing.assert_allclose(found, wanted, atol=0.015)
    if error + recovery > 0.3 and length == 30:
        assert found[-1] == pytest.approx(accuracy_bound(e, c), abs=0.016)


@pytest.mark.parametrize("seed", range(4))
def test_the_prediction_is_exact_over_all_ways_to_err(seed):
    """Against the sum over all answers, right or wrong at each step, of their chances."""
    rng = np.random.default_rng(seed)
    graph = maximum_sum_graph([0] * 4)
    kinds = {kind_of(graph, step) for step in graph.steps}
    assert {("best sum", 1), ("best sum", 2), ("best sum", 3)} < kinds, "as many kinds as numbers of parents"
    slips, mended = rng.integers(0, 500, (2, len(kinds))).tolist()
    rates = {kind: StepRates(1000, slips[at], 1000, mended[at]) for at, kind in enumerate(sorted(kinds))}
    wanted = np.zeros(len(graph))
    wanted[list(graph.inputs)] = 1
    for way in itertools.product((True, False), repeat=len(graph.steps)):
        right = dict.fromkeys(graph.inputs, True) | dict(zip(graph.steps, way, strict=True))
        chance = 1.0
        for step in graph.steps:
            own = rates[kind_of(graph, step)]
            sound = all(right[parent] for parent in graph.parents[step])
            good = 1 - own.error if sound else own.recovery
            chance *= good if right[step] else 1 - good
        wanted[[step for step in graph.steps if right[step]]] += chance
    np.testing.assert_allclose(predicted_accuracy(graph, rates, draws=40_000), wanted, atol=0.015)


def test_kinds_without_data_have_the_rates_of_all_steps():
    graph = maximum_sum_graph([0] * 3)
    known = {("best sum", 1): StepRates(1000, 100, 0, 0)}
    found = predicted_accuracy(graph, known)
    # Nothing was ever mended, so that a step is right if it and all before it are.
    assert found[graph.index["best[1]"]] == pytest.approx(0.9**2, abs=0.02)


def test_rates_of_single_steps_add_up():
    graph = maximum_sum_graph([1, 2, 3])
    labels = np.random.default_rng(0).integers(0, 4, (50, len(graph)))
    single = rates_by_step(graph, labels)
    assert set(single) == set(graph.steps)
    assert all(one.sound + one.unsound == 50 for one in single.values())
