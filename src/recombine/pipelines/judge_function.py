"""A judge that is a Python function of an image and a question."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from recombine.endpoints.function import load_function, source_version
from recombine.pipelines.judge import Answer, Judge, Shown, from_scores


class FunctionJudge(Judge):
    """`module:function`; it returns a bool, or from 0 to 1 how sure it is, or None where it cannot tell."""

    compares = True

    def __init__(self, spec: str | Callable[..., Any]) -> None:
        if callable(spec):
            self.name, self._function = getattr(spec, "__qualname__", type(spec).__name__), spec
            self.version = source_version(spec)
            return
        self.name = spec
        self._function = load_function(spec, "judge", "name a function(image, question)")
        self.version = source_version(self._function)

    def look(self, shown: Shown) -> Answer:
        image = shown.load()
        return from_scores([_score(self._function(image, question)) for question in shown.questions])


def _score(said: Any) -> float | None:
    if said is None:
        return None
    value = float(said)
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise ValueError(f"the judge said {said!r}, not a bool nor a number from 0 to 1")
    return value
