"""Errors that a user can act on: what was expected, what came, and how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RecombineError(Exception):
    """Base of all errors that recombine raises on purpose.

    Attributes:
        message: What was expected and what came.
        fix: How to fix it, or None.
        exit_code: The exit code of the command line.
    """

    exit_code = 1

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return self.message if self.fix is None else f"{self.message}\n  fix: {self.fix}"


class BadInput(RecombineError, ValueError):
    """The request does not exist or is impossible."""

    exit_code = 2


class MissingPackage(BadInput):
    """A package that only some parts need is not installed; the fix says how to install it."""


class StoreError(BadInput):
    """The store cannot be read or written."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name: the nearest known one, or the list of all."""
    options = sorted(known)
    near = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known: " + (", ".join(options) if options else "none")
