"""Where the steps that a network writes down go wrong: labels of nodes by depth, and how often training had their subgraphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.graph_family import GraphFamily
from recombine.families.vocabulary import PAD
from recombine.graphs.bound import StepRates, highest_accuracy, rates_by_step
from recombine.graphs.frequency import Frequency, count_subgraphs, matched_frequency
from recombine.graphs.graph import Graph
from recombine.graphs.keys import subgraph_keys
from recombine.graphs.labels import CORRECT, LABELS, RESTORATION, node_labels
from recombine.graphs.scratchpad import MISSING
from recombine.models.base import Network
from recombine.objectives.base import Objective
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import over_tasks
from recombine.supports.listed import Listed
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

COUNTS = ("number", "right", "results", "flawed", *LABELS, "sound", "slips", "unsound", "mended")
COLUMNS = ("part", "size", "name", "beyond", "place", "step", *COUNTS, "row", "stated")
"""A table in three parts. `answers`: of each size the number of problems, those answered wholly right, those with the right
result, and those of them in which a step is wrong; with the first problem and what was stated of its nodes. `result`: of each
size and place of the result the number of problems and the right tokens. `steps`: of each size, depth (`place`) and operation
the labels, the steps whose parents are all right and those of them that are wrong (slips), the other steps and those of them
that are right (mended)."""

BATCH = 128
"""Problems that are answered at a time."""
AT_ONCE = 2048
"""Answers that are made at a time, without a network."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a network says to one task by itself, and what is right. Hashable, so that runs with equal parts share one
    compiled program. Without an objective only what is right."""

    objective: Objective | None

    def __call__(self, network: Network | None, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row, key, 1)
        if self.objective is None:
            return {"right": batch.targets[0]}
        assert network is not None
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))
        said = self.objective.evaluate(network, codes, batches, key)[0, 0]
        return {"said": said, "right": batch.targets[0]}


@dataclasses.dataclass(frozen=True)
class Answers:
    """Problems of one size, what was said to them, and what is right."""

    rows: Int[np.ndarray, "row slots"]
    said: Int[np.ndarray, "row token"]
    right: Int[np.ndarray, "row token"]

    @property
    def whole(self) -> Bool[np.ndarray, " row"]:
        """Answers of which every token is right."""
        return ((self.said == self.right) | (self.right == PAD)).all(axis=1)

    def result(self, family: GraphFamily) -> Bool[np.ndarray, "row place"]:
        """Which tokens of the results are right. Problems of a size have results of one length."""
        ends = (self.right != PAD).sum(axis=1) - 1
        length = int(family.results(self.rows[:1])[0])
        places = ends[:, None] - length + np.arange(length)
        return np.take_along_axis(self.said == self.right, places, axis=1)


@dataclasses.dataclass(frozen=True)
class Shape:
    """Problems whose graphs have one shape: their inputs, what was stated of each node, and its label."""

    size: int
    graph: Graph
    inputs: Int[np.ndarray, "row input"]
    stated: Int[np.ndarray, "row node"]
    labels: Int[np.ndarray, "row node"]


class GraphSteps(Measurement):
    """Held-out problems of every size, answered by the network itself. Steps are looked at where answers have them."""

    kind: Literal["graph-steps"] = "graph-steps"
    version: ClassVar[int] = 2
    combinations: PositiveInt = 2048
    """The most problems that are answered."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, support, family = setting.config, setting.support, setting.config.family
        if not (isinstance(family, GraphFamily) and isinstance(support, Listed)):
            raise BadInput(
                f"The steps of graphs are read of answers that have them; those of {family.kind!r} have none.",
                fix="family=maximum-sum, multiplication or einstein",
            )
        rows = setting.regions.require("held_out", self.combinations, "test")
        rows = rows[sayable(setting, rows)]
        said = over_tasks(Answer(config.objective), setting, network, rows, Stream.TEST, self.kind, BATCH)
        said = {name: np.round(tokens).astype(np.int64) for name, tokens in said.items()}
        trained, sizes = set(family.sizes(support.rows).tolist()), family.sizes(rows)
        times = support.shares * config.recipe.steps * config.recipe.tasks
        frequency = trained_subgraphs(family, support.rows, times) if family.steps else None
        tables: list[dict[str, Any]] = []
        summary: dict[str, float] = {}
        for where in ("in", "beyond"):
            found: dict[int, Answers] = {}
            shapes: list[Shape] = []
            for size in np.unique(sizes).tolist():
                if (size in trained) == (where == "in"):
                    own = sizes == size
                    found[size] = Answers(rows[own], said["said"][own], said["right"][own])
                    shapes += shapes_of(family, size, found[size]) if family.steps else []
            if found:
                own_tables = [*_answers(family, found, shapes), *_results(family, found), *_steps(shapes)]
                more = {"beyond": where == "beyond"}
                tables += [row | more | {"name": family.size_name(row["size"])} for row in own_tables]
                own_summary = _accuracy(own_tables)
                if frequency is not None:
                    own_summary |= _summary(shapes, frequency)
                summary |= {f"{name}_{where}": value for name, value in own_summary.items()}
        empty = dict.fromkeys(COLUMNS, "") | dict.fromkeys(("place", *COUNTS), 0)
        return Measured(summary, {name: [(empty | row)[name] for row in tables] for name in COLUMNS})


