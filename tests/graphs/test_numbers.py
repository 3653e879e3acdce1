"""Numbers that are not whole are refused, not truncated, also without type checks."""

import subprocess
import sys

PROGRAM = """
import numpy as np
from recombine.errors import BadInput
from recombine.graphs.dynamic_programming import maximum_sum_graph
from recombine.graphs.graph import Graph, Node, evaluate
from recombine.graphs.multiplication import multiplication_graph

def refused(make, said):
    try:
        make()
    except BadInput as error:
        assert said in error.message, error.message
    else:
        raise AssertionError(said)

for value in (1.7, 2.0, "3", 2**63):
    refused(lambda: Node("x", value=value), "The value of the node 'x' must be a 64-bit integer, got")
refused(lambda: maximum_sum_graph([1.5, 2]), "'entry[0]' must be a 64-bit integer, got 1.5")
refused(lambda: maximum_sum_graph(np.array([1.0, 2.0])), "'entry[0]' must be a 64-bit integer")
graph = Graph((Node("a", value=np.int8(100)),))
assert type(graph.nodes[0].value) is int and evaluate(graph).tolist() == [100]
refused(lambda: evaluate(graph, np.array([1.5])), "The values of inputs must be 64-bit integers")
refused(lambda: evaluate(graph, 1), "has the shape ()")
assert multiplication_graph(np.int64(23), 45) == multiplication_graph("23", "45")
for wrong in (2.0, None, [2]):
    refused(lambda: multiplication_graph("12", wrong), "decimal digits")
"""


def test_numbers_that_are_not_whole_are_refused():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
