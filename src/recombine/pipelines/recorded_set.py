"""The images of one set of prompts for probes: combinations, rows, and activations that are read on demand."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.cells import Cells, Factor
from recombine.errors import BadInput
from recombine.pipelines.folder import AT, TEXT, ImageFolder
from recombine.pipelines.judges.judging import Judgements
from recombine.pipelines.prompts.drawing import Prompt, numbered
from recombine.pipelines.prompts.sets import PromptSet

MEAN = "mean"
"""The mean over all points of the schedule."""
SUCCESS = "success"


@dataclasses.dataclass(frozen=True)
class RecordedSet:
    """The images of one set. A combination is a cell, an image is a row."""

    given: PromptSet
    prompts: tuple[Prompt, ...]
    """One prompt per cell."""
    cells: Cells
    cell: Int[np.ndarray, " row"]
    kept: Bool[np.ndarray, " made"]
    """Which images are rows: all except those that the pipeline's safety filter blackened."""
    folder: ImageFolder
    blocks: tuple[str, ...]
    times: tuple[str, ...]
    encoders: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Notes from the generation of the images."""

    @property
    def fold(self) -> Int[np.ndarray, " cell"]:
        """The fold of each combination."""
        return np.array([prompt.fold for prompt in self.prompts])

    @functools.cached_property
    def finite(self) -> Bool[np.ndarray, " row"]:
        """Which images have finite activations everywhere. Half precision may overflow."""
        sites = itertools.product(self.blocks, self.times[:-1])
        good = [np.isfinite(self.features(block, time)).all(1) for block, time in sites]
        return np.logical_and.reduce(good) if good else np.ones(len(self.cell), bool)

    def features(self, block: str, time: str) -> Float[np.ndarray, "row feature"]:
        """The activations of a block at a point of the schedule."""
        if time != MEAN:
            return self._array(f"{block}{AT}{time}")
        return np.mean([self.features(block, point) for point in self.times if point != MEAN], axis=0)

    def encoded(self, encoder: str) -> Float[np.ndarray, "row feature"]:
        """The output of a text encoder."""
        return self._array(f"{TEXT}{encoder}")

    def _array(self, name: str) -> Float[np.ndarray, "row feature"]:
        return np.concatenate(self.folder.arrays([prompt.name for prompt in self.prompts], name))[self.kept]


def load_recorded_set(
    given: PromptSet, prompts: Sequence[Prompt], answers: Judgements, folder: ImageFolder
) -> RecordedSet:
    """The prompts of a set that have images, with their judgements."""
    there = tuple(prompt for prompt in prompts if folder.has(prompt.name))
    if not there:
        raise BadInput("No prompt has images.", fix="try the pipeline on one prompt with diffusers alone")
    every = [folder.manifest(prompt.name) for prompt in there]
    cell = np.repeat(np.arange(len(there)), [len(manifest["flagged"]) for manifest in every])
    kept = ~np.array([flag for manifest in every for flag in manifest["flagged"]], dtype=bool)
    names = [name for name in every[0]["arrays"] if all(name in manifest["arrays"] for manifest in every)]
    sites = [name.rpartition(AT) for name in names if not name.startswith(TEXT)]
    times = tuple(dict.fromkeys(time for _, _, time in sites))
    whole = dict.fromkeys(block for block, _, _ in sites)
    blocks = tuple(block for block in whole if all(f"{block}{AT}{time}" in names for time in times))
    encoders = tuple(name.removeprefix(TEXT) for name in names if name.startswith(TEXT))
    notes = tuple(dict.fromkeys(manifest["note"] for manifest in every if manifest.get("note")))
    rows = (_cells(given, there, answers), cell[kept], kept)
    return RecordedSet(given, there, *rows, folder, blocks, (*times, MEAN), encoders, notes)


def _cells(given: PromptSet, prompts: tuple[Prompt, ...], answers: Judgements) -> Cells:
    """The table of successes by combination."""
    by_prompt: dict[str, list[float]] = {prompt.name: [] for prompt in prompts}
    for (name, _), answer in answers.items():
        if answer.success is not None and name in by_prompt:
            by_prompt[name].append(float(answer.success))
    judged = list(by_prompt.values())
    kind = "value" if given.exclusive else "set"
    return Cells(
        factors=tuple(Factor(place, given.values(place), (place,), kind) for place in dict.fromkeys(given.places)),
        constituents=numbered(given, [prompt.combination for prompt in prompts]),
        slots=given.places,
        scores=(SUCCESS,),
        binary=(True,),
        count=np.array([len(values) for values in judged]),
        mean=np.array([[np.mean(values) if values else np.nan] for values in judged]),
        spread=np.array([[np.var(values) * len(values) if values else 0.0] for values in judged]),
    )


def right_concepts(prompt: Prompt, answers: Judgements, least: float) -> Bool[np.ndarray, "image question"]:
    """Which concepts each image shows, for images with an answer to every question."""
    own = [answer.scores for (name, _), answer in answers.items() if name == prompt.name]
    rows = [scores for scores in own if scores and None not in scores]
    return np.array(rows, dtype=float).reshape(len(rows), len(prompt.questions)) >= least