def sayable(setting: Setting, rows: Int[np.ndarray, "row slots"]) -> Bool[np.ndarray, " row"]:
    """Problems all of whose steps are words that some trained problem has: others are never trained.

    The same problems whether steps are said or not.
    """
    family, support = setting.config.family, setting.support
    assert isinstance(family, GraphFamily)
    assert isinstance(support, Listed)
    full = Setting(setting.config.model_copy(update={"family": family.model_copy(update={"steps": True})}))
    words = [
        over_tasks(Answer(None), full, None, some, Stream.TEST, "words", AT_ONCE)["right"].astype(np.int64)
        for some in (support.rows, rows)
    ]
    known = np.isin(words[1], np.append(np.unique(words[0]), PAD))
    return np.asarray(known.all(axis=1))


def trained_subgraphs(
    family: GraphFamily, rows: Int[np.ndarray, "row slots"], times: Float[np.ndarray, " row"]
) -> Frequency:
    """How often training shows each subgraph, if it shows these problems so often."""
    shapes = family.shapes(rows)
    groups = [shapes == shape for shape in np.unique(shapes)]
    graphs = ((family.graph(rows[own][0]), family.inputs(rows[own])) for own in groups)
    return count_subgraphs(graphs, (times[own] for own in groups))


def shapes_of(family: GraphFamily, size: int, answers: Answers) -> Iterator[Shape]:
    """The problems of a size by the shapes of their graphs."""
    shapes = family.shapes(answers.rows)
    for shape in np.unique(shapes):
        own = shapes == shape
        graph, inputs, stated = family.stated(answers.rows[own], answers.said[own])
        yield Shape(size, graph, inputs, stated, node_labels(graph, stated, inputs))


def _answers(family: GraphFamily, found: dict[int, Answers], shapes: list[Shape]) -> Iterator[dict[str, Any]]:
    for size, answers in found.items():
        result = np.asarray(answers.result(family).all(axis=1))
        shown = {"row": " ".join(map(str, answers.rows[0]))}
        own = [shape for shape in shapes if shape.size == size]
        if own:
            # One answer of each size to look at: the first, whatever it is.
            _, _, stated = family.stated(answers.rows[:1], answers.said[:1])
            shown["stated"] = " ".join("?" if one == MISSING else str(one) for one in stated[0])
        yield {
            "part": "answers",
            "size": size,
            "number": len(result),
            "right": int(answers.whole.sum()),
            "results": int(result.sum()),
            "flawed": int((result & ~answers.whole).sum()),
            **shown,
        }


def _results(family: GraphFamily, found: dict[int, Answers]) -> Iterator[dict[str, Any]]:
    for size, answers in found.items():
        right = answers.result(family)
        for place, number in enumerate(right.sum(axis=0).tolist(), start=1):
            yield {"part": "result", "size": size, "place": place, "number": len(right), "right": number}


