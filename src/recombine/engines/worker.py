"""The worker process: `python -m recombine.engines.worker OPTIONS`.

Work units come as lines of JSON on standard input; events go out as lines of JSON on standard output. When the input ends
in the middle of a unit, the process that gave it is gone, and the worker stops.
"""

from __future__ import annotations

import _thread
import contextlib
import dataclasses
import json
import os
import queue
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from recombine import interrupts
from recombine.errors import BadInput, RecombineError, StoreError

# Imported in the functions, because limits must be set before JAX and NumPy count the cores.
if TYPE_CHECKING:
    from recombine.engines.base import Engine
    from recombine.engines.work_units import WorkUnit
    from recombine.store.store import Store

GRACE_SECONDS = 5.0
"""The time that a worker has to clean up when it is stopped."""

REPORT_SECONDS = 0.1
"""The shortest time between two reports of steps."""

ENDS = ("done", "lost", "broken", "refused")
"""The events that end a unit."""

Event = dict[str, Any]
Send = Callable[[Event], None]


class WorkerOptions(BaseModel):
    """The settings of a worker."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    store: str
    """The folder of the store. Unused where results go to an object store."""
    remote: str | None = None
    """The address of an object store for the results."""
    threads: int | None = None
    """Cores to use; None for all."""
    memory: int | None = None
    """Bytes that may be used."""


def run_unit(unit: WorkUnit, store: Store, engine: Engine, send: Send) -> Event:
    """Train and measure a unit into a store. Errors become events, so that the worker goes on."""
    from recombine.engines.events import EventWriter

    try:
        sweep = engine.run(store, unit.configs, unit.measurements, EventWriter(send, REPORT_SECONDS))
    except BadInput as error:
        kind = "store" if isinstance(error, StoreError) else "input"
        return {"event": "refused", "kind": kind, "message": error.message, "fix": error.fix}
    except RecombineError as error:
        return {"event": "broken", "why": error.message, "fix": error.fix}
    except MemoryError:
        return {"event": "lost", "why": "it was out of memory"}
    except Exception as error:  # noqa: BLE001 - a component may raise anything; the other units go on.
        if "RESOURCE_EXHAUSTED" in str(error):
            return {"event": "lost", "why": "it was out of memory"}
        traceback.print_exc()
        return {"event": "broken", "why": f"{type(error).__name__}: {error}", "fix": None}
    # The process that gave the unit checks that it finds the stored runs too: then both see the same store.
    stored = [config.run_id for config in unit.configs if config in store]
    return {"event": "done", **dataclasses.asdict(sweep), "stored": stored, "problems": store.problems}


@contextlib.contextmanager
def opened(options: WorkerOptions, unit: WorkUnit) -> Iterator[Store]:
    """Open the store for a unit's results."""
    from recombine.store.remote import Remote, UploadingStore
    from recombine.store.store import Store

    if options.remote is None:
        # A node that does not see the folder must not create another one.
        yield Store(options.store, create=False)
        return
    with tempfile.TemporaryDirectory(prefix="recombine-") as scratch:
        store = UploadingStore(scratch, Remote(options.remote))
        wanted = {config.run_id for config in unit.configs}.union(*(config.ancestors() for config in unit.configs))
        store.remote.fetch(store, sorted(wanted))
        yield store


def answer(options: WorkerOptions, text: str | bytes, engine: Engine, send: Send) -> Event:
    """Open the store and run a unit, given as JSON; returns the last event."""
    from recombine.engines.work_units import WorkUnit

    unit = WorkUnit.model_validate_json(text)
    try:
        with opened(options, unit) as store:
            return run_unit(unit, store, engine, send)
    except RecombineError as error:
        return {"event": "refused", "kind": "store", "message": error.message, "fix": error.fix}


class UnitQueue:
    """Work units as they arrive. It also watches for the end of the input while the worker is busy."""

    def __init__(self) -> None:
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._busy = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        for line in sys.stdin.buffer:
            self._busy.set()
            self._lines.put(line)
        self._lines.put(None)
        if self._busy.is_set():
            # Like Ctrl-C, so that half-written files are removed. A long compilation does not notice it.
            _thread.interrupt_main()
            time.sleep(GRACE_SECONDS)
            os._exit(130)

    def __iter__(self) -> Iterator[bytes]:
        while (line := self._lines.get()) is not None:
            yield line

    def idle(self) -> None:
        """Call this when a unit is done: the end of the input is then an ordinary end."""
        self._busy.clear()


# Limits. They are set before anything heavy is loaded: XLA and NumPy's linear algebra count the cores of the process
# once, when they start. A limit on cores is therefore a limit on threads for both, and every manifest shows it.


def limit_memory(size: int) -> None:
    """Make allocations beyond this many bytes fail. Memory counts when it is written to, not when it is reserved."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def limit_cores(threads: int) -> None:
    """Run on this number of cores only, if possible on cores that no other worker of this machine uses."""
    if not hasattr(os, "sched_setaffinity"):
        return  # This system has no such limit, and the manifest does not claim one.
    allowed = sorted(os.sched_getaffinity(0))
    if threads < len(allowed):
        locks = Path(tempfile.gettempdir()) / f"recombine-cores-{os.getuid()}"
        os.sched_setaffinity(0, claim(allowed, threads, locks))


def claim(cores: Sequence[int], wanted: int, folder: Path) -> tuple[int, ...]:
    """Choose cores: free ones first, then shared ones where there are more workers than cores."""
    free: list[int] = []
    for core in cores:
        if len(free) < wanted and _lock(folder / str(core)):
            free.append(core)
    taken = [core for core in cores if core not in free]
    start = os.getpid() % max(1, len(taken))
    shared = [*taken[start:], *taken[:start]][: wanted - len(free)]
    return tuple(sorted([*free, *shared]))


def _lock(path: Path) -> bool:
    """Try to take a lock file; returns whether this process holds it now."""
    import fcntl

    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        with contextlib.suppress(OSError):
            os.close(handle)
        return False
    _held.append(handle)
    return True


_held: list[int] = []
"""Open lock files. The system releases them when the process ends."""


def main() -> None:
    """Run units until the input ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with interrupts.installed():
        _serve()


def _serve() -> None:
    options = WorkerOptions.model_validate_json(sys.argv[1])
    # Output of libraries must not mix with the events.
    out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    if options.memory is not None:
        limit_memory(options.memory)
    if options.threads is not None:
        limit_cores(options.threads)

    def send(event: Event) -> None:
        out.write(json.dumps(event) + "\n")
        out.flush()

    inbox = UnitQueue()
    # After the limits are set.
    from recombine.engines.local import LocalEngine

    engine = LocalEngine()
    try:
        for text in inbox:
            last_event = answer(options, text, engine, send)
            inbox.idle()
            send(last_event)
    except KeyboardInterrupt as error:
        os._exit(128 + getattr(error, "number", signal.SIGINT))
    except BrokenPipeError:
        os._exit(130)


if __name__ == "__main__":
    main()
