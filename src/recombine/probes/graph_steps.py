"""Where the steps that a network writes down go wrong: labels of nodes by depth, and how often training had their subgraphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import jax
import numpy as np
from jaxtyping import Array, Bool, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.graph_family import GraphFamily
from recombine.families.vocabulary import PAD
from recombine.graphs.bound import kind_of, rates_by_step
from recombine.graphs.labels import LABELS
from recombine.graphs.scratchpad import MISSING
from recombine.models.base import Network
from recombine.objectives.base import Objective
from recombine.probes.base import Measured, Measurement
from recombine.probes.graph_shapes import Shape, shapes_of, summarise, trained_subgraphs
from recombine.probes.tasks import over_tasks
from recombine.supports.leading_instances import LeadingInstances
from recombine.supports.listed import Listed
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

COUNTS = (
    "number",
    "right",
    "results",
    "flawed",
    "short",
    "long",
    *LABELS,
    "sound",
    "slips",
    "unsound",
    "mended",
)
COLUMNS = ("part", "size", "name", "beyond", "place", "step", "parents", *COUNTS, "row", "stated")
"""A table in three parts. `answers`: of each size the number of problems, those answered wholly right, those with the right
result, those of them in which a step is wrong, and those whose answer has too few tokens or too many; with the first problem whose
answer has as many as it needs (else the first), and what was stated of its nodes. `result`: of each size and place of the result the
number of problems and the right tokens. `steps`, of answers with as many tokens as they need: of each size, depth (`place`), operation and
number of parents the labels, the steps whose parents are all right and those of them that are wrong (slips), the other steps and those of them
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

    @property
    def longer(self) -> Int[np.ndarray, " row"]:
        """How many tokens more than needed each answer has. Tokens are read as steps by their place: where one is left out, all
        that follows would be taken for another step."""
        return (self.said != PAD).sum(axis=1) - (self.right != PAD).sum(axis=1)

    def _starts(self, family: GraphFamily) -> tuple[Int[np.ndarray, " row"], int]:
        """Where results begin, and how many tokens they have: problems of a size have results of one length."""
        length = int(family.results(self.rows[:1])[0])
        return (self.right != PAD).sum(axis=1) - 1 - length, length

    def result(self, family: GraphFamily) -> Bool[np.ndarray, "row place"]:
        """Which tokens of the results are right."""
        starts, length = self._starts(family)
        return np.take_along_axis(self.said == self.right, starts[:, None] + np.arange(length), axis=1)

    def flawed(self, family: GraphFamily) -> Bool[np.ndarray, " row"]:
        """Answers with a wrong token before the result: what comes behind it is no step."""
        before = np.arange(self.right.shape[1]) < self._starts(family)[0][:, None]
        return ((self.said != self.right) & before).any(axis=1)


class GraphSteps(Measurement):
    """Held-out problems of every size, answered by the network itself. Steps are looked at where answers have them."""

    kind: Literal["graph-steps"] = "graph-steps"
    version: ClassVar[int] = 4
    combinations: PositiveInt = 2048
    """The most problems that are answered."""
    fewest: PositiveInt = 16
    """Sizes with fewer problems count in no mean over sizes: one answer more or less would be all of it."""

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
        sizes, where_of = family.sizes(rows), regions_of(setting, rows)
        times = support.shares * config.recipe.steps * config.recipe.tasks
        frequency = trained_subgraphs(family, support.rows, times) if family.steps else None
        tables: list[dict[str, Any]] = []
        summary: dict[str, float] = {}
        for where, chosen in where_of.items():
            found: dict[int, Answers] = {}
            shapes: list[Shape] = []
            for size in np.unique(sizes[chosen]).tolist():
                own = chosen & (sizes == size)
                found[size] = Answers(rows[own], said["said"][own], said["right"][own])
                fits = found[size].longer == 0
                if family.steps and fits.any():
                    shapes += shapes_of(family, size, rows[own][fits], said["said"][own][fits])
            if found:
                own_tables = [*_answers(family, found), *_results(family, found), *_steps(shapes)]
                more = {"beyond": where == "beyond"}
                tables += [row | more | {"name": family.size_name(row["size"])} for row in own_tables]
                own_summary = _accuracy(own_tables, self.fewest)
                if frequency is not None and shapes:
                    own_summary |= summarise(shapes, frequency)
                summary |= {f"{name}_{where}": value for name, value in own_summary.items()}
        empty = dict.fromkeys(COLUMNS, "") | dict.fromkeys(("place", "parents", *COUNTS), 0)
        return Measured(summary, {name: [(empty | row)[name] for row in tables] for name in COLUMNS})


