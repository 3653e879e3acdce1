"""The outcomes that swaps of equivalent fragments imply for inputs."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from recombine.supports.coverage_graph import CoverageGraph
from recombine.supports.coverage_graph.cut import Inputs

NONE, SEVERAL = -1, -2
"""In place of an outcome: no chain leads to a training example; or chains lead to examples with different outcomes."""


def implied_outcomes(graph: CoverageGraph, inputs: Inputs, cutoffs: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The outcome that training implies for each input at its cutoff.

    Args:
        graph: The coverage graph of the training examples.
        inputs: The tokens of the inputs.
        cutoffs: Their cutoffs, as `graph.cutoffs` gives them.

    Returns:
        Indices into `graph.values`; `NONE` for inputs with cutoff 0 and for training examples, `SEVERAL` where chains
        of the same strength lead to different outcomes.
    """
    implied = np.full(len(inputs), NONE)
    trained, outcomes = graph.decoded(graph.inputs), graph.outcomes
    for k in np.unique(cutoffs[cutoffs > 0]).tolist():
        here = np.flatnonzero(cutoffs == k)
        component = graph.components(np.concatenate([inputs[here], trained]), k)
        own, of_trained = component[: len(here)], component[len(here) :]
        lowest = np.full(component.max() + 1, np.iinfo(np.int64).max)
        highest = np.full(len(lowest), -1)
        np.minimum.at(lowest, of_trained, outcomes)
        np.maximum.at(highest, of_trained, outcomes)
        implied[here] = np.where(lowest[own] == highest[own], highest[own], SEVERAL)
    return implied
