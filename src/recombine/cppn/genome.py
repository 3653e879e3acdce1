"""Genomes of compositional pattern-producing networks (CPPNs): nodes with activations, and weighted links."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from recombine.component import Configuration

Activation = Literal["identity", "sin", "cos", "tanh", "sigmoid", "gaussian"]
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
"""The activations of a genome. Dense networks name them by their place here."""

FUNCTIONS: Mapping[Activation, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda x: x,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    # 2 / (1 + exp(-x)) - 1, in a form that does not overflow.
    "sigmoid": lambda x: np.tanh(x / 2),
    "gaussian": lambda x: 2 * np.exp(-(x**2)) - 1,
}

INPUTS = ("y", "x", "d", "bias")
"""The first nodes of every genome: the place in the picture, the distance from its centre, and one."""

Link = tuple[int, int, float]
"""The node that a link comes from, the node that it goes to, and its weight."""


class Genome(Configuration):
    """A feed-forward CPPN. Nodes 0 to 3 are the inputs y, x, d and bias.

    Example:
        ```python
        # One hidden node: a vertical band, bright in the middle.
        genome = Genome(activations=("identity",) * 4 + ("gaussian",), links=((1, 4, 2.0),), outputs=(4,))
        genome.values(inputs(32))[:, 4]
        ```
    """

    activations: tuple[Activation, ...] = Field(min_length=len(INPUTS))
    """The activation of every node."""
    links: tuple[Link, ...]
    """The links, at most one from one node to another, and no cycle."""
    outputs: tuple[int, ...]
    """The nodes of hue, saturation and brightness, or of brightness alone: a grey picture."""

    @model_validator(mode="after")
    def _consistent(self) -> Genome:
        number = len(self.activations)
        if len(self.outputs) not in (1, 3):
            raise ValueError(
                f"a picture has 1 output (brightness) or 3 (hue, saturation, brightness), got {self.outputs}"
            )
        for node in (*self.outputs, *(end for source, target, _ in self.links for end in (source, target))):
            if not 0 <= node < number:
                raise ValueError(f"there are nodes 0 to {number - 1}, got {node}")
        if any(target < len(INPUTS) for _, target, _ in self.links):
            raise ValueError("a link goes to an input")
        if len({link[:2] for link in self.links}) < len(self.links):
            raise ValueError("two links join the same two nodes")
        if self.order is None:
            raise ValueError("links form a cycle, and a feed-forward network is expected")
        return self

    @functools.cached_property
    def incoming(self) -> tuple[tuple[tuple[int, float], ...], ...]:
        """The source and weight of the links into each node."""
        links: list[list[tuple[int, float]]] = [[] for _ in self.activations]
        for source, target, weight in self.links:
            links[target].append((source, weight))
        return tuple(map(tuple, links))

    @functools.cached_property
    def order(self) -> tuple[int, ...] | None:
        """The nodes in an order in which every link goes forward; None where there is a cycle."""
        waiting = [len(links) for links in self.incoming]
        outgoing: list[list[int]] = [[] for _ in self.activations]
        for source, target, _ in self.links:
            outgoing[source].append(target)
        ready = [node for node, number in enumerate(waiting) if not number]
        for node in ready:  # It grows while it is read.
            for target in outgoing[node]:
                waiting[target] -= 1
                if not waiting[target]:
                    ready.append(target)
        return tuple(ready) if len(ready) == len(self.activations) else None

    @functools.cached_property
    def used(self) -> frozenset[int]:
        """The nodes from which a link leads to an output, with the outputs themselves."""
        found, open_nodes = set(self.outputs), list(self.outputs)
        while open_nodes:
            for source, _ in self.incoming[open_nodes.pop()]:
                if source not in found:
                    found.add(source)
                    open_nodes.append(source)
        return frozenset(found)

    @functools.cached_property
    def layers(self) -> tuple[int, ...]:
        """The layer of every node: the longest path to it from the inputs. Inputs are in layer 0, other nodes from 1 on."""
        layers = [0] * len(self.activations)
        for node in self.order or ():
            if node >= len(INPUTS):
                layers[node] = 1 + max((layers[source] for source, _ in self.incoming[node]), default=0)
        return tuple(layers)

    @property
    def hidden(self) -> int:
        """The number of hidden nodes that the picture depends on."""
        return len(self.used - set(self.outputs) - set(range(len(INPUTS))))

    def values(self, inputs: Float[np.ndarray, "place 4"]) -> Float[np.ndarray, "place node"]:
        """The value of every node at every place. Inputs are passed on as they are."""
        values = np.zeros((len(inputs), len(self.activations)))
        values[:, : len(INPUTS)] = inputs
        for node in self.order or ():
            if node >= len(INPUTS):
                total = np.zeros(len(inputs))
                for source, weight in self.incoming[node]:
                    total += weight * values[:, source]
                values[:, node] = FUNCTIONS[self.activations[node]](total)
        return values
