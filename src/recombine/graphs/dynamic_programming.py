"""The largest sum of non-adjacent entries of a list, as a graph: best sums backwards, then labels forwards."""

from __future__ import annotations

from collections.abc import Sequence

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, Node, Operation, Values
from recombine.graphs.scratchpad import NUMBER, Scratchpad

ENTRIES = range(-5, 6)
"""The range of entries in the literature."""
TAKEN, LEFT_OUT = 1, 2
"""The labels of entries."""


def _best(entry: Values, following: Values = 0, beyond: Values = 0) -> Values:
    arrays = entry.__array_namespace__()
    return arrays.maximum(arrays.maximum(entry + beyond, following), 0)


def _first_label(best: Values, entry: Values, beyond: Values = 0) -> Values:
    return entry.__array_namespace__().where(best == entry + beyond, TAKEN, LEFT_OUT)


def _label(best: Values, entry: Values, previous: Values, beyond: Values = 0) -> Values:
    taken = _first_label(best, entry, beyond)
    return entry.__array_namespace__().where(previous == TAKEN, LEFT_OUT, taken)


BEST = Operation("best sum", _best, 1, 3)
"""From an entry, the best sum of the entries after it, and the best sum of those after its neighbour."""
FIRST_LABEL = Operation("first label", _first_label, 2, 3)
"""From the best sum that starts at an entry, the entry, and the best sum of those after its neighbour."""
LABEL = Operation("label", _label, 3, 4)
"""The same, with the label of the previous entry as third parent."""


def maximum_sum_graph(entries: Sequence[int]) -> Graph:
    """Build the graph for a list: `best[i]` is the best sum of entries i and later, `label[i]` whether entry i is taken.

    best[i] = max(best[i + 1], entry[i] + best[i + 2], 0). An entry is taken (1) if that gives the best sum and the
    previous entry is not taken; so the labels are the lexicographically smallest of the best choices.

    Args:
        entries: The list. Lists of one length share a graph: pass other entries as `inputs` of `evaluate`.

    Returns:
        The graph.
    """
    length = len(entries)
    if not length:
        raise BadInput("The list is empty.", fix="give i least one entry")
    nodes = [Node(f"entry[{i}]", value=entry) for i, entry in enumerate(entries)]
    for i in reversed(range(length)):
        later = tuple(f"best[{other}]" for other in (i + 1, i + 2) if other < length)
        nodes.append(Node(f"best[{i}]", BEST, (f"entry[{i}]", *later)))
    for i in range(length):
        before = (f"label[{i - 1}]",) if i else ()
        beyond = (f"best[{i + 2}]",) if i + 2 < length else ()
        parents = (f"best[{i}]", f"entry[{i}]", *before, *beyond)
        nodes.append(Node(f"label[{i}]", LABEL if i else FIRST_LABEL, parents))
    return Graph(tuple(nodes))


def maximum_sum_scratchpad(graph: Graph) -> Scratchpad:
    """One token per step: the best sums from the last entry to the first, then the labels."""
    return Scratchpad(graph, (NUMBER,) * len(graph.steps))
