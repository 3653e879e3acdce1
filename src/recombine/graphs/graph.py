"""Computation graphs: nodes with operations and parents, their values and depths."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int, Integer

from recombine.errors import BadInput, did_you_mean
from recombine.graphs.numbers import whole, whole_array

Values = Any
"""A row of integers, in NumPy or in JAX."""
Inputs = Integer[np.ndarray, "*instances input"] | Sequence[Any]
"""Values of inputs along the last axis; also as lists."""


@dataclass(frozen=True)
class Operation:
    """What a step computes from the values of its parents."""

    name: str
    """Operations of one name count as the same."""
    apply: Callable[..., Values]
    """Maps one row of integers per parent, with one entry per instance, to a row of integers. Operations of tasks whose
    instances share a graph also take JAX arrays, so that compiled code can make the same steps."""
    least: int
    """The smallest number of parents."""
    most: int | None
    """The largest number of parents; None for no bound."""
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

    def __post_init__(self) -> None:
        if self.value is not None:
            object.__setattr__(self, "value", whole(self.value, f"The value of the node {self.name!r}"))

    @property
    def operation_name(self) -> str:
        """The name of the operation, or `input`."""
        return "input" if self.operation is None else self.operation.name


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph of nodes, with edges from parents to children.

    Nodes may be given in any order; the graph keeps them in a topological one (the given order, if it is topological).
    All arrays over nodes have this order. Instances that differ only in the values of their inputs share a graph:
    functions take these values as `inputs`.

    Example:
        ```python
        add = Operation("sum", lambda a, b: a + b, 2, 2, commutative=True)
        graph = Graph((Node("a", value=1), Node("b", value=2), Node("c", add, ("a", "b"))))
        evaluate(graph)  # array([1, 2, 3])
        ```
    """

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        _check(self.nodes)
        object.__setattr__(self, "nodes", _parents_first(self.nodes))

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
    """Compute the value of each node.

    Args:
        graph: The graph.
        inputs: Values of the inputs of any number of instances; the graph's own by default.

    Returns:
        The values along the last axis.
    """
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
    given = whole_array(inputs, "The values of inputs")
    if given.ndim == 0 or given.shape[-1] != len(graph.inputs):
        raise BadInput(
            f"The graph has {len(graph.inputs)} inputs, but the array of their values has the shape {given.shape}.",
            fix="give instances along the first axes and one value per input along the last",
        )
    return given.astype(np.int64)


def _check(nodes: tuple[Node, ...]) -> None:
    """Refuse nodes that do not form a graph. Cycles are found later."""
    if not nodes:
        raise BadInput("A graph needs nodes, got none.", fix="give at least one node")
    names = {node.name for node in nodes}
    if len(names) < len(nodes):
        seen: set[str] = set()
        double = next(node.name for node in nodes if node.name in seen or seen.add(node.name))
        raise BadInput(f"Two nodes are called {double!r}.", fix="give each node a different name")
    for node in nodes:
        for parent in node.parents:
            if parent not in names:
                raise BadInput(
                    f"The node {node.name!r} has the parent {parent!r}, which is not a node of the graph.",
                    fix=did_you_mean(parent, names),
                )
        if node.operation is None:
            if node.parents or node.value is None:
                raise BadInput(
                    f"The node {node.name!r} has no operation, so it is an input: it needs a value and no parents, "
                    f"but it has the value {node.value} and {len(node.parents)} parents.",
                    fix="give it a value, or an operation",
                )
            continue
        if node.value is not None:
            raise BadInput(
                f"The node {node.name!r} is a step, so its value is computed, but it has the value {node.value}.",
                fix="leave the value out",
            )
        least, most = node.operation.least, node.operation.most
        if len(node.parents) < max(1, least) or (most is not None and len(node.parents) > most):
            expected = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
            raise BadInput(
                f"The operation {node.operation.name!r} takes {expected} parents, but the node {node.name!r} has "
                f"{len(node.parents)}: {', '.join(map(repr, node.parents)) or 'none'}."
            )


def _parents_first(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes in the given order, but each after its parents."""
    known = {node.name: node for node in nodes}
    placed: dict[str, Node] = {}
    for start in known:
        # The path from `start` back to the current node, with the parents that are still to be visited.
        path = {} if start in placed else {start: iter(known[start].parents)}
        while path:
            name = next(reversed(path))
            parent = next(path[name], None)
            if parent is None:
                path.popitem()
                placed[name] = known[name]
            elif parent in path:
                names = list(path)
                cycle = [*names[names.index(parent) :], parent]
                raise BadInput(
                    f"These nodes form a cycle, each the child of the next: {', '.join(map(repr, cycle))}.",
                    fix="remove one of these edges",
                )
            elif parent not in placed:
                path[parent] = iter(known[parent].parents)
    return tuple(placed.values())
