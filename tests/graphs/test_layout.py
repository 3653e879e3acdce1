"""Positions in a figure: layers, distances, and edges between nodes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.graphs.dynamic_programming import maximum_sum_graph
from recombine.graphs.graph import Graph, Node
from recombine.graphs.layout import NARROW, layout
from recombine.graphs.multiplication import multiplication_graph


def check(graph):
    found = layout(graph)
    for step in graph.steps:
        assert found.x[step] == graph.depths[step]
    for node in graph.inputs:
        takers = [found.x[child] for child, parents in enumerate(graph.parents) if node in parents]
        assert found.x[node] == min(takers, default=1) - 1
    assert found.y.min() >= 0
    for column in (np.sort(found.y[found.x == at]) for at in set(found.x)):
        assert (np.diff(column) >= 1 - 1e-9).all()
    assert set(found.routes) == {(parent, child) for child, ps in enumerate(graph.parents) for parent in ps}
    for (parent, child), route in found.routes.items():
        assert route[0] == (found.x[parent], found.y[parent])
        assert route[-1] == (found.x[child], found.y[child])
        assert [x for x, _ in route] == list(range(int(found.x[parent]), int(found.x[child]) + 1))
        for x, y in route[1:-1]:  # It passes no node.
            assert (np.abs(found.y[found.x == x] - y) >= (1 + NARROW) / 2 - 1e-9).all()


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_every_node_and_edge_has_a_position(random_graph, seed):
    check(random_graph(seed))


def test_the_graphs_of_the_tasks():
    check(maximum_sum_graph([1, -2, 3, 4, 5]))
    check(multiplication_graph("234", "56"))


def test_equal_graphs_have_equal_layouts():
    one, two = (layout(multiplication_graph("23", "45")) for _ in range(2))
    assert one.y.tolist() == two.y.tolist() and one.routes == two.routes


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_has_no_crossings(operations, seed):
    """Whatever order its leaves come in."""
    order = np.random.default_rng(seed).permutation(8).tolist()
    nodes = [Node(f"3.{at}", value=at) for at in order]
    for level in (2, 1, 0):
        nodes += [
            Node(f"{level}.{at}", operations["minus"], (f"{level + 1}.{2 * at}", f"{level + 1}.{2 * at + 1}"))
            for at in range(2**level)
        ]
    graph = Graph(tuple(nodes))
    found = layout(graph)
    edges = [(found.x[a], found.y[a], found.y[b]) for a, b in found.routes]
    for (x, left, right), (x2, left2, right2) in itertools.combinations(edges, 2):
        assert x != x2 or (left - left2) * (right - right2) >= 0