def _steps(shapes: list[Shape]) -> Iterator[dict[str, Any]]:
    counts: dict[tuple[int, int, str], np.ndarray] = {}
    for shape in shapes:
        rates = rates_by_step(shape.graph, shape.labels)
        for step in shape.graph.steps:
            key = shape.size, int(shape.graph.depths[step]), shape.graph.nodes[step].word
            labels = np.bincount(shape.labels[:, step], minlength=len(LABELS))
            own = np.array([*labels, *dataclasses.astuple(rates[step])])
            counts[key] = counts.get(key, 0) + own
    for (size, depth, word), own in counts.items():
        numbers = dict(zip((*LABELS, "sound", "slips", "unsound", "mended"), own.tolist(), strict=True))
        yield {
            "part": "steps",
            "size": size,
            "place": depth,
            "step": word,
            "number": sum(numbers[label] for label in LABELS),
            "right": numbers["correct"] + numbers["restoration"],
            **numbers,
        }


def _accuracy(tables: list[dict[str, Any]]) -> dict[str, float]:
    """Means over sizes: answers wholly right, results right, and the share of right results with a wrong step."""
    own = [row for row in tables if row["part"] == "answers"]
    results = sum(row["results"] for row in own)
    return {
        "exact": float(np.mean([row["right"] / row["number"] for row in own])),
        "result": float(np.mean([row["results"] / row["number"] for row in own])),
        "flawed": sum(row["flawed"] for row in own) / results if results else np.nan,
    }


def _summary(shapes: list[Shape], frequency: Frequency) -> dict[str, float]:
    """Shares of labels over all steps, rates of single steps, and frequency of right nodes less wrong ones at equal depth."""
    counts = sum(
        np.bincount(shape.labels[:, list(shape.graph.steps)].ravel(), minlength=len(LABELS))
        for shape in shapes
    )
    rates = sum((one for shape in shapes for one in _by_word([shape]).values()), StepRates(0, 0, 0, 0))
    return {
        **{
            f"share_{label}": float(share)
            for label, share in zip(LABELS, counts / np.sum(counts), strict=True)
        },
        "step_error": rates.error,
        "step_recovery": rates.recovery,
        "bound": rates.bound,
        "above_bound": above_bound(shapes),
        "frequency_of_right": frequency_of_right(shapes, frequency),
    }


def _by_word(shapes: list[Shape]) -> dict[str, StepRates]:
    """The rates of the steps of each operation."""
    found: dict[str, StepRates] = {}
    for shape in shapes:
        for step, own in rates_by_step(shape.graph, shape.labels).items():
            word = shape.graph.nodes[step].word
            found[word] = found.get(word, StepRates(0, 0, 0, 0)) + own
    return found


def above_bound(shapes: list[Shape]) -> float:
    """How much more often steps of larger problems are right than the rates of steps in the smallest ones allow.

    NaN where all problems have one size.
    """
    smallest = min(shape.size for shape in shapes)
    rates = _by_word([shape for shape in shapes if shape.size == smallest])
    more = []
    for shape in shapes:
        if shape.size > smallest:
            steps = list(shape.graph.steps)
            right = np.isin(shape.labels[:, steps], (CORRECT, RESTORATION))
            more.append((right - highest_accuracy(shape.graph, rates)[steps]).ravel())
    return float(np.concatenate(more).mean()) if more else np.nan


def frequency_of_right(shapes: list[Shape], frequency: Frequency) -> float:
    """By how much subgraphs of correct steps were more frequent in training than those of others, log2 of 1 + times shown.

    Compared are steps of the same operation, depth and size.
    """
    words = sorted({node.word for shape in shapes for node in shape.graph.nodes})
    columns: list[list[np.ndarray]] = []
    for shape in shapes:
        graph, steps = shape.graph, list(shape.graph.steps)
        right = shape.labels[:, steps] == CORRECT
        times = frequency.of(subgraph_keys(graph, shape.inputs)[:, steps])
        kind = np.array([words.index(graph.nodes[step].word) for step in steps])
        alike = graph.depths[steps], kind, np.full(len(steps), shape.size)
        columns.append(
            [times.ravel(), right.ravel(), *(np.broadcast_to(one, right.shape).ravel() for one in alike)]
        )
    times, right, *alike = (np.concatenate(part) for part in zip(*columns, strict=True))
    # Steps that no trained problem could hold have nothing to compare.
    stratum = np.unique(np.stack(alike), axis=1, return_inverse=True)[1].ravel()
    kept = np.bincount(stratum, times)[stratum] > 0
    return matched_frequency(times[kept], right[kept].astype(bool), *(one[kept] for one in alike)).overall
