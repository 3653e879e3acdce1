"""Where the steps that a network writes down go wrong: labels of nodes by depth, and how often training had their subgraphs."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Array, Bool, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.maximum_sum import MaximumSum
from recombine.families.vocabulary import SPECIAL
from recombine.graphs.bound import StepRates, step_rates
from recombine.graphs.dynamic_programming import maximum_sum_graph
from recombine.graphs.frequency import Frequency, count_subgraphs, matched_frequency
from recombine.graphs.graph import Graph
from recombine.graphs.keys import subgraph_keys
from recombine.graphs.labels import LABELS, count_labels, node_labels
from recombine.graphs.scratchpad import MISSING
from recombine.models.base import Network
from recombine.objectives.base import Objective
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import over_tasks
from recombine.spaces.lists import ListSpace
from recombine.supports.listed import Listed
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

COLUMNS = ("length", "depth", "label", "nodes", "entries", "stated")

BATCH = 128
"""Lists that are answered at a time."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a network says to one task by itself. Hashable, so that runs with equal parts share one compiled program."""

    objective: Objective

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row, key, 1)
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))
        return {"said": self.objective.evaluate(network, codes, batches, key)[0, 0]}


@dataclasses.dataclass(frozen=True)
class Lists:
    """Lists of one length: the shape of their graphs, their entries, and what was stated of each node."""

    graph: Graph
    entries: Int[np.ndarray, "list entry"]
    stated: Int[np.ndarray, "list node"]

    @classmethod
    def of(
        cls,
        space: ListSpace,
        rows: Int[np.ndarray, "list slots"],
        said: Int[np.ndarray, "list token"],
        first: int,
    ) -> Lists:
        """`said` are numbers of words, of which the first says `first`. What is no number states nothing."""
        entries = np.array([space.values(row) for row in rows], np.int64)
        graph = maximum_sum_graph(entries[0].tolist())
        stated = np.full((len(rows), len(graph)), MISSING)
        stated[:, list(graph.inputs)] = entries
        tokens = said[:, : len(graph.steps)]
        stated[:, list(graph.steps)] = np.where(tokens >= SPECIAL, tokens - SPECIAL + first, MISSING)
        return cls(graph, entries, stated)


class GraphSteps(Measurement):
    """Held-out lists of every length, answered by the network itself with all steps. For `maximum-sum`; nothing where
    answers have no steps."""

    kind: Literal["graph-steps"] = "graph-steps"
    combinations: PositiveInt = 2048
    """The most lists that are answered."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, support = setting.config, setting.support
        family, space = config.family, config.space
        if not (isinstance(family, MaximumSum) and isinstance(space, ListSpace)):
            raise BadInput(
                f"The steps of graphs are read of answers that have them; those of {family.kind!r} have none.",
                fix="family=maximum-sum",
            )
        if not family.steps:
            return Measured({}, {name: [] for name in COLUMNS})
        assert isinstance(support, Listed)
        rows = setting.regions.require("held_out", self.combinations, "test")
        rows = rows[sayable(space, rows, support.most_parts)]
        said = over_tasks(Answer(config.objective), setting, network, rows, Stream.TEST, self.kind, BATCH)[
            "said"
        ]
        said = np.round(said).astype(np.int64)
        lengths = (rows < space.width).sum(axis=1)
        longest = support.most_parts
        frequency = trained_subgraphs(space, support)
        tables: list[dict[str, Any]] = []
        parts: dict[str, list[Lists]] = {"in": [], "beyond": []}
        for length in np.unique(lengths):
            chosen = lengths == length
            lists = Lists.of(space, rows[chosen], said[chosen], family.first)
            parts["in" if length <= longest else "beyond"].append(lists)
            # One answer of each length to look at: the first, whatever it is.
            shown = {
                "entries": " ".join(map(str, lists.entries[0])),
                "stated": " ".join("?" if one == MISSING else str(one) for one in lists.stated[0]),
            }
            counts = count_labels(lists.graph, node_labels(lists.graph, lists.stated, lists.entries)).counts
            tables += [
                {"length": int(length), "depth": depth, "label": label, "nodes": int(number), **shown}
                for depth, row in enumerate(counts, start=1)
                for label, number in zip(LABELS, row, strict=True)
            ]
        summary = {
            f"{name}_{where}": value
            for where, group in parts.items()
            if group
            for name, value in _summary(group, frequency).items()
        }
        return Measured(summary, {name: [row[name] for row in tables] for name in COLUMNS})


def sayable(space: ListSpace, rows: Int[np.ndarray, "list slots"], longest: int) -> Bool[np.ndarray, " list"]:
    """Lists all of whose sums can occur in lists of up to `longest` numbers: the words for larger ones are never trained."""
    most = max(0, space.high) * -(-longest // 2)
    entries = np.where(rows < space.width, rows % space.levels + space.low, 0)
    best, following = np.zeros((2, len(rows)), int)
    for entry in entries.T[::-1]:
        best, following = np.maximum(np.maximum(best, entry + following), 0), best
    return best <= most


def trained_subgraphs(space: ListSpace, support: Listed) -> Frequency:
    """How often each subgraph occurs in the lists that are trained on."""
    lengths = (support.rows < space.width).sum(axis=1)
    shapes = []
    for length in np.unique(lengths):
        entries = support.rows[lengths == length, :length] % space.levels + space.low
        shapes.append((maximum_sum_graph(entries[0].tolist()), entries.astype(np.int64)))
    return count_subgraphs(shapes)


def _summary(group: list[Lists], frequency: Frequency) -> dict[str, float]:
    """Shares of labels over all steps, rates of single steps, and frequency of right nodes less wrong ones at equal depth."""
    labels = [node_labels(lists.graph, lists.stated, lists.entries) for lists in group]
    counts = np.sum(
        [count_labels(lists.graph, own).counts.sum(axis=0) for lists, own in zip(group, labels, strict=True)],
        axis=0,
    )
    rates = sum(
        (step_rates(lists.graph, own) for lists, own in zip(group, labels, strict=True)),
        StepRates(0, 0, 0, 0),
    )
    columns: list[list[np.ndarray]] = []
    for lists, own in zip(group, labels, strict=True):
        steps = list(lists.graph.steps)
        shape = own[:, steps].shape
        found = frequency.of(subgraph_keys(lists.graph, lists.entries)[:, steps])
        depth = np.broadcast_to(lists.graph.depths[steps], shape)
        kind = np.broadcast_to([lists.graph.nodes[step].word == "best sum" for step in steps], shape)
        length = np.full(shape, lists.entries.shape[1])
        columns.append(
            [part.ravel() for part in (found, own[:, steps] == 0, depth, kind.astype(int), length)]
        )
    times, right, *alike = (np.concatenate(part) for part in zip(*columns, strict=True))
    # Nodes that no training list could hold have nothing to compare.
    _, stratum = np.unique(np.stack(alike), axis=1, return_inverse=True)
    kept = np.bincount(stratum.ravel(), times)[stratum.ravel()] > 0
    matched = matched_frequency(times[kept], right[kept].astype(bool), *(one[kept] for one in alike))
    return {
        **{
            f"share_{label}": float(share) for label, share in zip(LABELS, counts / counts.sum(), strict=True)
        },
        "step_error": rates.error,
        "step_recovery": rates.recovery,
        "bound": rates.bound,
        "frequency_of_right": matched.overall,
    }
