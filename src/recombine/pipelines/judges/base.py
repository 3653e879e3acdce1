"""What a judge is, what it returns, and how a judge is made from its specification."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recombine.endpoints.function import load_function, source_version
from recombine.errors import BadInput
from recombine.pipelines.prompts.sets import Question

KINDS = {"file": "LabelJudge", "clip": "ClipJudge", "vqa": "VqaJudge", "openai": "EndpointJudge"}
SPECIFICATIONS = "file:LABELS.csv, module:function, clip:FOLDER, vqa:FOLDER or openai:URL"
THRESHOLD = 0.5
"""A concept counts as shown from this score on."""


@dataclasses.dataclass(frozen=True)
class ImageToJudge:
    """An image with the questions about it."""

    prompt: str
    """The name of the prompt's folder."""
    text: str
    number: int
    path: Path
    questions: tuple[Question, ...]

    def load(self) -> Any:
        """The image, as a Pillow image."""
        from PIL import Image

        with Image.open(self.path) as image:
            return image.convert("RGB")


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The judgement of one image."""

    scores: tuple[float | None, ...] = ()
    """The score of each question from 0 (no) to 1 (yes); None if there is no answer. Empty: only the whole image was judged."""
    success: bool | None = None
    """The image shows all concepts; None if that is unknown."""
    error: str = ""
    """Why something is unknown."""


def from_scores(scores: list[float | None], error: str = "") -> Judgement:
    """The judgement of an image from the scores of its questions.

    If one score is missing, success is unknown even if another score is a no. Otherwise failures would be known more often
    than successes.
    """
    if not scores or None in scores:
        return Judgement(tuple(scores), None, error or "not all concepts have an answer")
    return Judgement(tuple(scores), all(score is not None and score >= THRESHOLD for score in scores), error)


class Judge(abc.ABC):
    """Judges one image at a time. Subclasses define `name` and `assess`."""

    always_ask = False
    """Earlier judgements are not reused: a file of labels may have been extended."""
    name: str
    """The name in tables. No secrets."""
    version: str = ""
    """A hash of its weights or its source: distinguishes judges with the same name."""
    uses_alternatives = False
    """Its answers depend on the alternative prompts of a question."""

    def prepare(self) -> None:  # noqa: B027 (most have nothing to do)
        """Called before the first image. Raise `BadInput` if the judge cannot work."""

    @abc.abstractmethod
    def assess(self, image: ImageToJudge) -> Judgement:
        """Judge an image. It may raise anything: the error is recorded, and the other images are judged."""

    @property
    def file(self) -> str:
        """The name of the file of its judgements."""
        return hashlib.sha256(f"{self.name}\n{self.version}".encode()).hexdigest()[:12] + ".jsonl"

    def unavailable(self) -> str:
        """Why no more images should be judged. Empty: continue."""
        return ""


class FunctionJudge(Judge):
    """A function of an image and a question. It returns a bool, a score from 0 to 1, or None if it cannot decide."""

    uses_alternatives = True

    def __init__(self, spec: str | Callable[..., Any]) -> None:
        if callable(spec):
            self.name, self._function = getattr(spec, "__qualname__", type(spec).__name__), spec
        else:
            self.name, self._function = spec, load_function(spec, "judge", "name a function(image, question)")
        self.version = source_version(self._function)

    def assess(self, image: ImageToJudge) -> Judgement:
        picture = image.load()
        return from_scores([_score(self._function(picture, question)) for question in image.questions])


def _score(answer: Any) -> float | None:
    if answer is None:
        return None
    value = float(answer)
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise ValueError(f"the judge returned {answer!r}, which is not a bool or a number from 0 to 1")
    return value


def make_judge(spec: str, *, model: str | None = None, device: str = "auto") -> Judge:
    """Make a judge from its specification.

    Args:
        spec: file:LABELS.csv, module:function, clip:FOLDER, vqa:FOLDER or openai:URL.
        model: The model of an endpoint.
        device: The device of a local model.

    Returns:
        The judge.
    """
    kind, sign, rest = spec.partition(":")
    if not sign or not kind or not rest:
        raise BadInput(f"The judge {spec!r} is not understood.", fix=f"write {SPECIFICATIONS}")
    if kind not in KINDS:
        return FunctionJudge(spec)
    judges = importlib.import_module("recombine.pipelines.judges")
    return getattr(judges, KINDS[kind])(rest, model=model, device=device)
