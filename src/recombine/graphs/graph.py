"""Computation graphs: nodes with operations and parents, their values and depths."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput

Values = Any
"""A row of integers, in NumPy or in JAX."""
Inputs = Int[np.ndarray, "*instances input"]
"""Values of inputs along the last axis."""


@dataclass(frozen=True)
class Operation:
    """What a step computes from the values of its parents."""

    name: str
    """Operations of one name count as the same."""
    apply: Callable[..., Values]
    """Maps one row of integers per parent, with one entry per instance, to a row of integers. Operations of tasks whose
    instances share a graph also take JAX arrays, so that compiled code can make the same steps."""
    commutative: bool = False
    """Whether the order of parents does not matter."""


@dataclass(frozen=True)
class Node:
    """An input, which has a value, or a step, which has an operation and parents."""

    name: str
    operation: Operation | None = None
    parents: tuple[str, ...] = ()
    """The names of the parents, in the order of the operation's arguments."""
    value: int | None = None

    @property
    def operation_name(self) -> str:
        """The name of the operation, or `input`."""
        return "input" if self.operation is None else self.operation.name


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph of nodes, with edges from parents to children.

    Each node comes after its parents. All arrays over nodes have the order of `nodes`. Instances that differ only in the
    values of their inputs share a graph: functions take these values as `inputs`.

    Example:
        ```python
        add = Operation("sum", lambda a, b: a + b, commutative=True)
        graph = Graph((Node("a", value=1), Node("b", value=2), Node("c", add, ("a", "b"))))
        evaluate(graph)  # array([1, 2, 3])
        ```
    """

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        known: set[str] = set()
        for node in self.nodes:
            if node.name in known:
                raise BadInput(f"Two nodes are called {node.name!r}.", fix="give each node a different name")
            if not known.issuperset(node.parents):
                raise BadInput(
                    f"The parents of {node.name!r} are {', '.join(node.parents)}, but before it there are only "
                    f"{', '.join(sorted(known)) or 'no nodes'}.",
                    fix="list each node after its parents",
                )
            if (node.value is None) != bool(node.parents) or (node.operation is None) != (node.value is not None):
                raise BadInput(
                    f"The node {node.name!r} is neither an input nor a step.",
                    fix="give an input a value alone, and a step an operation and parents",
                )
            known.add(node.name)

    def __len__(self) -> int:
        return len(self.nodes)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """The index of each node, by name."""
        return {node.name: index for index, node in enumerate(self.nodes)}

    @functools.cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The indices of each node's parents, which come before it."""
        return tuple(tuple(self.index[parent] for parent in node.parents) for node in self.nodes)

    @functools.cached_property
    def inputs(self) -> tuple[int, ...]:
        """The indices of the inputs."""
        return tuple(index for index, node in enumerate(self.nodes) if node.operation is None)

    @functools.cached_property
    def steps(self) -> tuple[int, ...]:
        """The indices of the steps, which a scratchpad writes down."""
        return tuple(index for index, node in enumerate(self.nodes) if node.operation is not None)

    @functools.cached_property
    def input_values(self) -> Int[np.ndarray, " input"]:
        """The values of the inputs."""
        return np.array([self.nodes[index].value for index in self.inputs], np.int64)

    @functools.cached_property
    def depths(self) -> Int[np.ndarray, " node"]:
        """The layer of each node: the length of the longest path to it; 0 for an input."""
        depths = np.zeros(len(self), np.int64)
        for index, parents in enumerate(self.parents):
            depths[index] = max((depths[parent] + 1 for parent in parents), default=0)
        return depths

    @property
    def depth(self) -> int:
        """The length of the longest path: the number of steps that must follow one another."""
        return int(self.depths.max(initial=0))


def evaluate(graph: Graph, inputs: Inputs | None = None) -> Int[np.ndarray, "*instances node"]:
    """The value of each node, along the last axis, for inputs of any number of instances; the graph's own by default."""
    given = inputs_of(graph, inputs)
    values = np.zeros((*given.shape[:-1], len(graph)), np.int64)
    values[..., graph.inputs] = given
    for index in graph.steps:
        values[..., index] = applied(graph, index, values)
    return values


def applied(graph: Graph, index: int, values: Int[np.ndarray, "*instances node"]) -> Int[np.ndarray, "*instances"]:
    """Apply the operation of a step to the values of its parents."""
    operation = graph.nodes[index].operation
    assert operation is not None, "an input has no operation"
    flat = values.reshape(-1, len(graph))
    result = operation.apply(*(flat[:, parent] for parent in graph.parents[index]))
    return np.asarray(result).reshape(values.shape[:-1])


def inputs_of(graph: Graph, inputs: Inputs | None) -> Int[np.ndarray, "*instances input"]:
    """Check given inputs, or take the graph's own."""
    if inputs is None:
        return graph.input_values
    if inputs.shape[-1] != len(graph.inputs):
        raise BadInput(
            f"The graph has {len(graph.inputs)} inputs, but the array of their values has the shape {inputs.shape}.",
            fix="give instances along the first axes and one value per input along the last",
        )
    return inputs.astype(np.int64)
