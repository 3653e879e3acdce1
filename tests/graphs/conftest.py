"""What the tests of graphs share: small random graphs, and graphs as networkx knows them."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from recombine.graphs.graph import Graph, Node, Operation

MINUS = Operation("minus", np.subtract, 2, 2)
PLUS = Operation("plus", lambda *parts: np.sum(np.stack(parts), axis=0), 2, 3, commutative=True)
DOUBLE = Operation("double", lambda value: 2 * value, 1, 1)


@pytest.fixture(scope="session")
def operations() -> dict[str, Operation]:
    return {operation.name: operation for operation in (MINUS, PLUS, DOUBLE)}


@pytest.fixture(scope="session")
def random_graph() -> Callable[..., Graph]:
    """A graph of few nodes and few different values, so that equal parts are common; nodes come in any order."""

    def make(seed: int, most: int = 9) -> Graph:
        rng = np.random.default_rng(seed)
        nodes = [Node("n0", value=int(rng.integers(3)))]
        for at in range(1, int(rng.integers(2, most + 1))):
            if rng.random() < 0.35:
                nodes.append(Node(f"n{at}", value=int(rng.integers(3))))
                continue
            operation = (MINUS, PLUS, DOUBLE)[rng.integers(3)]
            assert operation.most is not None
            count = int(rng.integers(operation.least, operation.most + 1))
            parents = tuple(f"n{parent}" for parent in rng.integers(0, at, count))
            nodes.append(Node(f"n{at}", operation, parents))
        return Graph(tuple(nodes[place] for place in rng.permutation(len(nodes))))

    return make


@pytest.fixture(scope="session")
def as_networkx() -> Callable[[Graph], nx.DiGraph]:
    def make(graph: Graph) -> nx.DiGraph:
        made = nx.DiGraph()
        made.add_nodes_from(range(len(graph)))
        made.add_edges_from((parent, child) for child, ps in enumerate(graph.parents) for parent in ps)
        return made

    return make
