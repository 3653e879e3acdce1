"""How long things took on this machine: kept beside the compiled programs, so that later estimates rest on measurements.

A time is noted under several names, the most exact first: the program itself, the kind of model and family, the kind of model. An
estimate takes the first name that has times. Estimates use nothing else of this file, and nothing that is computed does.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import jax

from recombine.training.compiling import use_compile_cache
from recombine.training.config import RunConfig
from recombine.training.program import Program, bucket_name

FILE = "recombine-timings.json"

RECENT = 5
"""The number of times that are kept under each name: a machine may be busy today and idle tomorrow."""

MOST_NAMES = 20_000
"""The oldest names beyond this number are forgotten."""


class Timings:
    """Times in seconds by name, with what earlier processes noted in the same folder."""

    def __init__(self, folder: Path) -> None:
        """Read the times of a folder. A file that is missing or damaged has none."""
        self._path = folder / FILE
        self._times = self._read()
        self._new: list[tuple[str, float]] = []

    def _read(self) -> dict[str, list[float]]:
        try:
            read = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(name): [float(value) for value in values][-RECENT:] for name, values in read.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def note(self, names: Sequence[str], seconds: float) -> None:
        """Note a time under all of these names."""
        for name in names:
            self._new.append((name, seconds))
            self._add(self._times, name, seconds)

    @staticmethod
    def _add(times: dict[str, list[float]], name: str, seconds: float) -> None:
        # Behind the others: the last names are the newest.
        times[name] = [*times.pop(name, []), float(f"{seconds:.3g}")][-RECENT:]

    def seconds(self, names: Sequence[str]) -> float | None:
        """The median time under the first of these names that has any; None where none has."""
        found = next((self._times[name] for name in names if self._times.get(name)), None)
        return None if found is None else statistics.median(found)

    def knows(self, name: str) -> bool:
        """Whether a time was noted under a name."""
        return bool(self._times.get(name))

    def save(self) -> None:
        """Add what is new to the file. A folder that cannot be written keeps nothing, and that is no error."""
        if not self._new:
            return
        times = self._read()  # Another process may have written since.
        for name, seconds in self._new:
            self._add(times, name, seconds)
        kept = dict(list(times.items())[-MOST_NAMES:])
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._path.parent, delete=False, encoding="utf-8") as part:
                json.dump(kept, part)
            os.replace(part.name, self._path)
        except OSError:
            return
        self._times, self._new = times, []


@functools.cache
def _timings(folder: Path) -> Timings:
    return Timings(folder)


def timings() -> Timings:
    """The times of this machine, beside the compiled programs that this process uses."""
    return _timings(use_compile_cache())


class Stopwatch:
    """Seconds of this process since it was made, as if nothing else ran on the machine."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        """The time that passed. On CPUs it is at most the processor time, so that other work on the machine does not count."""
        wall, processor = time.perf_counter() - self._wall, time.process_time() - self._processor
        return min(wall, processor) if jax.default_backend() == "cpu" else wall


class _Misses:
    """Counts the programs that were not in the cache on disk."""

    def __init__(self) -> None:
        self.count = 0
        jax.monitoring.register_event_listener(self._heard)

    def _heard(self, event: str, **_: str | int) -> None:
        self.count += event == "/jax/compilation_cache/cache_misses"


@functools.cache
def _misses() -> _Misses:
    return _Misses()


def compiled_now() -> int:
    """How many programs this process compiled that were not in the cache on disk. Differences of it mean something."""
    return _misses().count


@functools.lru_cache(maxsize=4096)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def program_key(program: Program, config: RunConfig) -> str:
    """The name of a bucket's compiled program for the times of this machine: other versions compile anew.

    Args:
        program: The program.
        config: A run of the bucket.
    """
    from recombine import __version__

    versions = f"{__version__} {jax.__version__} {metadata.version('jaxlib')}"
    return _digest(f"{bucket_name(program, config)}|{program.identity[-4:]}|{versions}")


def names_of(what: str, key: str, config: RunConfig, *, detail: str = "") -> tuple[str, ...]:
    """The names under which a time is noted, the most exact first.

    Args:
        what: What took the time, such as `start cold`.
        key: The key of the program.
        config: A run of the bucket.
        detail: Of a measurement, its name; the last name has its kind alone.
    """
    model, family = config.model.kind, config.family.kind
    kind = detail.rpartition("-")[0]
    return (
        f"{what}|{detail}|{key}",
        f"{what}|{kind}|{model}|{family}|{config.objective.kind}",
        f"{what}|{kind}|{model}",
        *((f"{what}|{kind}",) if kind else ()),
        what,
    )
