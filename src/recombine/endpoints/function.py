"""A model that is a Python function of the question."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.store.files import sha256_of


def load_function(
    spec: str, what: str = "function", fix: str = "name a function(prompt) that returns the answer"
) -> Callable[..., Any]:
    """The function of `module:function`, with the module in this folder or installed. `what` is what it is called."""
    module, sign, name = spec.partition(":")
    if not module or not sign or not name:
        raise BadInput(f"The {what} {spec!r} is not understood.", fix="write module:function")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # As `python -m` does: the user's module lies beside the command.
    try:
        found = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # The module is the user's, and may raise anything.
        raise BadInput(
            f"The {what} {spec!r} cannot be imported: {type(error).__name__}: {error}.",
            fix="write module:function, with the module in this folder or installed",
        ) from error
    if not callable(found):
        raise BadInput(f"The {what} {spec!r} is no function.", fix=fix)
    return found


def source_version(function: Any) -> str:
    """A hash of the file in which a function is written; nothing where there is none."""
    try:
        return sha256_of(Path(inspect.getsourcefile(inspect.unwrap(function)) or ""))[:16]
    except (TypeError, OSError):
        return ""
