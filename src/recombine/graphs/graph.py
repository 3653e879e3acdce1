"""A computation as a graph: what each step takes, what it does with it, and how deep it lies."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int, Integer

from recombine.errors import BadInput, did_you_mean
from recombine.graphs.numbers import whole, whole_array

Values = Any
"""A row of integers, of NumPy or of JAX."""
Inputs = Integer[np.ndarray, "*instances input"] | Sequence[Any]
"""A value for each input along the last axis; lists do as well."""


@dataclass(frozen=True)
class Operation:
    """What a step does with the values of its parents."""

    name: str
    """Two operations of one name count as the same."""
    apply: Callable[..., Values]
    """From a row of integers for each parent, an instance each, to a row of integers. Those of the tasks whose graphs
    share shapes take rows of JAX too, so that compiled code can make the same steps."""
    least: int
    """The fewest parents."""
    most: int | None
    """The most parents; None where there is no bound."""
    commutative: bool = False
    """Whether the order of the parents does not matter."""


@dataclass(frozen=True)
class Node:
    """An input, which has a value, or a step, which has an operation and parents."""

    name: str
    operation: Operation | None = None
    parents: tuple[str, ...] = ()
    """Names of nodes, in the order in which the operation takes them."""
    value: int | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            object.__setattr__(self, "value", whole(self.value, f"The value of the node {self.name!r}"))

    @property
    def word(self) -> str:
        """The name of what it does."""
        return "input" if self.operation is None else self.operation.name


@dataclass(frozen=True)
class Graph:
    """Nodes whose edges run from parents to children, without a cycle.

    It takes the nodes in any order and holds them in a topological one: the order given, where that is one.
    Everything that is said of nodes elsewhere is an array in this order. The graph is also the shape of all
    instances that differ in the values of their inputs: functions take these as `inputs`.
    """

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        _check(self.nodes)
        object.__setattr__(self, "nodes", _parents_first(self.nodes))

    def __len__(self) -> int:
        return len(self.nodes)

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """The place of each node, by name."""
        return {node.name: place for place, node in enumerate(self.nodes)}

    @functools.cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The places of each node's parents, all before its own."""
        return tuple(tuple(self.numbers[parent] for parent in node.parents) for node in self.nodes)

    @functools.cached_property
    def inputs(self) -> tuple[int, ...]:
        """The places of the inputs."""
        return tuple(place for place, node in enumerate(self.nodes) if node.operation is None)

    @functools.cached_property
    def steps(self) -> tuple[int, ...]:
        """The places of the steps: what a scratchpad writes down."""
        return tuple(place for place, node in enumerate(self.nodes) if node.operation is not None)

    @functools.cached_property
    def given(self) -> Int[np.ndarray, " input"]:
        """The values of the inputs."""
        return np.array([self.nodes[place].value for place in self.inputs], np.int64)

    @functools.cached_property
    def depths(self) -> Int[np.ndarray, " node"]:
        """The layer of each node: the edges of the longest way to it; 0 for an input."""
        depths = np.zeros(len(self), np.int64)
        for place, parents in enumerate(self.parents):
            depths[place] = max((depths[parent] + 1 for parent in parents), default=0)
        return depths

    @property
    def depth(self) -> int:
        """The edges of the longest way: so many steps have to be made one after another."""
        return int(self.depths.max(initial=0))

    @property
    def width(self) -> int:
        """The most nodes of one layer: so many values have to be held beside each other."""
        return int(np.bincount(self.depths, minlength=1).max())

    @property
    def parallelism(self) -> float:
        """The average parallelism: nodes by depth; infinite where there is nothing but inputs."""
        return len(self) / self.depth if self.depth else math.inf


def evaluate(graph: Graph, inputs: Inputs | None = None) -> Int[np.ndarray, "*instances node"]:
    """The true value of each node. `inputs` are other values than the graph's own, of any number of instances."""
    given = inputs_of(graph, inputs)
    values = np.zeros((*given.shape[:-1], len(graph)), np.int64)
    values[..., graph.inputs] = given
    for place in graph.steps:
        values[..., place] = applied(graph, place, values)
    return values


def applied(
    graph: Graph, place: int, values: Int[np.ndarray, "*instances node"]
) -> Int[np.ndarray, "*instances"]:
    """What the operation of a step makes of these values of its parents."""
    operation = graph.nodes[place].operation
    assert operation is not None, "an input has no operation"
    flat = values.reshape(-1, len(graph))
    made = operation.apply(*(flat[:, parent] for parent in graph.parents[place]))
    return np.asarray(made).reshape(values.shape[:-1])


def inputs_of(graph: Graph, inputs: Inputs | None) -> Int[np.ndarray, "*instances input"]:
    """The inputs asked for, or the graph's own."""
    if inputs is None:
        return graph.given
    given = whole_array(inputs, "The values of inputs")
    if given.ndim == 0 or given.shape[-1] != len(graph.inputs):
        raise BadInput(
            f"The graph has {len(graph.inputs)} inputs, but the array of their values has the shape {given.shape}.",
            fix="give instances along the first axes and one value for each input along the last",
        )
    return given.astype(np.int64)


def _check(nodes: tuple[Node, ...]) -> None:
    """Complain of nodes that make no graph, cycles apart."""
    if not nodes:
        raise BadInput("A graph without nodes computes nothing.", fix="give at least one node")
    names = {node.name for node in nodes}
    if len(names) < len(nodes):
        seen: set[str] = set()
        double = next(node.name for node in nodes if node.name in seen or seen.add(node.name))
        raise BadInput(f"Two nodes are called {double!r}.", fix="give each node a name of its own")
    for node in nodes:
        for parent in node.parents:
            if parent not in names:
                raise BadInput(
                    f"The node {node.name!r} has the parent {parent!r}, which is no node of the graph.",
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
                f"The node {node.name!r} is a step, whose value is computed, but the value {node.value} was given.",
                fix="leave the value out",
            )
        least, most = node.operation.least, node.operation.most
        if len(node.parents) < max(1, least) or (most is not None and len(node.parents) > most):
            wanted = (
                f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
            )
            raise BadInput(
                f"The operation {node.operation.name!r} takes {wanted} parents, but the node {node.name!r} has "
                f"{len(node.parents)}: {', '.join(map(repr, node.parents)) or 'none'}.",
            )


def _parents_first(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes in the order given, but each after its parents."""
    known = {node.name: node for node in nodes}
    placed: dict[str, Node] = {}
    for start in known:
        # The way from `start` back to the node at hand, with the parents that each still has to look at.
        way = {} if start in placed else {start: iter(known[start].parents)}
        while way:
            name = next(reversed(way))
            parent = next(way[name], None)
            if parent is None:
                way.popitem()
                placed[name] = known[name]
            elif parent in way:
                names = list(way)
                cycle = [*names[names.index(parent) :], parent]
                raise BadInput(
                    f"A computation cannot wait for itself, but these nodes form a cycle, each the child of the next: "
                    f"{', '.join(map(repr, cycle))}.",
                    fix="take away one of these edges",
                )
            elif parent not in placed:
                way[parent] = iter(known[parent].parents)
    return tuple(placed.values())
