"""Judges: whether an image shows what it was asked for. One is named by a word and what belongs to it."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import importlib
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.pipelines.prompt_set import Question

KINDS = {
    "file": ("recombine.pipelines.judge_labels", "LabelJudge"),
    "clip": ("recombine.pipelines.judge_clip", "ClipJudge"),
    "vqa": ("recombine.pipelines.judge_vqa", "VqaJudge"),
    "openai": ("recombine.pipelines.judge_endpoint", "EndpointJudge"),
}
HOW = "file:LABELS.csv, module:function, clip:FOLDER, vqa:FOLDER or openai:URL"
RIGHT = 0.5
"""A concept is there if the judge is surer than this."""


@dataclasses.dataclass(frozen=True)
class Shown:
    """An image that is to be judged."""

    prompt: str
    """The name of its prompt."""
    text: str
    number: int
    path: Path
    questions: tuple[Question, ...]

    def load(self) -> Any:
        """The image, as pillow has it."""
        from PIL import Image

        with Image.open(self.path) as image:
            return image.convert("RGB")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a judge said of an image."""

    scores: tuple[float | None, ...] = ()
    """For each question how sure it is that it is so, from 0 to 1; None where it did not say. Empty: only the whole was judged."""
    success: bool | None = None
    """All concepts are right; None where that is not known."""
    error: str = ""
    """Why something is not known."""

    def record(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def from_scores(scores: list[float | None], error: str = "") -> Answer:
    """All concepts must match. Where one is not known nothing is: if a no settled it and a yes did not, failures would count more."""
    if not scores or None in scores:
        return Answer(tuple(scores), None, error or "not all concepts have an answer")
    return Answer(tuple(scores), all(one is not None and one >= RIGHT for one in scores), error)


class Judge(abc.ABC):
    """Looks at one image at a time."""

    fresh = False
    """Whether it is asked anew each time, as a file of labels is that somebody may have filled in further."""
    name: str
    """What it is called in tables; no secrets."""
    version: str = ""
    """What tells it from others of its name: a hash of its weights, or of its source."""
    compares = False
    """Whether it is told the prompts with other concepts in place of the true one."""

    def prepare(self) -> None:  # noqa: B027 (most have nothing to do)
        """Before it is asked for the first time. BadInput if it cannot be asked at all."""

    @abc.abstractmethod
    def look(self, shown: Shown) -> Answer:
        """What it says of an image. It may raise anything: that is recorded, and the others are judged."""

    @property
    def file(self) -> str:
        """The name of the file of what it said."""
        return hashlib.sha256(f"{self.name}\n{self.version}".encode()).hexdigest()[:12] + ".jsonl"

    def gone(self) -> str:
        """Why no more need be asked, if that is so."""
        return ""


def make_judge(spec: str, *, model: str | None = None, device: str = "auto") -> Judge:
    """A judge by what the user wrote."""
    word, sign, rest = spec.partition(":")
    if not sign or not word or not rest:
        raise BadInput(f"The judge {spec!r} is not understood.", fix=f"write {HOW}")
    if word not in KINDS:
        from recombine.pipelines.judge_function import FunctionJudge

        return FunctionJudge(spec)
    module, name = KINDS[word]
    return getattr(importlib.import_module(module), name)(rest, model=model, device=device)
