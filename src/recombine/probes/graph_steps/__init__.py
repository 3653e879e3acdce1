"""Errors in the steps that a network writes down: labels of nodes by depth, and the training frequency of subgraphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.sequences.graphs import GraphFamily
from recombine.graphs.bound import kind_of, rates_by_step
from recombine.graphs.labels import LABELS
from recombine.graphs.scratchpad import MISSING
from recombine.language.vocabulary import PAD
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.graph_steps.shapes import Shape, shapes_of, summarise, trained_subgraphs
from recombine.probes.tasks import AnswerTask, over_tasks
from recombine.supports import LeadingInstances, Listed
from recombine.training.prepare import Setting
from recombine.training.streams import Stream

COUNTS = ("number", "right", "results", "flawed", "short", "long", *LABELS, "sound", "slips", "unsound", "mended")
COLUMNS = ("part", "size", "name", "beyond", "place", "step", "parents", *COUNTS, "row", "stated")
"""A table in three parts.

`answers`, by size: the number of problems, of correct answers, of correct results, of correct results with a wrong step
(`flawed`), and of answers with too few or too many tokens; with the first problem whose answer has the right length (or
the first of all), and the stated values of its nodes.
`result`, by size and position in the result (`place`): the number of problems and of right tokens.
`steps`, for answers that are generated with as many tokens as they need, by size, depth (`place`), operation and number of parents: the labels; the steps
whose parents are all right (`sound`), of which wrong (`slips`); the other steps (`unsound`), of which right (`mended`)."""

BATCH = 128
"""Problems in one compiled call."""
TARGET_BATCH = 2048
"""The same where only targets are computed, without a network."""


@dataclasses.dataclass(frozen=True)
class Answers:
    """Problems of one size with the network's answers and the targets."""

    rows: Int[np.ndarray, "row slots"]
    answers: Int[np.ndarray, "row token"]
    targets: Int[np.ndarray, "row token"]

    @property
    def correct(self) -> Bool[np.ndarray, " row"]:
        """Which answers have only right tokens."""
        return ((self.answers == self.targets) | (self.targets == PAD)).all(axis=1)

    @property
    def excess_length(self) -> Int[np.ndarray, " row"]:
        """The number of tokens of each answer less that of the target. Tokens are read as steps by position, so steps cannot
        be read from an answer of another length."""
        return (self.answers != PAD).sum(axis=1) - (self.targets != PAD).sum(axis=1)

    def _starts(self, family: GraphFamily) -> tuple[Int[np.ndarray, " row"], int]:
        """The start of each result, and its number of tokens: problems of one size have results of one length."""
        length = int(family.results(self.rows[:1])[0])
        return (self.targets != PAD).sum(axis=1) - 1 - length, length

    def result(self, family: GraphFamily) -> Bool[np.ndarray, "row place"]:
        """Which tokens of the results are right."""
        starts, length = self._starts(family)
        return np.take_along_axis(self.answers == self.targets, starts[:, None] + np.arange(length), axis=1)

    def flawed(self, family: GraphFamily) -> Bool[np.ndarray, " row"]:
        """Which answers have a wrong token before the result."""
        before = np.arange(self.targets.shape[1]) < self._starts(family)[0][:, None]
        return ((self.answers != self.targets) & before).any(axis=1)


