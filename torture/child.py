"""The real command line in a child process that tells where it is and, if asked to, dies at a file operation.

Not part of recombine: functions are wrapped from outside. TORTURE_BOARD names a file of two numbers that the parent
reads at any moment: the phase, and how many file operations were made. With TORTURE_DIE=n the process kills its own
group just before (n > 0) or just after (n < 0) its n-th file operation.
"""

from __future__ import annotations

import functools
import mmap
import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any

PHASES = (
    "starting",
    "preparing",
    "compiling",
    "training",
    "checkpoint",
    "commit",
    "measuring",
    "storing a measurement",
    "ending",
)
"""In the order of a sweep."""

BOARD = struct.Struct("<ii")

OPERATIONS = ("replace", "rename", "fsync", "unlink", "mkdir", "rmdir")


class Board:
    """Where the process is, in memory that the parent sees."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), BOARD.size)
        self.phase, self.operations = 0, 0

    def enter(self, phase: str) -> None:
        """Say in what phase the process is now."""
        self.phase = PHASES.index(phase)
        self._write()

    def operate(self) -> int:
        """Count a file operation."""
        self.operations += 1
        self._write()
        return self.operations

    def _write(self) -> None:
        BOARD.pack_into(self._memory, 0, self.phase, self.operations)


def during(board: Board, owner: Any, name: str, phase: str, after: str | None = None) -> None:
    """Wrap a function: while it runs the phase is this one, then that which was before (or `after`)."""
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        before = PHASES[board.phase]
        board.enter(phase)
        try:
            return inner(*arguments, **named)
        finally:
            board.enter(after or before)

    setattr(owner, name, wrapped)


def mortal(board: Board, inner: Callable[..., Any], moment: int) -> Callable[..., Any]:
    """A file operation that may be the last."""

    def die() -> None:
        os.killpg(0, signal.SIGKILL)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        number = board.operate()
        if number == moment:
            die()
        result = inner(*arguments, **named)
        if number == -moment:
            die()
        return result

    return wrapped


def main() -> None:
    """Wrap, then do what the command line says."""
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # A shell may have told programs in the background to ignore it.
    board = Board(os.environ["TORTURE_BOARD"])
    moment = int(os.environ.get("TORTURE_DIE", "0"))

    from recombine.cli.main import main as command
    from recombine.engines.local import LocalEngine
    from recombine.store.store import Store
    from recombine.training import trainer
    from recombine.training.program import Compiler

    trainer.CHECKPOINT_SECONDS = -1.0  # After every chunk.
    during(board, trainer.Trainer, "_start", "preparing")
    during(board, Compiler, "advance", "compiling", after="training")
    during(board, trainer, "save_tree", "checkpoint")
    during(board, Store, "commit", "commit")
    during(board, LocalEngine, "_measure", "measuring", after="ending")
    during(board, Store, "add_measurement", "storing a measurement")
    for name in OPERATIONS:
        setattr(os, name, mortal(board, getattr(os, name), moment))
    command(sys.argv[1:])


if __name__ == "__main__":
    from recombine.interrupts import installed

    try:
        with installed():  # As the command line does it; what is wrapped loads JAX before.
            main()
    except KeyboardInterrupt:  # While this file is loading what it wraps.
        os._exit(130)
