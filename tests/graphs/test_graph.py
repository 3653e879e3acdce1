"""Graphs: order, depths and values against networkx, and what is refused."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, Node, Operation, evaluate

ALL = Operation("all", lambda *parts: np.sum(np.stack(parts), axis=0))


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_order_depths_and_width_are_those_of_networkx(random_graph, as_networkx, seed):
    graph = random_graph(seed)
    other = as_networkx(graph)
    assert all(parent < child for parent, child in other.edges)
    layers = [sorted(layer) for layer in nx.topological_generations(other)]
    assert [np.flatnonzero(graph.depths == depth).tolist() for depth in range(graph.depth + 1)] == layers
    assert graph.depth == nx.dag_longest_path_length(other)
    assert sorted((*graph.inputs, *graph.steps)) == list(range(len(graph)))


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        ((Node("a", value=1), Node("a", value=2)), "Two nodes are called 'a'"),
        ((Node("a", value=1), Node("b", ALL, ("aa",))), "parents of 'b' are aa, but before it there are only a"),
        ((Node("b", ALL, ("a",)), Node("a", value=1)), "parents of 'b' are a, but before it there are only no nodes"),
        ((Node("a", ALL, ("a",)),), "parents of 'a' are a"),
        ((Node("a"),), "'a' is neither an input nor a step"),
        ((Node("a", value=1), Node("b", ALL, ("a",), value=1)), "'b' is neither an input nor a step"),
        ((Node("a", value=1), Node("b", ALL)), "'b' is neither an input nor a step"),
        ((Node("a", value=1), Node("b", parents=("a",))), "'b' is neither an input nor a step"),
    ],
)
def test_invalid_graphs_are_refused(nodes, match):
    with pytest.raises(BadInput, match=match):
        Graph(nodes)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_values_equal_a_recursion(random_graph, seed):
    graph = random_graph(seed)
    known = {node.name: node for node in graph.nodes}
    rules = {"minus": lambda a, b: a - b, "plus": lambda *parts: sum(parts), "double": lambda a: 2 * a}

    def value(name):
        node = known[name]
        return node.value if node.operation is None else rules[node.operation_name](*map(value, node.parents))

    wanted = [value(node.name) for node in graph.nodes]
    assert evaluate(graph).tolist() == wanted
    doubled = evaluate(graph, np.stack([graph.input_values, 2 * graph.input_values])[None])
    assert doubled.tolist() == [[wanted, [2 * one for one in wanted]]]  # Every operation here is linear.


def test_inputs_of_another_number_are_refused():
    graph = Graph((Node("a", value=1), Node("b", value=2), Node("c", ALL, ("a", "b"))))
    with pytest.raises(BadInput, match=r"2 inputs, .* shape \(4, 3\)"):
        evaluate(graph, np.zeros((4, 3), np.int64))
    assert evaluate(graph, np.zeros((0, 2), np.int64)).shape == (0, 3)


def test_long_chains_are_no_problem():
    chain = [Node("0", value=1), *(Node(str(at), ALL, (str(at - 1),)) for at in range(1, 5000))]
    graph = Graph(tuple(chain))
    assert graph.depth == 4999
    assert evaluate(graph)[-1] == 1
