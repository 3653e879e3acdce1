from xml.etree import ElementTree

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.figures.computation_graph import computation_graph_info, draw_computation_graph
from recombine.figures.save import save_figure
from recombine.graphs.dynamic_programming import maximum_sum_graph
from recombine.graphs.graph import Graph, Node, Operation, evaluate
from recombine.graphs.multiplication import multiplication_graph
from recombine.graphs.scratchpad import MISSING

ODD = 'a.b["c"] <i>&'


@pytest.fixture
def graph():
    return maximum_sum_graph([1, -2, 4])


def stated(graph, **changes):
    values = evaluate(graph)
    for name, value in changes.items():
        values[graph.index[f"{name[:-1]}[{name[-1]}]"]] = value
    return values


def test_nodes_have_their_values_and_labels(graph):
    info = computation_graph_info(graph, stated(graph, best2=-3, label1=MISSING))
    nodes = info.nodes.set_index("name")
    assert nodes.loc["entry[1]", ["text", "label", "note"]].tolist() == ["\N{MINUS SIGN}2", "input", ""]
    assert nodes.loc["best[2]", ["text", "label", "note"]].tolist() == ["\N{MINUS SIGN}3", "local", "(4)"]
    assert nodes.loc["label[1]", ["text", "note"]].tolist() == ["\N{EN DASH}", "(2)"]
    assert nodes.loc["label[0]", "operation"] == "first label"
    assert info.labels == ("input", "restoration", "local")
    for words in ("restoration has the right value", "local error", "brackets", "could not be read", "Orange"):
        assert words in info.caption
    assert "propagated" not in info.caption


def test_edges_run_from_parent_to_child_and_wrong_ones_are_known(graph):
    info = computation_graph_info(graph, stated(graph, best2=9))
    nodes = info.nodes.set_index("name")
    ends = info.edges.groupby("edge")
    assert len(ends) == sum(map(len, graph.parents))
    wrong = ends.first()[ends.first()["wrong"]]
    place = nodes.loc["best[2]"]
    assert (wrong["x"] == place["x"]).all() and (wrong["y"] == place["y"]).all()
    assert len(wrong) == 4  # best[1], best[0], label[0], label[2]
    assert all(np.diff(part["x"]).tolist() == [1] * (len(part) - 1) for _, part in ends)


def test_without_statements_values_are_true(graph):
    info = computation_graph_info(graph, write=lambda value: f"<{value}>")
    assert info.labels == ("input", "step")
    assert info.nodes["text"].tolist() == [f"<{value}>" for value in evaluate(graph)]
    assert "correct" not in info.caption and "Orange" not in info.caption


def test_several_instances_are_refused(graph):
    with pytest.raises(BadInput, match=r"9 nodes, .* \(2, 9\)"):
        computation_graph_info(graph, np.zeros((2, 9), np.int64))


@pytest.mark.parametrize(
    "drawn",
    [
        lambda: (maximum_sum_graph([1, -2, 4]), None),
        lambda: (multiplication_graph("999", "999"), np.full(len(multiplication_graph("999", "999")), MISSING)),
        lambda: (maximum_sum_graph([5] * 20), None),
        lambda: (Graph((Node("alone", value=10**12),)), None),
        lambda: (None, None),
    ],
)
def test_any_graph_draws_something(drawn):
    info = computation_graph_info(*drawn())
    assert info.caption
    assert draw_computation_graph(info).to_dict()


def test_names_from_data_are_text(tmp_path):
    double = Operation("double", lambda value: 2 * value, 1, 1)
    graph = Graph((Node("a", value=1), Node("b", double, ("a",))))
    info = computation_graph_info(graph, write=lambda value: f"{value}{ODD}")
    text = save_figure(draw_computation_graph(info), tmp_path / "graph.svg").read_text()
    words = list(ElementTree.fromstring(text).itertext())
    assert f"2{ODD}" in words and "NaN" not in text
    empty = save_figure(draw_computation_graph(computation_graph_info(None)), tmp_path / "empty.svg")
    assert "yet" in empty.read_text()