class GraphSteps(Measurement):
    """Answers of the network to held-out problems of every size, step by step where the answers have steps."""

    kind: Literal["graph-steps"] = "graph-steps"
    version: ClassVar[int] = 5
    combinations: PositiveInt = 2048
    """The largest number of problems."""
    fewest: PositiveInt = 16
    """Sizes with fewer problems are left out of means over sizes, because they are too noisy."""

    summary_names: ClassVar[tuple[str, ...]] = tuple(
        f"{name}_{region}"
        for name in (
            *("exact", "result", "flawed", "short", "step_error", "step_recovery", "bound", "off_prediction"),
            *("frequency_of_right", *(f"share_{label}" for label in LABELS)),
        )
        for region in ("in", "beyond")
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, support, family = setting.config, setting.support, setting.config.family
        if not (isinstance(family, GraphFamily) and isinstance(support, Listed)):
            raise BadInput(
                f"graph-steps needs a family with computation graphs; this run has {family.kind!r}.",
                fix="family=maximum-sum, multiplication or einstein",
            )
        rows = setting.regions.require("held_out", self.combinations, "test")
        rows = rows[in_vocabulary(setting, rows)]
        compute = AnswerTask(config.objective, whole=family.steps)
        tokens = over_tasks(compute, setting, network, rows, Stream.TEST, self.kind, BATCH)
        tokens = {name: np.round(values).astype(np.int64) for name, values in tokens.items()}
        sizes = family.sizes(rows)
        times = support.shares * config.recipe.steps * config.recipe.tasks
        frequency = trained_subgraphs(family, support.rows, times) if family.steps else None
        tables: list[dict[str, Any]] = []
        summary: dict[str, float] = {}
        for region, chosen in regions_of(setting, rows).items():
            by_size: dict[int, Answers] = {}
            shapes: list[Shape] = []
            for size in np.unique(sizes[chosen]).tolist():
                some = chosen & (sizes == size)
                answers = by_size[size] = Answers(rows[some], tokens["answer"][some], tokens["target"][some])
                if family.steps:
                    # Where an answer ends early, every step after it would be missing, and none could inherit an error.
                    shapes += shapes_of(family, size, answers.rows, tokens["whole"][some])
            if by_size:
                records = [*_answers(family, by_size), *_results(family, by_size), *_steps(shapes)]
                more = {"beyond": region == "beyond"}
                tables += [row | more | {"name": family.size_name(row["size"])} for row in records]
                numbers = _accuracy(records, self.fewest)
                if frequency is not None and shapes:
                    numbers |= summarise(shapes, frequency)
                summary |= {f"{name}_{region}": value for name, value in numbers.items()}
        empty = dict.fromkeys(COLUMNS, "") | dict.fromkeys(("place", "parents", *COUNTS), 0)
        return Measured(summary, {name: [(empty | row)[name] for row in tables] for name in COLUMNS})


def regions_of(setting: Setting, rows: Int[np.ndarray, "row slots"]) -> dict[str, Bool[np.ndarray, " row"]]:
    """Which held-out problems have trained sizes (`in`), and which are larger (`beyond`). Some are neither."""
    config, support = setting.config, setting.support
    assert isinstance(config.family, GraphFamily)
    assert isinstance(support, Listed)
    sizes, trained = config.family.sizes(rows), np.unique(config.family.sizes(support.rows))
    known = np.isin(sizes, trained)
    if isinstance(config.support, LeadingInstances):
        # Later instances were not held out at random, even if they are no deeper than the leading ones.
        known &= config.support.leads(config.space, rows)
    return {"in": known, "beyond": config.family.larger(sizes, trained)}


def in_vocabulary(setting: Setting, rows: Int[np.ndarray, "row slots"]) -> Bool[np.ndarray, " row"]:
    """Which problems have only steps whose tokens occur in training, as the others were never trained.

    The choice does not depend on whether answers have steps.
    """
    family, support = setting.config.family, setting.support
    assert isinstance(family, GraphFamily)
    assert isinstance(support, Listed)
    full = Setting(setting.config.model_copy(update={"family": family.model_copy(update={"steps": True})}))
    words = [
        over_tasks(AnswerTask(None), full, None, some, Stream.TEST, "words", TARGET_BATCH)["target"].astype(np.int64)
        for some in (support.rows, rows)
    ]
    known = np.isin(words[1], np.append(np.unique(words[0]), PAD))
    return np.asarray(known.all(axis=1))


def _answers(family: GraphFamily, by_size: dict[int, Answers]) -> Iterator[dict[str, Any]]:
    for size, answers in by_size.items():
        result = np.asarray(answers.result(family).all(axis=1))
        # An example answer of each size: the first of the right length, correct or not.
        first = int(np.argmax(answers.excess_length == 0))
        shown = {"row": " ".join(map(str, answers.rows[first]))}
        if family.steps:
            _, _, stated = family.stated(answers.rows[[first]], answers.answers[[first]])
            shown["stated"] = " ".join("?" if value == MISSING else str(value) for value in stated[0])
        yield {
            "part": "answers",
            "size": size,
            "number": len(result),
            "right": int(answers.correct.sum()),
            "results": int(result.sum()),
            "flawed": int((result & answers.flawed(family)).sum()),
            "short": int((answers.excess_length < 0).sum()),
            "long": int((answers.excess_length > 0).sum()),
            **shown,
        }


def _results(family: GraphFamily, by_size: dict[int, Answers]) -> Iterator[dict[str, Any]]:
    for size, answers in by_size.items():
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
            more = np.array([*labels, *dataclasses.astuple(rates[step])])
            counts[key] = counts.get(key, 0) + more
    for (size, depth, word, parents), count in counts.items():
        names = (*LABELS, "sound", "slips", "unsound", "mended")
        numbers = dict(zip(names, count.tolist(), strict=True))
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
    """Correct answers, correct results and short answers, as means over sizes with enough problems; and the share of correct
    results with a wrong step."""
    rows = [row for row in tables if row["part"] == "answers"]
    results = sum(row["results"] for row in rows)
    enough = [row for row in rows if row["number"] >= fewest]

    def mean(name: str) -> float:
        return float(np.mean([row[name] / row["number"] for row in enough])) if enough else np.nan

    return {
        "exact": mean("right"),
        "result": mean("results"),
        "flawed": sum(row["flawed"] for row in rows) / results if results else np.nan,
        "short": mean("short"),
    }
