"""Errors that a user can act on: what was expected, what came, and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RecombineError(Exception):
    """Base of every error that recombine raises on purpose. `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return self.message if self.fix is None else f"{self.message}\n  fix: {self.fix}"


class BadInput(RecombineError, ValueError):
    """The user asked for something that does not exist or cannot be."""

    exit_code = 2


class StoreError(BadInput):
    """The store cannot be read or written."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A short hint that names the nearest known word, or lists the known ones."""
    options = sorted(known)
    near = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known: " + (", ".join(options) if options else "none")
