"""Where the nodes of a graph stand in a picture: layers from left to right, with few crossings."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import isotonic_regression

from recombine.graphs.graph import Graph

Place = tuple[int, int]
"""A node and a layer: its own, or a later one that its edges pass."""

SWEEPS = 24
NARROW = 0.32
"""The room that an edge takes where it passes a layer, as a part of a node's."""


class Layout(NamedTuple):
    """Positions. One unit is the distance of neighbours."""

    x: Float[np.ndarray, " node"]
    """The layer. A step stands in that of its depth, an input right before the first step that takes it."""
    y: Float[np.ndarray, " node"]
    """The order within the layer, counted downwards from 0."""
    routes: dict[tuple[int, int], tuple[tuple[float, float], ...]]
    """The way of the edge from a parent to a child: a point in each layer from the one's to the other's."""


def layout(graph: Graph) -> Layout:
    """Positions by layers: first the order within each, by the mean place of neighbours, then straightened edges.

    An edge that passes a layer has a place there too, so that it runs between nodes and not through them; all edges
    of one node share it.
    """
    layer = _layers(graph)
    chains = _chains(graph, layer)
    links = sorted({pair for chain in chains.values() for pair in itertools.pairwise(chain)})
    columns: list[list[Place]] = [[] for _ in range(max(layer) + 1)]
    for place in sorted({(node, at) for node, at in enumerate(layer)} | {p for pair in links for p in pair}):
        columns[place[1]].append(place)
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


def _chains(graph: Graph, layer: list[int]) -> dict[tuple[int, int], list[Place]]:
    """For each edge the places that it passes, its ends included."""
    return {
        (parent, child): [*((parent, at) for at in range(layer[parent], layer[child])), (child, layer[child])]
        for child, parents in enumerate(graph.parents)
        for parent in dict.fromkeys(parents)
    }


def _ordered(columns: list[list[Place]], links: list[tuple[Place, Place]]) -> list[list[Place]]:
    """The columns in the order with the fewest crossings that sweeps from left to right and back come upon."""
    before, after = _neighbours(links)
    best, fewest = columns, _crossings(columns, links)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        beside = before if forward else after
        rank = {place: float(at) for column in columns for at, place in enumerate(column)}
        made: list[list[Place]] = []
        for column in columns if forward else reversed(columns):
            wanted = {
                place: np.mean([rank[other] for other in beside.get(place, ())] or [rank[place]])
                for place in column
            }
            made.append(sorted(column, key=lambda place: (wanted[place], rank[place])))
            rank |= {place: float(at) for at, place in enumerate(made[-1])}
        columns = made if forward else made[::-1]
        crossings = _crossings(columns, links)
        if crossings < fewest:
            best, fewest = columns, crossings
    return best


def _neighbours(
    links: list[tuple[Place, Place]],
) -> tuple[dict[Place, list[Place]], dict[Place, list[Place]]]:
    """The places linked to each, in the layer before and in the layer after."""
    before: dict[Place, list[Place]] = {}
    after: dict[Place, list[Place]] = {}
    for left, right in links:
        before.setdefault(right, []).append(left)
        after.setdefault(left, []).append(right)
    return before, after


def _crossings(columns: list[list[Place]], links: list[tuple[Place, Place]]) -> int:
    rank = {place: at for column in columns for at, place in enumerate(column)}
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
    columns: list[list[Place]], links: list[tuple[Place, Place]], layer: list[int]
) -> dict[Place, float]:
    """Heights that keep the order and the distances, each as near to the mean of its neighbours as may be."""
    before, after = _neighbours(links)
    floors = []
    for column in columns:
        room = [1.0 if layer[node] == at else NARROW for node, at in column]
        floors.append(np.cumsum([0.0, *((one + two) / 2 for one, two in itertools.pairwise(room))]))
    middle = max(floor[-1] for floor in floors) / 2
    height = {
        place: middle + float(floor[at] - floor[-1] / 2)
        for column, floor in zip(columns, floors, strict=True)
        for at, place in enumerate(column)
    }
    for sweep in range(SWEEPS):
        pairs = list(zip(columns, floors, strict=True))
        for column, floor in pairs if sweep % 2 == 0 else reversed(pairs):
            wanted = [
                np.mean(
                    [height[other] for other in (*before.get(place, ()), *after.get(place, ()))]
                    or [height[place]]
                )
                for place in column
            ]
            moved = isotonic_regression(np.array(wanted) - floor).x + floor
            height |= dict(zip(column, moved.tolist(), strict=True))
    least = min(height.values())
    return {place: value - least for place, value in height.items()}
