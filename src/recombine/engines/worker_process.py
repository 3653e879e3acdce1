"""A worker process, as the process that started it sees it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from recombine.engines.worker import GRACE_SECONDS, Event, WorkerOptions
from recombine.registry import environment

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "jax_disable_most_optimizations",
)
"""Settings of JAX for compiling and for the cache. All processes of a sweep use the same."""


def settings() -> dict[str, str]:
    """This process's settings of JAX and its registered components, as environment variables for a worker."""
    import jax

    from recombine.training.compiling import use_compile_cache

    use_compile_cache()
    values = {name: jax.config.values.get(name) for name in SETTINGS}
    return {name.upper(): str(value) for name, value in values.items() if value is not None} | environment()


class WorkerProcess:
    """A worker process. It ends when the process that started it ends."""

    def __init__(self, options: WorkerOptions, environment: Mapping[str, str]) -> None:
        # A file, not a pipe: a pipe would have to be read while the worker writes.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`.
        self._process = subprocess.Popen(
            # -P: files in the current folder must not shadow libraries.
            [sys.executable, "-P", "-m", "recombine.engines.worker", options.model_dump_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=dict(environment),
            # Ctrl-C in a terminal goes to the process that started it, which then ends its workers.
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, text: str) -> None:
        """Send a work unit as one line of JSON."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # The worker is dead; the end of its output shows this.
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()

    def events(self) -> Iterator[Event]:
        """The worker's events, until it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # The worker's death may cut off a line.
            with contextlib.suppress(ValueError):
                yield json.loads(line)

    def why(self) -> str:
        """How the worker ended, in words."""
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

    def stopped(self) -> bool:
        """Whether somebody stopped the worker (SIGSTOP, a frozen control group), so that it does nothing until it goes on."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
        except (OSError, IndexError):
            return False  # It ended, or the system does not say.

    def kill(self) -> None:
        """End the worker at once; its events end then."""
        self._process.kill()

    def close(self) -> None:
        """Close the input. A busy worker stops and removes half-written files."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def stop(self) -> None:
        """Close the worker and wait for its end."""
        self.close()
        try:
            self._process.wait(2 * GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._errors.close()
