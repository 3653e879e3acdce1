"""The training frequency of subgraphs (a node with all its ancestors), and its relation to correctness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from recombine.errors import BadInput
from recombine.graphs.graph import Graph
from recombine.graphs.keys import subgraph_keys


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
    """Count the subgraph of every node of every instance. Repeated occurrences in one instance all count.

    Args:
        training: Graphs, each with the inputs of its instances; without inputs the graph itself is the one instance.
        weights: How often the instances of each graph are shown; once by default.

    Returns:
        The counts by key.
    """
    by_graph = [subgraph_keys(graph, inputs) for graph, inputs in training]
    every = np.concatenate([np.empty(0, np.uint64), *(keys.ravel() for keys in by_graph)])
    if weights is None:
        keys, counts = np.unique(every, return_counts=True)
        return Frequency(keys, counts.astype(np.int64))
    keys, index = np.unique(every, return_inverse=True)
    times = [np.repeat(weight, own.shape[-1]) for weight, own in zip(weights, by_graph, strict=True)]
    return Frequency(keys, np.bincount(index.ravel(), np.concatenate([np.empty(0), *times]), len(keys)))


class MatchedFrequency(NamedTuple):
    """The training frequency of right and wrong nodes, compared within strata that have both."""

    strata: Int[np.ndarray, "stratum condition"]
    """The common conditions of each stratum, e.g. the depth."""
    right: Int[np.ndarray, " stratum"]
    """The number of right nodes."""
    wrong: Int[np.ndarray, " stratum"]
    difference: Float[np.ndarray, " stratum"]
    """Mean log2(1 + frequency) of right nodes less that of wrong nodes."""

    @property
    def overall(self) -> float:
        """The difference over all strata, weighted by their precision; NaN if no stratum has both."""
        weights = self.right * self.wrong / (self.right + self.wrong)
        return float(np.average(self.difference, weights=weights)) if len(weights) else np.nan


def matched_frequency(
    counts: Int[np.ndarray, " node"] | Float[np.ndarray, " node"],
    right: Bool[np.ndarray, " node"],
    *conditions: Int[np.ndarray, " node"],
) -> MatchedFrequency:
    """Compare the frequency of right and wrong nodes that agree in all conditions.

    Deep nodes are rarer and harder, so that without matching, frequency would always seem to matter. The weights are those
    of least squares with an intercept per stratum.

    Args:
        counts: The training frequency of each node's subgraph.
        right: Which nodes are right.
        *conditions: What to match on; at least the depth.

    Returns:
        The difference in each stratum.
    """
    if not conditions:
        raise BadInput(
            "Frequencies can only be compared between matched nodes.", fix="give at least the depth of each node"
        )
    strata, member = np.unique(np.stack(conditions, axis=1), axis=0, return_inverse=True)
    member = member.ravel()
    log = np.log2(1.0 + counts)
    number, total = (
        np.stack([np.bincount(member[side], each, minlength=len(strata)) for side, each in sides])
        for sides in (((right, None), (~right, None)), ((right, log[right]), (~right, log[~right])))
    )
    both = np.all(number > 0, axis=0)
    means = total[:, both] / number[:, both]
    return MatchedFrequency(
        strata[both], number[0, both].astype(np.int64), number[1, both].astype(np.int64), means[0] - means[1]
    )
