"""The largest sum of entries of a list, no two of them neighbours, as a graph: best sums backwards, labels forwards."""

from __future__ import annotations

from collections.abc import Sequence

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, Node, Operation, Values
from recombine.graphs.scratchpad import NUMBER, Scratchpad

ENTRIES = range(-5, 6)
"""The entries of the lists of the literature."""
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
"""Of an entry, the best sum of the entries behind it, and that of those behind its neighbour."""
FIRST_LABEL = Operation("first label", _first_label, 2, 3)
"""Of the best sum from an entry on, the entry, and the best sum of those behind its neighbour."""
LABEL = Operation("label", _label, 3, 4)
"""The same, with the label of the entry before in third place."""


def maximum_sum_graph(entries: Sequence[int]) -> Graph:
    """The steps for a list: `best[i]` is the best sum of entries i and later, `label[i]` says whether entry i is taken.

    best[i] = max(best[i + 1], entry[i] + best[i + 2], 0). An entry is taken (1) where that gives the best sum and the
    one before was not; so of several best choices the labels are the lexicographically smallest. Lists of one length
    share a shape: give theirs as `inputs`.
    """
    length = len(entries)
    if not length:
        raise BadInput("A list without entries has no steps.", fix="give at least one entry")
    nodes = [Node(f"entry[{at}]", value=entry) for at, entry in enumerate(entries)]
    for at in reversed(range(length)):
        later = tuple(f"best[{other}]" for other in (at + 1, at + 2) if other < length)
        nodes.append(Node(f"best[{at}]", BEST, (f"entry[{at}]", *later)))
    for at in range(length):
        before = (f"label[{at - 1}]",) if at else ()
        beyond = (f"best[{at + 2}]",) if at + 2 < length else ()
        parents = (f"best[{at}]", f"entry[{at}]", *before, *beyond)
        nodes.append(Node(f"label[{at}]", LABEL if at else FIRST_LABEL, parents))
    return Graph(tuple(nodes))


def maximum_sum_scratchpad(graph: Graph) -> Scratchpad:
    """A token for each step: the best sums from the last entry to the first, then the labels."""
    return Scratchpad(graph, (NUMBER,) * len(graph.steps))
