"""The positions of a graph's nodes in a figure: layers from left to right, with few crossings."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import isotonic_regression

from recombine.graphs.graph import Graph

Waypoint = tuple[int, int]
"""A node and a layer: its own, or a later one that its edges pass."""

SWEEPS = 24
NARROW = 0.32
"""The space that an edge takes in a layer that it passes, relative to that of a node."""


class Layout(NamedTuple):
    """Positions in units of the distance between neighbours."""

    x: Float[np.ndarray, " node"]
    """The layer. That of a step is its depth; an input is in the layer before the first step that uses it."""
    y: Float[np.ndarray, " node"]
    """The position within the layer, downwards from 0."""
    routes: dict[tuple[int, int], tuple[tuple[float, float], ...]]
    """The route of each edge (parent, child): one point per layer."""


def layout(graph: Graph) -> Layout:
    """Waypoint nodes in layers: order each layer by the mean rank of neighbours, then straighten the edges.

    An edge that passes a layer has a waypoint there, so that it runs between nodes and not through them. All edges of one
    node share it.

    Args:
        graph: The graph.

    Returns:
        Positions of nodes, and routes of edges.
    """
    layer = _layers(graph)
    chains = _chains(graph, layer)
    links = sorted({pair for chain in chains.values() for pair in itertools.pairwise(chain)})
    columns: list[list[Waypoint]] = [[] for _ in range(max(layer) + 1)]
    for point in sorted({(node, at) for node, at in enumerate(layer)} | {p for pair in links for p in pair}):
        columns[point[1]].append(point)
    columns = _ordered(columns, links)
    height = _heights(columns, links, layer)
    return Layout(
        np.array(layer, float),
        np.array([height[node, at] for node, at in enumerate(layer)]),
        {edge: tuple((float(at), height[node, at]) for node, at in chain) for edge, chain in chains.items()},
    )


def _layers(graph: Graph) -> list[int]:
    layer = graph.depths.tolist()
    for node in graph.inputs:
        children = [child for child, parents in enumerate(graph.parents) if node in parents]
        layer[node] = min((layer[child] for child in children), default=1) - 1
    return layer


def _chains(graph: Graph, layer: list[int]) -> dict[tuple[int, int], list[Waypoint]]:
    """The waypoints of each edge, including its ends."""
    return {
        (parent, child): [*((parent, at) for at in range(layer[parent], layer[child])), (child, layer[child])]
        for child, parents in enumerate(graph.parents)
        for parent in dict.fromkeys(parents)
    }


def _ordered(columns: list[list[Waypoint]], links: list[tuple[Waypoint, Waypoint]]) -> list[list[Waypoint]]:
    """Order the columns to reduce crossings, by sweeps from left to right and back; the best order is kept."""
    before, after = _neighbours(links)
    best, fewest = columns, _crossings(columns, links)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        beside = before if forward else after
        rank = {point: float(at) for column in columns for at, point in enumerate(column)}
        ordered: list[list[Waypoint]] = []
        for column in columns if forward else reversed(columns):
            target = {
                point: np.mean([rank[other] for other in beside.get(point, ())] or [rank[point]]) for point in column
            }
            ordered.append(sorted(column, key=lambda point: (target[point], rank[point])))
            rank |= {point: float(at) for at, point in enumerate(ordered[-1])}
        columns = ordered if forward else ordered[::-1]
        crossings = _crossings(columns, links)
        if crossings < fewest:
            best, fewest = columns, crossings
    return best


def _neighbours(
    links: list[tuple[Waypoint, Waypoint]],
) -> tuple[dict[Waypoint, list[Waypoint]], dict[Waypoint, list[Waypoint]]]:
    """The neighbours of each waypoint in the previous and in the next layer."""
    before: dict[Waypoint, list[Waypoint]] = {}
    after: dict[Waypoint, list[Waypoint]] = {}
    for left, right in links:
        before.setdefault(right, []).append(left)
        after.setdefault(left, []).append(right)
    return before, after


def _crossings(columns: list[list[Waypoint]], links: list[tuple[Waypoint, Waypoint]]) -> int:
    rank = {point: at for column in columns for at, point in enumerate(column)}
    between: dict[int, list[tuple[int, int]]] = {}
    for left, right in links:
        between.setdefault(left[1], []).append((rank[left], rank[right]))
    total = 0
    for pairs in between.values():
        ends = np.array(pairs)
        apart = ends[:, None] - ends[None, :]
        total += int((apart[..., 0] * apart[..., 1] < 0).sum()) // 2
    return total


def _heights(
    columns: list[list[Waypoint]], links: list[tuple[Waypoint, Waypoint]], layer: list[int]
) -> dict[Waypoint, float]:
    """Heights that keep order and distances, each as near as possible to the mean of its neighbours."""
    before, after = _neighbours(links)
    floors = []
    for column in columns:
        sizes = [1.0 if layer[node] == at else NARROW for node, at in column]
        floors.append(np.cumsum([0.0, *((above + below) / 2 for above, below in itertools.pairwise(sizes))]))
    middle = max(floor[-1] for floor in floors) / 2
    height = {
        point: middle + float(floor[at] - floor[-1] / 2)
        for column, floor in zip(columns, floors, strict=True)
        for at, point in enumerate(column)
    }
    for sweep in range(SWEEPS):
        pairs = list(zip(columns, floors, strict=True))
        for column, floor in pairs if sweep % 2 == 0 else reversed(pairs):
            target = [
                np.mean([height[other] for other in (*before.get(point, ()), *after.get(point, ()))] or [height[point]])
                for point in column
            ]
            moved = isotonic_regression(np.array(target) - floor).x + floor
            height |= dict(zip(column, moved.tolist(), strict=True))
    least = min(height.values())
    return {point: value - least for point, value in height.items()}
