"""What the tests of graphs share: small random graphs, and graphs as networkx knows them."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from recombine.graphs.graph import Graph, Node, Operation

MINUS = Operation("minus", np.subtract)
PLUS = Operation("plus", lambda *parts: np.sum(np.stack(parts), axis=0), commutative=True)
DOUBLE = Operation("double", lambda value: 2 * value)
PARENTS = {"minus": (2, 2), "plus": (2, 3), "double": (1, 1)}
"""The fewest and the most parents of a step."""


@pytest.fixture(scope="session")
def operations() -> dict[str, Operation]:
    return {operation.name: operation for operation in (MINUS, PLUS, DOUBLE)}


@pytest.fixture(scope="session")
def random_graph() -> Callable[..., Graph]:
    """A graph of few nodes and few different values, so that equal parts are common."""

    def make(seed: int, most: int = 9) -> Graph:
        rng = np.random.default_rng(seed)
        nodes = [Node("n0", value=int(rng.integers(3)))]
        for at in range(1, int(rng.integers(2, most + 1))):
            if rng.random() < 0.35:
                nodes.append(Node(f"n{at}", value=int(rng.integers(3))))
                continue
            operation = (MINUS, PLUS, DOUBLE)[rng.integers(3)]
            least, most_parents = PARENTS[operation.name]
            count = int(rng.integers(least, most_parents + 1))
            parents = tuple(f"n{parent}" for parent in rng.integers(0, at, count))
            nodes.append(Node(f"n{at}", operation, parents))
        return Graph(tuple(nodes))

    return make


@pytest.fixture(scope="session")
def as_networkx() -> Callable[[Graph], nx.DiGraph]:
    def make(graph: Graph) -> nx.DiGraph:
        made = nx.DiGraph()
        made.add_nodes_from(range(len(graph)))
        made.add_edges_from((parent, child) for child, ps in enumerate(graph.parents) for parent in ps)
        return made

    return make
