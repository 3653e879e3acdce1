"""The images of one set as the probes want them: combinations, rows, and features that are read when asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.cells import Cells, Factor
from recombine.errors import BadInput
from recombine.pipelines.drawing import Prompt, numbered
from recombine.pipelines.folder import AT, TEXT, Folder
from recombine.pipelines.judging import Answers
from recombine.pipelines.prompt_set import PromptSet

MEAN = "mean"
"""Of all points of the schedule."""
SUCCESS = "success"


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A combination is a cell, an image is a row."""

    given: PromptSet
    prompts: tuple[Prompt, ...]
    """A cell each."""
    cells: Cells
    cell: Int[np.ndarray, " row"]
    kept: Bool[np.ndarray, " made"]
    """Which images are rows: all but those that the pipeline's own filter blackened."""
    folder: Folder
    blocks: tuple[str, ...]
    times: tuple[str, ...]
    encoders: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What was said when images were made."""

    @property
    def fold(self) -> Int[np.ndarray, " cell"]:
        """Of each combination."""
        return np.array([prompt.fold for prompt in self.prompts])

    def features(self, block: str, time: str) -> Float[np.ndarray, "row feature"]:
        """What a block had at a point of the schedule."""
        names = [prompt.name for prompt in self.prompts]
        if time != MEAN:
            return np.concatenate(self.folder.arrays(names, f"{block}{AT}{time}"))[self.kept]
        parts = [self.features(block, one) for one in self.times if one != MEAN]
        return np.mean(parts, axis=0)

    def encoded(self, encoder: str) -> Float[np.ndarray, "row feature"]:
        """What a text encoder gave out."""
        names = [one.name for one in self.prompts]
        return np.concatenate(self.folder.arrays(names, f"{TEXT}{encoder}"))[self.kept]


def recorded(given: PromptSet, prompts: Sequence[Prompt], answers: Answers, folder: Folder) -> Recorded:
    """The prompts that have images, with what was judged of them."""
    there = tuple(prompt for prompt in prompts if folder.has(prompt.name))
    if not there:
        raise BadInput("No prompt has images.", fix="try the pipeline on one prompt with diffusers alone")
    every = [folder.manifest(prompt.name) for prompt in there]
    cell = np.repeat(np.arange(len(there)), [len(one["flagged"]) for one in every])
    kept = ~np.array([flag for one in every for flag in one["flagged"]], dtype=bool)
    names = [name for name in every[0]["arrays"] if all(name in one["arrays"] for one in every)]
    sites = [name.rpartition(AT) for name in names if not name.startswith(TEXT)]
    times = tuple(dict.fromkeys(time for _, _, time in sites))
    whole = list(dict.fromkeys(block for block, _, _ in sites))
    return Recorded(
        given,
        there,
        _cells(given, there, answers),
        cell[kept],
        kept,
        folder,
        tuple(block for block in whole if all(f"{block}{AT}{time}" in names for time in times)),
        (*times, MEAN),
        tuple(name.removeprefix(TEXT) for name in names if name.startswith(TEXT)),
        tuple(dict.fromkeys(one["note"] for one in every if one.get("note"))),
    )


def _cells(given: PromptSet, prompts: tuple[Prompt, ...], answers: Answers) -> Cells:
    """The table of successes by combination."""
    by_prompt: dict[str, list[float]] = {prompt.name: [] for prompt in prompts}
    for (name, _), one in answers.items():
        if one.success is not None and name in by_prompt:
            by_prompt[name].append(float(one.success))
    judged = list(by_prompt.values())
    mean = np.array([np.mean(one) if one else np.nan for one in judged])
    places = tuple(dict.fromkeys(given.places))
    kind = "value" if given.exclusive else "set"
    return Cells(
        factors=tuple(Factor(place, given.values(place), (place,), kind) for place in places),
        parts=numbered(given, [prompt.combination for prompt in prompts]),
        place=given.places,
        scores=(SUCCESS,),
        binary=(True,),
        count=np.array([len(one) for one in judged]),
        mean=mean[:, None],
        spread=np.array([np.var(one) * len(one) if one else 0.0 for one in judged])[:, None],
    )


def right_concepts(prompt: Prompt, answers: Answers, least: float) -> Bool[np.ndarray, "image question"]:
    """For each image with an answer to every question whether each concept is right."""
    rows = [
        [score is not None and score >= least for score in one.scores]
        for (name, _), one in answers.items()
        if name == prompt.name and one.scores and None not in one.scores
    ]
    return np.array(rows, dtype=bool).reshape(len(rows), len(prompt.questions))