def regions_of(setting: Setting, rows: Int[np.ndarray, "row slots"]) -> dict[str, Bool[np.ndarray, " row"]]:
    """Which held-out problems are of trained sizes, and which are larger. Some are neither."""
    config, support = setting.config, setting.support
    assert isinstance(config.family, GraphFamily)
    assert isinstance(support, Listed)
    sizes, trained = config.family.sizes(rows), np.unique(config.family.sizes(support.rows))
    known = np.isin(sizes, trained)
    if isinstance(config.support, LeadingInstances):
        # What comes later was not held out at random, also where it is no deeper itself than what leads.
        known &= config.support.leads(config.space, rows)
    return {"in": known, "beyond": config.family.larger(sizes, trained)}


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


def _answers(family: GraphFamily, found: dict[int, Answers]) -> Iterator[dict[str, Any]]:
    for size, answers in found.items():
        result = np.asarray(answers.result(family).all(axis=1))
        # One answer of each size to look at: the first that can be read, right or wrong.
        first = int(np.argmax(answers.longer == 0))
        shown = {"row": " ".join(map(str, answers.rows[first]))}
        if family.steps:
            _, _, stated = family.stated(answers.rows[[first]], answers.said[[first]])
            shown["stated"] = " ".join("?" if one == MISSING else str(one) for one in stated[0])
        yield {
            "part": "answers",
            "size": size,
            "number": len(result),
            "right": int(answers.whole.sum()),
            "results": int(result.sum()),
            "flawed": int((result & answers.flawed(family)).sum()),
            "short": int((answers.longer < 0).sum()),
            "long": int((answers.longer > 0).sum()),
            **shown,
        }


def _results(family: GraphFamily, found: dict[int, Answers]) -> Iterator[dict[str, Any]]:
    for size, answers in found.items():
        right = answers.result(family)
        for place, number in enumerate(right.sum(axis=0).tolist(), start=1):
            yield {"part": "result", "size": size, "place": place, "number": len(right), "right": number}


def _steps(shapes: list[Shape]) -> Iterator[dict[str, Any]]:
    counts: dict[tuple[int, int, str, int], np.ndarray] = {}
    for shape in shapes:
        rates = rates_by_step(shape.graph, shape.labels)
        for step in shape.graph.steps:
            key = shape.size, int(shape.graph.depths[step]), *kind_of(shape.graph, step)
            labels = np.bincount(shape.labels[:, step], minlength=len(LABELS))
            own = np.array([*labels, *dataclasses.astuple(rates[step])])
            counts[key] = counts.get(key, 0) + own
    for (size, depth, word, parents), own in counts.items():
        names = (*LABELS, "sound", "slips", "unsound", "mended")
        numbers = dict(zip(names, own.tolist(), strict=True))
        yield {
            "part": "steps",
            "size": size,
            "place": depth,
            "step": word,
            "parents": parents,
            "number": sum(numbers[label] for label in LABELS),
            "right": numbers["correct"] + numbers["restoration"],
            **numbers,
        }


def _accuracy(tables: list[dict[str, Any]], fewest: int) -> dict[str, float]:
    """Means over sizes with enough problems: answers wholly right, results right, answers with too few tokens; and the share of
    right results with a wrong step."""
    own = [row for row in tables if row["part"] == "answers"]
    results = sum(row["results"] for row in own)
    enough = [row for row in own if row["number"] >= fewest]
    return {
        "exact": float(np.mean([row["right"] / row["number"] for row in enough])) if enough else np.nan,
        "result": float(np.mean([row["results"] / row["number"] for row in enough])) if enough else np.nan,
        "flawed": sum(row["flawed"] for row in own) / results if results else np.nan,
        "short": float(np.mean([row["short"] / row["number"] for row in enough])) if enough else np.nan,
    }
