"""The steps of answers, grouped by the shape of their graphs: error rates, predictions from them, and subgraph frequency."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from recombine.families.sequences.graphs import GraphFamily
from recombine.graphs import Frequency, Graph, count_subgraphs, matched_frequency, subgraph_keys
from recombine.graphs.bound import Kind, StepRates, kind_of, predicted_accuracy, rates_by_step
from recombine.graphs.labels import CORRECT, LABELS, RESTORATION, node_labels


@dataclasses.dataclass(frozen=True)
class Shape:
    """Problems whose graphs have one shape: inputs, the stated value of each node, and its label."""

    size: int
    graph: Graph
    inputs: Int[np.ndarray, "row input"]
    stated: Int[np.ndarray, "row node"]
    labels: Int[np.ndarray, "row node"]


def trained_subgraphs(
    family: GraphFamily, rows: Int[np.ndarray, "row slots"], times: Float[np.ndarray, " row"]
) -> Frequency:
    """Count how often each subgraph occurs in training, given how often each problem occurs (`times`)."""
    shapes = family.shapes(rows)
    groups = [shapes == shape for shape in np.unique(shapes)]
    graphs = ((family.graph(rows[group][0]), family.inputs(rows[group])) for group in groups)
    return count_subgraphs(graphs, (times[group] for group in groups))


def shapes_of(
    family: GraphFamily, size: int, rows: Int[np.ndarray, "row slots"], answers: Int[np.ndarray, "row token"]
) -> Iterator[Shape]:
    """Group the problems of one size, with their answers, by the shape of their graphs."""
    shapes = family.shapes(rows)
    for shape in np.unique(shapes):
        group = shapes == shape
        graph, inputs, stated = family.stated(rows[group], answers[group])
        yield Shape(size, graph, inputs, stated, node_labels(graph, stated, inputs))


def summarise(shapes: list[Shape], frequency: Frequency) -> dict[str, float]:
    """Shares of labels over all steps, error rates of single steps, and the training frequency of correct steps."""
    counts = sum(
        np.bincount(shape.labels[:, list(shape.graph.steps)].ravel(), minlength=len(LABELS)) for shape in shapes
    )
    rates = sum(rates_by_kind(shapes).values(), StepRates(0, 0, 0, 0))
    return {
        **{f"share_{label}": float(share) for label, share in zip(LABELS, counts / np.sum(counts), strict=True)},
        "step_error": rates.error,
        "step_recovery": rates.recovery,
        "bound": rates.bound,
        "off_prediction": off_prediction(shapes),
        "frequency_of_right": frequency_of_right(shapes, frequency),
    }


def rates_by_kind(shapes: list[Shape]) -> dict[Kind, StepRates]:
    """The error rates of steps by operation and number of parents."""
    rates: dict[Kind, StepRates] = {}
    for shape in shapes:
        for step, more in rates_by_step(shape.graph, shape.labels).items():
            kind = kind_of(shape.graph, step)
            rates[kind] = rates.get(kind, StepRates(0, 0, 0, 0)) + more
    return rates


def off_prediction(shapes: list[Shape]) -> float:
    """The accuracy of steps in larger problems, less what the error rates of the smallest problems predict.

    NaN if all problems have one size.
    """
    smallest = min(shape.size for shape in shapes)
    rates = rates_by_kind([shape for shape in shapes if shape.size == smallest])
    excess = []
    for shape in shapes:
        if shape.size > smallest:
            steps = list(shape.graph.steps)
            right = np.isin(shape.labels[:, steps], (CORRECT, RESTORATION))
            excess.append((right - predicted_accuracy(shape.graph, rates)[steps]).ravel())
    return float(np.concatenate(excess).mean()) if excess else np.nan


def frequency_of_right(shapes: list[Shape], frequency: Frequency) -> float:
    """The training frequency (log2 of 1 + count) of the subgraphs of correct steps, less that of other steps.

    Steps are compared with steps of the same operation, number of parents, depth and problem size.
    """
    kinds = sorted({kind_of(shape.graph, step) for shape in shapes for step in shape.graph.steps})
    columns: list[list[np.ndarray]] = []
    for shape in shapes:
        graph, steps = shape.graph, list(shape.graph.steps)
        right = shape.labels[:, steps] == CORRECT
        times = frequency.of(subgraph_keys(graph, shape.inputs)[:, steps])
        kind = np.array([kinds.index(kind_of(graph, step)) for step in steps])
        matched = graph.depths[steps], kind, np.full(len(steps), shape.size)
        columns.append(
            [times.ravel(), right.ravel(), *(np.broadcast_to(value, right.shape).ravel() for value in matched)]
        )
    times, right, *matched = (np.concatenate(column) for column in zip(*columns, strict=True))
    # Strata whose steps never occur in training cannot be compared.
    stratum = np.unique(np.stack(matched), axis=1, return_inverse=True)[1].ravel()
    kept = np.bincount(stratum, times)[stratum] > 0
    return matched_frequency(times[kept], right[kept].astype(bool), *(value[kept] for value in matched)).overall
