"""Ctrl-C and requests to end: a flag that long work looks at, so that nothing is lost and nothing is swallowed.

The first signal sets the flag. Training makes a checkpoint at the end of its chunk and stops; other work stops at once. A second
signal ends the process at once, also inside compiled code. Stores need no cleaning up: every file is written whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

TWICE_SECONDS = 0.25
"""Signals within this time count as one: `timeout`, for example, sends its signal to the process and to its group."""

PATIENCE = 1.0
"""Seconds after the first signal before a line says how to end at once."""


class Interrupted(KeyboardInterrupt):
    """The process was asked to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        """The signal."""


_received: list[int] = []
"""The first signal since `installed`, or nothing."""
_deferring = 0
"""How many blocks of `deferred` are open."""


def requested() -> bool:
    """Whether the process was asked to end."""
    return bool(_received)


def check() -> None:
    """Raise `Interrupted` if the process was asked to end, except in a block of `deferred`.

    A signal that arrives inside a callback of a library raises there, and the library may drop the exception. Here it is
    raised again.
    """
    if _received and not _deferring:
        raise Interrupted(_received[0])


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """A block in which the first signal only sets the flag. The block has to ask `requested` often."""
    global _deferring
    _deferring += 1
    try:
        yield
    finally:
        _deferring -= 1


def _handle(number: int, _frame: Any) -> None:
    if not _received:
        _received.append(number)
    if not _deferring:
        raise Interrupted(number)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Handle signals in this way. Signals that are ignored (`nohup`) stay ignored. Only the main thread can do so.

    A block inside of another one changes nothing.
    """
    nested = any(signal.getsignal(number) is _handle for number in SIGNALS)
    if nested or threading.current_thread() is not threading.main_thread():
        yield
        return
    _received.clear()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    before, hook = signal.set_wakeup_fd(writer, warn_on_full_buffer=False), sys.unraisablehook
    watcher = threading.Thread(target=_watch, args=(reader,), daemon=True)
    watcher.start()
    sys.unraisablehook = _without_interrupts
    try:
        for number, handler in handlers.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, _handle)
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        sys.unraisablehook = hook
        os.close(writer)
        watcher.join()
        os.close(reader)
        _received.clear()


def _without_interrupts(unraisable: Any) -> None:
    """Python prints exceptions that nobody can catch. An interrupt needs no traceback: the flag is set."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _watch(reader: int) -> None:
    """End the process at the second signal. This thread also runs while the main thread is in compiled code."""
    first: float | None = None
    timer: threading.Timer | None = None
    while data := os.read(reader, 64):
        if not any(number in SIGNALS for number in data):
            continue
        if first is None:
            first = time.monotonic()
            timer = threading.Timer(PATIENCE, _say, ["Stopping. Press Ctrl-C again to end at once."])
            timer.daemon = True
            timer.start()
        elif time.monotonic() - first > TWICE_SECONDS:
            _say("Ended at once. Finished runs are kept.")
            os._exit(128 + data[-1])
    if timer is not None:
        timer.cancel()


def _say(text: str) -> None:
    """Write a line to standard error. A bar of progress may have hidden the cursor of a terminal."""
    with contextlib.suppress(OSError):
        os.write(2, (("\r\x1b[2K\x1b[?25h" if os.isatty(2) else "") + text + "\n").encode())
