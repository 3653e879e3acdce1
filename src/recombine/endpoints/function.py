"""A model that is a Python function of the prompt."""

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
    """Load a function from its name.

    Args:
        spec: `module:function`, with the module in the current folder or installed.
        what: What the function is called in errors.
        fix: The advice if the name is not a function.

    Returns:
        The function.
    """
    module, sign, name = spec.partition(":")
    if not module or not sign or not name:
        raise BadInput(f"The {what} {spec!r} is not understood.", fix="write module:function")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # As `python -m` does: the module may be in the current folder.
    try:
        function = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # The user's module may raise anything.
        raise BadInput(
            f"The {what} {spec!r} cannot be imported: {type(error).__name__}: {error}.",
            fix="write module:function, with the module in this folder or installed",
        ) from error
    if not callable(function):
        raise BadInput(f"The {what} {spec!r} is not a function.", fix=fix)
    return function


def source_version(function: Any) -> str:
    """A hash of the source file of a function; empty if there is none."""
    try:
        return sha256_of(Path(inspect.getsourcefile(inspect.unwrap(function)) or ""))[:16]
    except (TypeError, OSError):
        return ""
