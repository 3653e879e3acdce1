"""Labels of nodes: by hand, and by their definition as a recursion."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, Node, evaluate
from recombine.graphs.labels import LABELS, node_labels
from recombine.graphs.scratchpad import MISSING


@pytest.fixture(scope="module")
def graph(operations):
    """a = 1, b = 2, c = a + b = 3, d = 2 c = 6, e = d - a = 5."""
    return Graph(
        (
            Node("a", value=1),
            Node("b", value=2),
            Node("c", operations["plus"], ("a", "b")),
            Node("d", operations["double"], ("c",)),
            Node("e", operations["minus"], ("d", "a")),
        )
    )


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ([1, 2, 3, 6, 5], "correct correct correct correct correct"),
        # c is wrong though its parents are right; d follows from it, and so does e.
        ([1, 2, 4, 8, 7], "correct correct local propagation propagation"),
        # d is right again; e is right too, but d is not correct.
        ([1, 2, 4, 6, 5], "correct correct local restoration restoration"),
        # d follows from nothing; e is right again.
        ([1, 2, 4, 9, 5], "correct correct local local restoration"),
        # An input that is stated wrongly is a local error; what follows from it is none.
        ([2, 2, 4, 8, 6], "local correct propagation propagation propagation"),
        # A wrong value by chance as the operation on one wrong parent would have it.
        ([1, 2, 3, 7, 6], "correct correct correct local propagation"),
        ([1, 2, MISSING, 6, 5], "correct correct local restoration restoration"),
        ([1, 2, MISSING, 0, 5], "correct correct local local restoration"),
        ([1, 2, 0, MISSING, -1], "correct correct local local local"),
    ],
)
def test_worked_example(graph, stated, wanted):
    labels = node_labels(graph, np.array(stated))
    assert " ".join(LABELS[label] for label in labels) == wanted


@st.composite
def statements(draw):
    """A seed of a graph, and for each of its nodes: the truth, what follows, another number, or nothing."""
    return draw(st.integers(0, 10**6)), draw(st.lists(st.sampled_from("ttffwm"), min_size=9, max_size=9))


def stated_of(graph, ways):
    true, told = evaluate(graph), np.zeros(len(graph), np.int64)
    for place, way in zip(range(len(graph)), ways, strict=False):
        operation = graph.nodes[place].operation
        parents = [told[parent : parent + 1] for parent in graph.parents[place]]
        if way == "f" and operation is not None and MISSING not in told[list(graph.parents[place])]:
            told[place] = operation.apply(*parents)[0]
        else:
            told[place] = {"w": 17, "m": MISSING}.get(way, true[place])
    return told


@settings(deadline=None, max_examples=60)
@given(said=statements())
def test_by_definition(random_graph, said):
    seed, ways = said
    graph = random_graph(seed)
    stated, true = stated_of(graph, ways), evaluate(graph)
    labels = [LABELS[label] for label in node_labels(graph, stated)]

    def correct(place):
        return stated[place] == true[place] and all(map(correct, graph.parents[place]))

    for place, node in enumerate(graph.nodes):
        parents = [stated[parent] for parent in graph.parents[place]]
        if correct(place):
            wanted = "correct"
        elif stated[place] == true[place]:
            wanted = "restoration"
        elif node.operation is None or MISSING in (*parents, stated[place]):
            wanted = "local"
        else:
            follows = node.operation.apply(*(np.array([parent]) for parent in parents))[0] == stated[place]
            wanted = "propagation" if follows else "local"
        assert labels[place] == wanted


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_all_right_is_all_correct(random_graph, seed):
    graph = random_graph(seed)
    labels = node_labels(graph, evaluate(graph))
    assert set(labels.tolist()) == {0}


def test_many_instances_at_once_equal_one_by_one(graph):
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 3, (50, 2))
    stated = evaluate(graph, inputs) + (rng.random((50, 5)) < 0.3) * np.array([0, 0, 1, 1, 1])
    labels = node_labels(graph, stated, inputs)
    for one in range(50):
        assert node_labels(graph, stated[one], inputs[one]).tolist() == labels[one].tolist()


def test_another_number_of_nodes_is_refused(graph):
    with pytest.raises(BadInput, match=r"5 nodes, .* \(4,\)"):
        node_labels(graph, np.zeros(4, np.int64))
