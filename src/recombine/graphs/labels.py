"""Labels of the nodes of a stated computation: correct, restored, propagating an error, or making one."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, applied, evaluate
from recombine.graphs.scratchpad import MISSING

Label = Literal["correct", "restoration", "propagation", "local"]
LABELS: tuple[Label, ...] = ("correct", "restoration", "propagation", "local")
"""`correct`: the value is right and all parents are correct. `restoration`: it is right, but some parent is not correct.
`propagation`: it is wrong, but follows from the stated values of its parents. `local`: it is wrong otherwise."""
CORRECT, RESTORATION, PROPAGATION, LOCAL = range(4)


def node_labels(
    graph: Graph, stated: Int[np.ndarray, "*instances node"], inputs: Int[np.ndarray, "*instances input"] | None = None
) -> Int[np.ndarray, "*instances node"]:
    """Label each node.

    Args:
        graph: The graph.
        stated: The stated value of each node, or `MISSING`, which is wrong and from which nothing follows.
        inputs: The true values of the inputs; the graph's own by default. An input that is stated wrongly is a local error.

    Returns:
        The index in `LABELS` of each node's label.
    """
    true = evaluate(graph, inputs)
    if stated.ndim == 0 or stated.shape[-1] != len(graph):
        raise BadInput(
            f"The graph has {len(graph)} nodes, but the array of stated values has the shape {stated.shape}.",
            fix="give one value per node along the last axis, as the scratchpad's `read` does",
        )
    present = stated != MISSING
    known = np.where(present, stated, 0)
    right = present & (stated == true)
    labels = np.empty(right.shape, np.int64)
    for index, parents in enumerate(graph.parents):
        above = list(parents)
        sound = np.all(labels[..., above] == CORRECT, axis=-1)
        follows = np.zeros(right.shape[:-1], bool)
        if above:
            follows = np.all(present[..., above], axis=-1) & present[..., index]
            follows &= applied(graph, index, known) == known[..., index]
        wrong = np.where(follows, PROPAGATION, LOCAL)
        labels[..., index] = np.where(right[..., index], np.where(sound, CORRECT, RESTORATION), wrong)
    return labels
