"""A worker process, seen from the process that started it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping

from recombine.engines.worker import GRACE_SECONDS, Event, Orders

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "jax_disable_most_optimizations",
)
"""What decides how programs are compiled and where they are kept: the same in all processes of a sweep."""


def settings() -> dict[str, str]:
    """This process's settings of JAX as a worker's environment."""
    import jax

    values = {name: jax.config.values.get(name) for name in SETTINGS}
    return {name.upper(): str(value) for name, value in values.items() if value is not None}


class Child:
    """A worker process. It ends with whoever started it, however that one ends."""

    def __init__(self, orders: Orders, environment: Mapping[str, str]) -> None:
        # A file and not a pipe: nobody has to read it while the worker writes.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`.
        self._process = subprocess.Popen(
            # -P: what lies in the current folder must not take the place of a library.
            [sys.executable, "-P", "-m", "recombine.engines.worker", orders.model_dump_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=dict(environment),
            # Ctrl-C in a terminal is for the process that started it, which tells its workers.
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, text: str) -> None:
        """Give it a parcel."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # It is dead: its output ends, and that is seen.
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()

    def events(self) -> Iterator[Event]:
        """What it tells, until it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A line that was cut off by the worker's death is none.
            with contextlib.suppress(ValueError):
                yield json.loads(line)

    def why(self) -> str:
        """How it ended, in words."""
        code = self._process.wait()
        if code == -signal.SIGKILL:
            return "it was killed (SIGKILL; most often the machine was out of memory)"
        if code < 0:
            return f"it was ended by {signal.Signals(-code).name}{self._last_words()}"
        return f"it ended with exit code {code}{self._last_words()}"

    def _last_words(self) -> str:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 2000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1].strip()}" if lines else ""

    def close(self) -> None:
        """Tell it that nothing more comes. In the middle of a parcel it stops, what is half written is removed."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def stop(self) -> None:
        """Close it and wait until it is gone."""
        self.close()
        try:
            self._process.wait(2 * GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
