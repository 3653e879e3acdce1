"""Subgraphs (a node with all its ancestors): their keys, their training frequency, and its relation to correctness."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from recombine.graphs.graph import Graph, inputs_of
from recombine.spaces.rows import mixed


def subgraph_keys(
    graph: Graph, inputs: Int[np.ndarray, "*instances input"] | None = None
) -> UInt64[np.ndarray, "*instances node"]:
    """Hash the computation of each node: its operation, its parents' hashes, and the input values.

    The order of parents counts unless the operation is commutative; names do not count. The cost is linear in the graph,
    and instances of one graph are hashed together. A value that is used twice equals one that is computed twice in the same
    way. Keys have 64 bits and are the same in every process. Among a million different computations the probability of
    a collision is about 3 in 10^8.

    `inputs` has the values of the inputs of any number of instances, the graph's own by default. There is one key per node,
    along the last axis.
    """
    given = inputs_of(graph, inputs)
    rows = given.reshape(-1, len(graph.inputs)).astype(np.uint64)
    keys = np.zeros((len(rows), len(graph)), np.uint64)
    keys[:, graph.inputs] = mixed(rows ^ _named("input"))
    for index in graph.steps:
        operation = graph.nodes[index].operation
        assert operation is not None
        parents = keys[:, graph.parents[index]]
        if operation.commutative:
            parents = np.sort(parents, axis=1)
        key = np.full(len(rows), _named(f"{operation.name} of {parents.shape[1]}"))
        for parent in range(parents.shape[1]):
            key = mixed(key ^ parents[:, parent])
        keys[:, index] = key
    return keys.reshape(*given.shape[:-1], len(graph))


def _named(word: str) -> np.uint64:
    return np.frombuffer(hashlib.blake2b(word.encode(), digest_size=8).digest(), "<u8")[0].astype(np.uint64)


@dataclass(frozen=True)
class Frequency:
    """The number of occurrences of each subgraph in a list of graphs."""

    keys: UInt64[np.ndarray, " different"]
    """The keys of the subgraphs that occur, in ascending order."""
    counts: Int[np.ndarray, " different"] | Float[np.ndarray, " different"]
    """The number of occurrences, or the sum of the instances' weights."""

    def of(self, keys: UInt64[np.ndarray, "*nodes"]) -> Int[np.ndarray, "*nodes"] | Float[np.ndarray, "*nodes"]:
        """Look up the counts of keys; 0 if a key does not occur."""
        if not len(self.keys):
            return np.zeros(keys.shape, np.int64)
        index = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[index] == keys, self.counts[index], 0)


def count_subgraphs(
    training: Iterable[tuple[Graph, Int[np.ndarray, "_ _"] | None]],
    weights: Iterable[Float[np.ndarray, " _"]] | None = None,
) -> Frequency:
    """Count, by key, the subgraph of every node of every instance. Repeated occurrences in one instance all count.

    Args:
        training: Graphs, each with the inputs of its instances; without inputs the graph itself is the one instance.
        weights: How often the instances of each graph are shown; once by default.
    """
    by_graph = [subgraph_keys(graph, inputs) for graph, inputs in training]
    every = np.concatenate([np.empty(0, np.uint64), *(keys.ravel() for keys in by_graph)])
    if weights is None:
        keys, counts = np.unique(every, return_counts=True)
        return Frequency(keys, counts.astype(np.int64))
    keys, index = np.unique(every, return_inverse=True)
    times = [np.repeat(weight, own.shape[-1]) for weight, own in zip(weights, by_graph, strict=True)]
    return Frequency(keys, np.bincount(index.ravel(), np.concatenate([np.empty(0), *times]), len(keys)))


def matched_frequency(
    counts: Int[np.ndarray, " node"] | Float[np.ndarray, " node"],
    right: Bool[np.ndarray, " node"],
    *conditions: Int[np.ndarray, " node"],
) -> float:
    """Compare the frequency of right and wrong nodes that agree in all conditions.

    Deep nodes are rarer and harder, so that without matching, frequency would always seem to matter. The weights are those
    of least squares with an intercept per stratum.

    Args:
        counts: The training frequency of each node's subgraph.
        right: Which nodes are right.
        *conditions: What to match on; at least the depth.

    Returns:
        Mean log2(1 + frequency) of right nodes less that of wrong nodes, over the strata that have both; NaN if none has.
    """
    strata, member = np.unique(np.stack(conditions, axis=1), axis=0, return_inverse=True)
    member = member.ravel()
    log = np.log2(1.0 + counts)
    number, total = (
        np.stack([np.bincount(member[side], each, minlength=len(strata)) for side, each in sides])
        for sides in (((right, None), (~right, None)), ((right, log[right]), (~right, log[~right])))
    )
    both = np.all(number > 0, axis=0)
    means = total[:, both] / number[:, both]
    weights = number[0, both] * number[1, both] / number[:, both].sum(axis=0)
    return float(np.average(means[0] - means[1], weights=weights)) if len(weights) else np.nan
