"""A genome as a dense network of the same function: layers of one width, in which unchanged values are passed on."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
from jaxtyping import Float, Int

from recombine.cppn.genome import ACTIVATIONS, INPUTS, Genome

IDENTITY = ACTIVATIONS.index("identity")


@dataclasses.dataclass(frozen=True)
class Dense:
    """The weights of a dense network. All layers have the same activations in the same order."""

    first: Float[np.ndarray, "input unit"]
    middle: tuple[Float[np.ndarray, "unit unit"], ...]
    readout: Float[np.ndarray, "unit output"]
    activations: Int[np.ndarray, " unit"]
    """The activation of each unit of a layer, by its place in `ACTIVATIONS`."""

    @property
    def depth(self) -> int:
        """The number of hidden layers."""
        return 1 + len(self.middle)

    @property
    def width(self) -> int:
        """The number of units of a layer."""
        return len(self.activations)


def dense(genome: Genome) -> Dense:
    """The dense network that computes what a genome computes.

    A node becomes a unit of the layer that its longest path from the inputs gives it. A value that a later layer needs is
    passed on by an identity unit of each layer between. Every layer has as many units of each activation as the fullest one
    needs; units that a layer does not need have zero weights. Nodes on which no output depends are left out.

    Args:
        genome: The genome.

    Returns:
        The network. Its readout copies the output nodes.
    """
    layers, used = genome.layers, genome.used
    depth = max(1, *(layers[node] for node in genome.outputs))
    # Up to which layer the value of a node is needed: the layer before the last that reads it.
    until = dict.fromkeys(genome.outputs, depth)
    for source, target, _ in genome.links:
        if target in used:
            until[source] = max(until.get(source, 0), layers[target] - 1)
    members: list[list[tuple[int, int]]] = []
    for layer in range(1, depth + 1):
        own = [(ACTIVATIONS.index(genome.activations[node]), node) for node in used if layers[node] == layer]
        passed = [(-1, node) for node in used if layers[node] < layer <= until.get(node, 0)]
        members.append(sorted(passed + own))
    # Passing units come first (-1), then the units of each activation.
    counts = [Counter(kind for kind, _ in some) for some in members]
    most = {kind: max(count[kind] for count in counts) for kind in range(-1, len(ACTIVATIONS))}
    kinds = [kind for kind, number in most.items() for _ in range(number)]
    starts = {kind: kinds.index(kind) for kind, number in most.items() if number}
    before = {node: node for node in range(len(INPUTS))}
    size, matrices = len(INPUTS), []
    for some in members:
        matrix, here, taken = np.zeros((size, len(kinds))), {}, Counter[int]()
        for kind, node in some:
            unit = starts[kind] + taken[kind]
            taken[kind] += 1
            here[node] = unit
            for source, weight in ((node, 1.0),) if kind == -1 else genome.incoming[node]:
                matrix[before[source], unit] = weight
        matrices.append(matrix)
        before, size = here, len(kinds)
    readout = np.zeros((size, len(genome.outputs)))
    for output, node in enumerate(genome.outputs):
        readout[before[node], output] = 1
    activations = np.array([IDENTITY if kind == -1 else kind for kind in kinds])
    return Dense(matrices[0], tuple(matrices[1:]), readout, activations)
