"""A key for each node with all its ancestors: equal keys, equal computations."""

from __future__ import annotations

import hashlib

import numpy as np
from jaxtyping import Int, UInt64

from recombine.graphs.graph import Graph, inputs_of

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""The multipliers of the finaliser of SplitMix64, which spreads every bit over all others."""


def subgraph_keys(
    graph: Graph, inputs: Int[np.ndarray, "*instances input"] | None = None
) -> UInt64[np.ndarray, "*instances node"]:
    """A hash of each node's computation: its operation, its parents' hashes, and at the bottom the input values.

    The parents' order counts unless the operation is commutative; names do not. Each hash is made once of those of
    the parents, so the work is linear in the graph; instances of one shape are hashed together. What is compared is
    the computation written out: a value that is used twice and one that is computed twice in the same way are the
    same. Keys have 64 bits and are the same in every process; among a million different computations some two share
    one with a chance of about 3 in 10^8.
    """
    given = inputs_of(graph, inputs)
    rows = given.reshape(-1, len(graph.inputs)).astype(np.uint64)
    keys = np.zeros((len(rows), len(graph)), np.uint64)
    keys[:, graph.inputs] = _mixed(rows ^ _named("input"))
    for place in graph.steps:
        operation = graph.nodes[place].operation
        assert operation is not None
        parents = keys[:, graph.parents[place]]
        if operation.commutative:
            parents = np.sort(parents, axis=1)
        key = np.full(len(rows), _named(f"{operation.name} of {parents.shape[1]}"))
        for parent in range(parents.shape[1]):
            key = _mixed(key ^ parents[:, parent])
        keys[:, place] = key
    return keys.reshape(*given.shape[:-1], len(graph))


def _named(word: str) -> np.uint64:
    return np.frombuffer(hashlib.blake2b(word.encode(), digest_size=8).digest(), "<u8")[0].astype(np.uint64)


def _mixed(bits: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """The bits, so spread that near ones lie far apart; no two of them are joined."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * SECOND
        return bits ^ (bits >> np.uint64(31))
