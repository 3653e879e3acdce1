"""Stated steps of problems by the shapes of their graphs: rates, what they predict, and how often training had the subgraphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from recombine.families.graph_family import GraphFamily
from recombine.graphs.bound import Kind, StepRates, kind_of, predicted_accuracy, rates_by_step
from recombine.graphs.frequency import Frequency, count_subgraphs, matched_frequency
from recombine.graphs.graph import Graph
from recombine.graphs.keys import subgraph_keys
from recombine.graphs.labels import CORRECT, LABELS, RESTORATION, node_labels


@dataclasses.dataclass(frozen=True)
class Shape:
    """Problems whose graphs have one shape: their inputs, what was stated of each node, and its label."""

    size: int
    graph: Graph
    inputs: Int[np.ndarray, "row input"]
    stated: Int[np.ndarray, "row node"]
    labels: Int[np.ndarray, "row node"]


def trained_subgraphs(
    family: GraphFamily, rows: Int[np.ndarray, "row slots"], times: Float[np.ndarray, " row"]
) -> Frequency:
    """How often training shows each subgraph, if it shows these problems so often."""
    shapes = family.shapes(rows)
    groups = [shapes == shape for shape in np.unique(shapes)]
    graphs = ((family.graph(rows[own][0]), family.inputs(rows[own])) for own in groups)
    return count_subgraphs(graphs, (times[own] for own in groups))


def shapes_of(
    family: GraphFamily, size: int, rows: Int[np.ndarray, "row slots"], said: Int[np.ndarray, "row token"]
) -> Iterator[Shape]:
    """The problems of a size by the shapes of their graphs, with what was said to them."""
    shapes = family.shapes(rows)
    for shape in np.unique(shapes):
        own = shapes == shape
        graph, inputs, stated = family.stated(rows[own], said[own])
        yield Shape(size, graph, inputs, stated, node_labels(graph, stated, inputs))


def summarise(shapes: list[Shape], frequency: Frequency) -> dict[str, float]:
    """Shares of labels over all steps, rates of single steps, and frequency of right nodes less wrong ones at equal depth."""
    counts = sum(
        np.bincount(shape.labels[:, list(shape.graph.steps)].ravel(), minlength=len(LABELS))
        for shape in shapes
    )
    rates = sum(rates_by_kind(shapes).values(), StepRates(0, 0, 0, 0))
    return {
        **{
            f"share_{label}": float(share)
            for label, share in zip(LABELS, counts / np.sum(counts), strict=True)
        },
        "step_error": rates.error,
        "step_recovery": rates.recovery,
        "bound": rates.bound,
        "off_prediction": off_prediction(shapes),
        "frequency_of_right": frequency_of_right(shapes, frequency),
    }


def rates_by_kind(shapes: list[Shape]) -> dict[Kind, StepRates]:
    """The rates of the steps of each operation with so many parents."""
    found: dict[Kind, StepRates] = {}
    for shape in shapes:
        for step, own in rates_by_step(shape.graph, shape.labels).items():
            kind = kind_of(shape.graph, step)
            found[kind] = found.get(kind, StepRates(0, 0, 0, 0)) + own
    return found


def off_prediction(shapes: list[Shape]) -> float:
    """How much more often steps of larger problems are right than the rates of steps in the smallest ones predict.

    NaN where all problems have one size.
    """
    smallest = min(shape.size for shape in shapes)
    rates = rates_by_kind([shape for shape in shapes if shape.size == smallest])
    more = []
    for shape in shapes:
        if shape.size > smallest:
            steps = list(shape.graph.steps)
            right = np.isin(shape.labels[:, steps], (CORRECT, RESTORATION))
            more.append((right - predicted_accuracy(shape.graph, rates)[steps]).ravel())
    return float(np.concatenate(more).mean()) if more else np.nan


def frequency_of_right(shapes: list[Shape], frequency: Frequency) -> float:
    """By how much subgraphs of correct steps were more frequent in training than those of others, log2 of 1 + times shown.

    Compared are steps of the same operation, number of parents, depth and size.
    """
    kinds = sorted({kind_of(shape.graph, step) for shape in shapes for step in shape.graph.steps})
    columns: list[list[np.ndarray]] = []
    for shape in shapes:
        graph, steps = shape.graph, list(shape.graph.steps)
        right = shape.labels[:, steps] == CORRECT
        times = frequency.of(subgraph_keys(graph, shape.inputs)[:, steps])
        kind = np.array([kinds.index(kind_of(graph, step)) for step in steps])
        alike = graph.depths[steps], kind, np.full(len(steps), shape.size)
        columns.append(
            [times.ravel(), right.ravel(), *(np.broadcast_to(one, right.shape).ravel() for one in alike)]
        )
    times, right, *alike = (np.concatenate(part) for part in zip(*columns, strict=True))
    # Steps that no trained problem could hold have nothing to compare.
    stratum = np.unique(np.stack(alike), axis=1, return_inverse=True)[1].ravel()
    kept = np.bincount(stratum, times)[stratum] > 0
    return matched_frequency(times[kept], right[kept].astype(bool), *(one[kept] for one in alike)).overall
