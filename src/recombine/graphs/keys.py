"""Keys of subgraphs (a node with all its ancestors): equal keys mean equal computations."""

from __future__ import annotations

import hashlib

import numpy as np
from jaxtyping import Int, UInt64

from recombine.graphs.graph import Graph, inputs_of

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""The multipliers of the finaliser of SplitMix64, which mixes all bits."""


def subgraph_keys(
    graph: Graph, inputs: Int[np.ndarray, "*instances input"] | None = None
) -> UInt64[np.ndarray, "*instances node"]:
    """Hash the computation of each node: its operation, its parents' hashes, and the input values.

    The order of parents counts unless the operation is commutative; names do not count. The cost is linear in the graph,
    and instances of one graph are hashed together. A value that is used twice equals one that is computed twice in the same
    way. Keys have 64 bits and are the same in every process. Among a million different computations the probability of
    a collision is about 3 in 10^8.

    Args:
        graph: The graph.
        inputs: Values of the inputs of any number of instances; the graph's own by default.

    Returns:
        One key per node, along the last axis.
    """
    given = inputs_of(graph, inputs)
    rows = given.reshape(-1, len(graph.inputs)).astype(np.uint64)
    keys = np.zeros((len(rows), len(graph)), np.uint64)
    keys[:, graph.inputs] = _mixed(rows ^ _named("input"))
    for index in graph.steps:
        operation = graph.nodes[index].operation
        assert operation is not None
        parents = keys[:, graph.parents[index]]
        if operation.commutative:
            parents = np.sort(parents, axis=1)
        key = np.full(len(rows), _named(f"{operation.name} of {parents.shape[1]}"))
        for parent in range(parents.shape[1]):
            key = _mixed(key ^ parents[:, parent])
        keys[:, index] = key
    return keys.reshape(*given.shape[:-1], len(graph))


def _named(word: str) -> np.uint64:
    return np.frombuffer(hashlib.blake2b(word.encode(), digest_size=8).digest(), "<u8")[0].astype(np.uint64)


def _mixed(bits: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """Mix bits by a bijection, so that similar values become very different."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * SECOND
        return bits ^ (bits >> np.uint64(31))
