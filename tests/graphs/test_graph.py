"""Graphs: order, depths and values against networkx, and what is refused."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, Node, Operation, evaluate

ALL = Operation("all", lambda *parts: np.sum(np.stack(parts), axis=0), 1, None)


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


@settings(deadline=None, max_examples=60)
@given(edges=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12), seed=st.integers(0, 1000))
def test_a_cycle_is_refused_and_named(edges, seed):
    other = nx.DiGraph(sorted(edges))
    other.add_nodes_from(range(6))
    nodes = [
        Node(str(at), ALL, tuple(str(parent) for parent in other.predecessors(at)))
        if other.in_degree(at)
        else Node(str(at), value=1)
        for at in np.random.default_rng(seed).permutation(6).tolist()
    ]
    if nx.is_directed_acyclic_graph(other):
        assert len(Graph(tuple(nodes))) == 6
        return
    with pytest.raises(BadInput, match="cycle") as caught:
        Graph(tuple(nodes))
    named = [int(word.strip("'.")) for word in caught.value.message.split(": ")[1].split(", ")]
    assert named[0] == named[-1]
    assert all(other.has_edge(parent, child) for child, parent in itertools.pairwise(named))


def test_a_topological_order_is_kept():
    nodes = (Node("b", value=2), Node("a", value=1), Node("d", ALL, ("a", "b")), Node("c", ALL, ("b",)))
    assert Graph(nodes).nodes == nodes
    assert [node.name for node in Graph(nodes[::-1]).nodes] == ["b", "c", "a", "d"]


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        ((), "needs nodes, got none"),
        ((Node("a", value=1), Node("a", value=2)), "Two nodes are called 'a'"),
        ((Node("a", value=1), Node("b", ALL, ("aa",))), "'b' has the parent 'aa', which is not a node"),
        ((Node("a"),), "'a' has no operation"),
        ((Node("a", value=1), Node("b", ALL, ("a",), value=1)), "'b' is a step"),
        ((Node("a", value=1), Node("b", ALL)), "'all' takes 1 or more parents, but the node 'b' has 0: none"),
        ((Node("a", ALL, ("a",)),), "'a', 'a'"),
    ],
)
def test_invalid_graphs_are_refused(nodes, match):
    with pytest.raises(BadInput, match=match):
        Graph(nodes)


def test_wrong_numbers_of_parents_are_named(operations):
    inputs = tuple(Node(name, value=1) for name in "abcd")
    for operation, parents, wanted in (("minus", "abc", "2"), ("plus", "abcd", "2 to 3"), ("double", "ab", "1")):
        with pytest.raises(BadInput, match=f"takes {wanted} parents, but the node 'x' has {len(parents)}: 'a'"):
            Graph((*inputs, Node("x", operations[operation], tuple(parents))))


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
    graph = Graph(tuple(reversed(chain)))
    assert graph.depth == 4999
    assert evaluate(graph)[-1] == 1


def test_inputs_may_be_lists_and_of_any_type_of_whole_numbers():
    graph = Graph((Node("a", value=1), Node("b", value=2), Node("c", ALL, ("a", "b"))))
    assert evaluate(graph, [[1, 2], [3, 4]]).tolist() == [[1, 2, 3], [3, 4, 7]]
    for kind in (np.int8, np.uint8, np.uint64):
        assert evaluate(graph, np.array([100, 100], kind)).tolist() == [100, 100, 200]
    with pytest.raises(BadInput, match="rows differ in length"):
        evaluate(graph, [[1, 2], [3]])
    for odd in ([1, 2.5], ["1", "2"], [1, 2**64]):
        with pytest.raises(BadInput, match="The values of inputs must be 64-bit integers"):
            evaluate(graph, odd)
