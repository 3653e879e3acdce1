"""Where a stated computation goes wrong: each node is correct, restored, propagates an error, or makes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, applied, evaluate
from recombine.graphs.scratchpad import MISSING

Label = Literal["correct", "restoration", "propagation", "local"]
LABELS: tuple[Label, ...] = ("correct", "restoration", "propagation", "local")
"""*Correct*: the value is right and all parents are correct; *restoration*: it is right, but some parent is not correct;
*propagation*: it is wrong, but what the operation makes of its own stated parents; *local*: the rest."""
CORRECT, RESTORATION, PROPAGATION, LOCAL = range(4)


def node_labels(
    graph: Graph,
    stated: Int[np.ndarray, "*instances node"],
    inputs: Int[np.ndarray, "*instances input"] | None = None,
) -> Int[np.ndarray, "*instances node"]:
    """The label of each node, as its place in `LABELS`.

    `stated` has a value for each node, or `MISSING`, which is wrong and from which nothing follows. `inputs` are the
    values that were given, where they are not the graph's own; an input that is stated otherwise is a local error.
    """
    true = evaluate(graph, inputs)
    if stated.ndim == 0 or stated.shape[-1] != len(graph):
        raise BadInput(
            f"The graph has {len(graph)} nodes, but the array of stated values has the shape {stated.shape}.",
            fix="give a value for each node along the last axis, as the scratchpad's `read` does",
        )
    told = stated != MISSING
    known = np.where(told, stated, 0)
    right = told & (stated == true)
    labels = np.empty(right.shape, np.int64)
    for place, parents in enumerate(graph.parents):
        above = list(parents)
        sound = np.all(labels[..., above] == CORRECT, axis=-1)
        follows = np.zeros(right.shape[:-1], bool)
        if above:
            follows = np.all(told[..., above], axis=-1) & told[..., place]
            follows &= applied(graph, place, known) == known[..., place]
        wrong = np.where(follows, PROPAGATION, LOCAL)
        labels[..., place] = np.where(right[..., place], np.where(sound, CORRECT, RESTORATION), wrong)
    return labels


@dataclass(frozen=True)
class LayerCounts:
    """How many nodes of each layer have each label. Inputs, in layer 0, are given and not counted."""

    counts: Int[np.ndarray, "depth label"]
    """Row d is layer d + 1."""

    @property
    def shares(self) -> Float[np.ndarray, "depth label"]:
        """Each label's share of its layer; NaN for a layer without nodes."""
        total = self.counts.sum(axis=1, keepdims=True)
        return np.where(total > 0, self.counts / np.maximum(total, 1), np.nan)

    def __add__(self, other: LayerCounts) -> LayerCounts:
        """The counts of both, of graphs of any depths."""
        most = max(len(self.counts), len(other.counts))
        padded = [np.pad(one.counts, ((0, most - len(one.counts)), (0, 0))) for one in (self, other)]
        return LayerCounts(padded[0] + padded[1])


def count_labels(graph: Graph, labels: Int[np.ndarray, "*instances node"]) -> LayerCounts:
    """Labels by layer, over all instances."""
    counts = np.zeros((graph.depth, len(LABELS)), np.int64)
    for place in graph.steps:
        counts[graph.depths[place] - 1] += np.bincount(labels[..., place].ravel(), minlength=len(LABELS))
    return LayerCounts(counts)
