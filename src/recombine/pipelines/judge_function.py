"""A judge that is a Python function of an image and a question."""

from __future__ import annotations

import importlib
import inspect
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.pipelines.judge import Answer, Judge, Shown, from_scores
from recombine.store.files import sha256_of


class FunctionJudge(Judge):
    """`module:function`; it returns a bool, or from 0 to 1 how sure it is, or None where it cannot tell."""

    compares = True

    def __init__(self, spec: str | Callable[..., Any]) -> None:
        if callable(spec):
            self.name, self._function = getattr(spec, "__qualname__", type(spec).__name__), spec
            self.version = _source(spec)
            return
        self.name = spec
        module, _, name = spec.partition(":")
        here = os.getcwd()
        if here not in sys.path:
            sys.path.insert(0, here)  # As `python -m` does: the user's module lies beside the command.
        try:
            found = getattr(importlib.import_module(module), name)
        except (Exception, SystemExit) as error:  # The module is the user's, and may raise anything.
            raise BadInput(
                f"The judge {spec!r} cannot be imported: {type(error).__name__}: {error}.",
                fix="write module:function, with the module in this folder or installed",
            ) from error
        if not callable(found):
            raise BadInput(f"The judge {spec!r} is no function.", fix="name a function(image, question)")
        self._function = found
        self.version = _source(found)

    def look(self, shown: Shown) -> Answer:
        image = shown.load()
        return from_scores([_score(self._function(image, question)) for question in shown.questions])


def _source(function: Any) -> str:
    """A hash of the file in which a function is written; nothing where there is none."""
    try:
        return sha256_of(Path(inspect.getsourcefile(inspect.unwrap(function)) or ""))[:16]
    except (TypeError, OSError):
        return ""


def _score(said: Any) -> float | None:
    if said is None:
        return None
    value = float(said)
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise ValueError(f"the judge said {said!r}, not a bool nor a number from 0 to 1")
    return value
