"""How often a node with all its ancestors occurs in training, and whether that goes with getting it right."""

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
    """How often each subgraph occurs in a list of graphs."""

    keys: UInt64[np.ndarray, " different"]
    """Of the subgraphs that occur, in ascending order."""
    counts: Int[np.ndarray, " different"] | Float[np.ndarray, " different"]
    """Whole numbers, or sums of the instances' weights where they have any."""

    def of(
        self, keys: UInt64[np.ndarray, "*nodes"]
    ) -> Int[np.ndarray, "*nodes"] | Float[np.ndarray, "*nodes"]:
        """How often these occur: 0 for what is not there."""
        if not len(self.keys):
            return np.zeros(keys.shape, np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0)


def count_subgraphs(
    training: Iterable[tuple[Graph, Int[np.ndarray, "_ _"] | None]],
    weights: Iterable[Float[np.ndarray, " _"]] | None = None,
) -> Frequency:
    """Count every node of every instance: pairs of a shape and the inputs of its instances.

    Without inputs the graph itself is the one instance. Each occurrence counts, also several in one instance. `weights`
    say for each shape how often its instances are shown; without them each counts once.
    """
    found = [subgraph_keys(graph, inputs) for graph, inputs in training]
    every = np.concatenate([np.empty(0, np.uint64), *(keys.ravel() for keys in found)])
    if weights is None:
        keys, counts = np.unique(every, return_counts=True)
        return Frequency(keys, counts.astype(np.int64))
    keys, place = np.unique(every, return_inverse=True)
    times = [np.repeat(own, keys.shape[-1]) for own, keys in zip(weights, found, strict=True)]
    return Frequency(keys, np.bincount(place.ravel(), np.concatenate([np.empty(0), *times]), len(keys)))


class MatchedFrequency(NamedTuple):
    """Training frequency of right and wrong nodes, compared within strata that hold both."""

    strata: Int[np.ndarray, "stratum condition"]
    """What the nodes of each stratum have in common, for instance their depth."""
    right: Int[np.ndarray, " stratum"]
    """How many nodes are right."""
    wrong: Int[np.ndarray, " stratum"]
    difference: Float[np.ndarray, " stratum"]
    """Mean log2(1 + frequency) of the right ones less that of the wrong ones."""

    @property
    def overall(self) -> float:
        """The difference over all strata, each weighted by what it can tell; NaN where none holds both."""
        weights = self.right * self.wrong / (self.right + self.wrong)
        return float(np.average(self.difference, weights=weights)) if len(weights) else np.nan


def matched_frequency(
    counts: Int[np.ndarray, " node"] | Float[np.ndarray, " node"],
    right: Bool[np.ndarray, " node"],
    *conditions: Int[np.ndarray, " node"],
) -> MatchedFrequency:
    """Compare frequencies of right and wrong nodes that agree in all conditions: the depth, and what else counts.

    Deep nodes are rarer and harder, so that without matching frequency seems to matter whatever it does. The weights
    are those of least squares with an intercept for each stratum.
    """
    if not conditions:
        raise BadInput(
            "Frequencies were to be compared without matching.",
            fix="give the depth of each node, at the least",
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
