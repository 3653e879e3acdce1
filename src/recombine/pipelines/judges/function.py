"""A judge that is a Python function of an image and a question."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from recombine.endpoints.function import load_function, source_version
from recombine.pipelines.judges.base import ImageToJudge, Judge, Judgement, from_scores


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
