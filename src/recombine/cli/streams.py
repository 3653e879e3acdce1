"""Standard output and standard error that may fail: a closed pipe or a full disk behind them does not end the work."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class Lasting:
    """A text stream that keeps its first error instead of raising it. What is written after that is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None
        """Why it can no longer be written."""

    def write(self, text: str) -> int:
        """Write a text; returns its length, as if it had been written."""
        self._attempt(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        self._attempt(self._stream.flush)

    def _attempt(self, function: Any, *arguments: Any) -> None:
        if self.error is None:
            try:
                function(*arguments)
            except OSError as error:
                self.error = error

    def silence(self) -> None:
        """Let the rest that is buffered go nowhere, so that the end of the process does not fail."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def open_closed_streams() -> None:
    """Open standard streams that the caller closed.

    Otherwise the next file would get the number of standard error, and messages of libraries would be written into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - until the process ends.


@contextlib.contextmanager
def lasting() -> Iterator[Lasting]:
    """Make both streams last for a block. What is given says afterwards whether standard output failed."""
    out, err = sys.stdout, sys.stderr
    streams = Lasting(out), Lasting(err)
    sys.stdout, sys.stderr = streams  # type: ignore[assignment]
    try:
        yield streams[0]
    finally:
        for stream in streams:
            stream.flush()
            if stream.error is not None:
                stream.silence()
        sys.stdout, sys.stderr = out, err


def why_lost(error: OSError) -> str | None:
    """Why output was lost, in words; None if the reader left on purpose, as `head` does."""
    return None if error.errno == errno.EPIPE else error.strerror or str(error)
