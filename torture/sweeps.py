"""A small sweep through the real command line: started, watched, killed, and compared with an undisturbed one."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from child import BOARD, PHASES

from recombine.store.files import ASIDE, moved
from recombine.store.repair import Examination
from recombine.store.store import Store, is_store

CHILD = Path(__file__).with_name("child.py")

CHANGING = ("seconds", "compile_seconds", "provenance", "time", "seal")
"""What may differ between two sweeps: when, how fast, and the hash over these."""

PATIENCE = 900.0
"""Seconds without a new phase or file operation after which a child counts as stuck; on a busy machine compiling is slow."""


_numbers = itertools.count()


class Broken(Exception):
    """A promise was not kept."""


class Child:
    """One start of the sweep."""

    def __init__(
        self, store: Path, work: Path, sweep: Path, die: int = 0, *, before: Sequence[str] = (), redirection: str = ""
    ) -> None:
        self._board = work / f"board-{next(_numbers)}"
        self._board.write_bytes(BOARD.pack(0, 0))
        self._errors = self._board.with_suffix(".txt")
        environment = os.environ | {
            "TORTURE_BOARD": str(self._board),
            "TORTURE_DIE": str(die),
            # Shared by all children: what a killed one leaves there must not hurt the next.
            "JAX_COMPILATION_CACHE_DIR": str(work / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        command = [*before, sys.executable, str(CHILD), "sweep", str(sweep), "--store", str(store)]
        if redirection:
            command = ["bash", "-c", f"set -o pipefail; {shlex.join(command)} {redirection}"]
        with open(self._errors, "wb") as errors:
            self.process = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
            )
        self.begin = self._since = time.monotonic()
        self._seen = (0, 0)

    def _read(self) -> tuple[int, int]:
        phase, operations = BOARD.unpack(self._board.read_bytes())
        return phase, operations

    @property
    def phase(self) -> str:
        return PHASES[self._read()[0]]

    @property
    def operations(self) -> int:
        return self._read()[1]

    @property
    def running(self) -> bool:
        if self._read() != self._seen:
            self._seen, self._since = self._read(), time.monotonic()
        if time.monotonic() - self._since > PATIENCE:
            self.kill()
            raise Broken(f"A sweep was stuck for {PATIENCE:.0f} s while {self.phase}: {self.words()}")
        return self.process.poll() is None

    def kill(self) -> None:
        """End the process and all that it started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def wait(self, until: float = math.inf) -> int | None:
        """Its exit code when it has ended (minus a signal's number if it was killed), or None when the time is up."""
        while self.running and time.monotonic() < until:
            time.sleep(min(0.01, max(0.0, until - time.monotonic())))
        return self.process.returncode

    def words(self) -> str:
        """What it said on standard error."""
        return self._errors.read_text()

    def close(self) -> None:
        """Take its files away."""
        self._board.unlink(missing_ok=True)
        self._errors.unlink(missing_ok=True)


def finish(child: Child) -> tuple[float, int]:
    """Let a sweep run to its end; the seconds it took, and its file operations."""
    code = child.wait()
    if code != 0:
        raise Broken(f"The sweep ended with exit code {code}: {child.words()}")
    taken, operations = time.monotonic() - child.begin, child.operations
    child.close()
    return taken, operations


def read(store: Path) -> None:
    """Read everything, as anybody may at any moment; a killed sweep is no damage."""
    if not is_store(store):
        return  # Killed before there was one.
    findings = Examination(store, repair=False).run()
    reading = Store(store, create=False)
    for frame in (reading.runs_df, reading.curves_df, reading.combinations_df, reading.studies):
        frame()
    if findings or reading.problems:
        raise Broken(f"{store} cannot be read: {findings} {reading.problems}")


def contents(store: Path) -> dict[str, Any]:
    """What a sweep brought: the bytes of all files; of records all but when and how fast they were made.

    What was set aside may be damaged: of that only the bytes.
    """
    found: dict[str, Any] = {}
    for path in sorted(store.rglob("*")):
        name = path.relative_to(store).as_posix()
        if path.is_dir() and path.parent.name != "temporary":
            continue
        if path.suffix == ".json" and not name.startswith(f"{ASIDE}/"):
            record = json.loads(path.read_text())
            found[name] = {key: value for key, value in record.items() if key not in CHANGING}
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


def compare(store: Path, wanted: dict[str, Any]) -> None:
    """Every run is there once, with equal bits, and nothing else is left: no part, no checkpoint, nothing set aside."""
    read(store)
    found = contents(store)
    if moved(store):
        raise Broken(f"{store}: a killed sweep is no damage, yet something was set aside: {moved(store)}")
    if found.keys() != wanted.keys():
        missing, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
        raise Broken(f"{store}: missing are {missing}, left over are {extra}")
    differ = [name for name in wanted if found[name] != wanted[name]]
    if differ:
        raise Broken(f"{store}: other bits than in an undisturbed sweep: {differ}")
