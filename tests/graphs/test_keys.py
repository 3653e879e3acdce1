"""Keys of subgraphs: equal exactly for equal computations, in any order and under any names."""

import hashlib

import networkx as nx
import numpy as np
from hypothesis import given, settings, strategies as st

from recombine.graphs.graph import Graph, Node
from recombine.graphs.keys import subgraph_keys


def written_out(graph, place):
    """The computation of a node as a tree: what is used twice is there twice."""
    tree = nx.DiGraph()

    def add(at):
        node, own = graph.nodes[at], len(tree)
        tree.add_node(own, what=(node.operation_name, node.value))
        for position, parent in enumerate(graph.parents[at]):
            commutative = node.operation is not None and node.operation.commutative
            tree.add_edge(add(parent), own, position=0 if commutative else position)
        return own

    add(place)
    return tree


def same(left, right):
    return nx.is_isomorphic(
        left,
        right,
        node_match=lambda one, two: one["what"] == two["what"],
        edge_match=lambda one, two: one["position"] == two["position"],
    )


@settings(deadline=None, max_examples=60)
@given(first=st.integers(0, 10**6), second=st.integers(0, 10**6))
def test_keys_are_equal_exactly_where_computations_are_isomorphic(random_graph, first, second):
    trees, keys = [], []
    for seed in (first, second):
        graph = random_graph(seed, most=6)
        trees += [written_out(graph, place) for place in range(len(graph))]
        keys += subgraph_keys(graph).tolist()
    for one in range(len(trees)):
        for two in range(one):
            # Trees of another size are not isomorphic, and need no search.
            alike = len(trees[one]) == len(trees[two]) and same(trees[one], trees[two])
            assert alike == (keys[one] == keys[two])


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), other=st.integers(0, 10**6))
def test_names_order_and_places_of_commuting_parents_do_not_matter(random_graph, seed, other):
    graph, rng = random_graph(seed), np.random.default_rng(other)
    names = {node.name: f"other {at}" for node, at in zip(graph.nodes, rng.permutation(len(graph)), strict=True)}
    changed = []
    for node in graph.nodes:
        parents = [names[parent] for parent in node.parents]
        if node.operation is not None and node.operation.commutative:
            rng.shuffle(parents)
        changed.append(Node(names[node.name], node.operation, tuple(parents), node.value))
    twin = Graph(tuple(changed[place] for place in rng.permutation(len(changed))))
    keys = dict(zip((node.name for node in twin.nodes), subgraph_keys(twin).tolist(), strict=True))
    assert [keys[names[node.name]] for node in graph.nodes] == subgraph_keys(graph).tolist()


def test_order_matters_where_parents_do_not_commute(operations):
    inputs = (Node("a", value=1), Node("b", value=2))

    def key(name, *parents):
        return int(subgraph_keys(Graph((*inputs, Node("c", operations[name], parents))))[-1])

    assert key("plus", "a", "b") == key("plus", "b", "a") != key("plus", "a", "b", "b")
    assert len({key("plus", "a", "b"), key("minus", "a", "b"), key("minus", "b", "a")}) == 3


def test_many_instances_are_hashed_as_one_by_one(random_graph):
    graph = next(graph for graph in map(random_graph, range(100)) if len(graph.inputs) > 2)
    inputs = np.random.default_rng(0).integers(-5, 6, (2, 4, len(graph.inputs)))
    keys = subgraph_keys(graph, inputs)
    assert keys.shape == (2, 4, len(graph))
    for index in np.ndindex(2, 4):
        values = iter(inputs[index].tolist())
        single = Graph(
            tuple(Node(node.name, value=next(values)) if node.operation is None else node for node in graph.nodes)
        )
        assert subgraph_keys(single).tolist() == keys[index].tolist()


def test_keys_are_those_of_plain_integers(operations):
    """Nothing of the process goes into them, so they may be stored beside training data."""

    def named(word):
        return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")

    def mixed(bits):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ bits >> shift) * factor % 2**64
        return bits ^ bits >> 31

    graph = Graph((Node("a", value=-3), Node("b", value=2), Node("c", operations["minus"], ("a", "b"))))
    first, second = mixed(-3 % 2**64 ^ named("input")), mixed(2 ^ named("input"))
    whole = mixed(mixed(named("minus of 2") ^ first) ^ second)
    assert subgraph_keys(graph).tolist() == [first, second, whole]
