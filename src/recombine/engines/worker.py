"""A process that does parcels: `python -m recombine.engines.worker ORDERS`.

Parcels come as lines of JSON on standard input; what happens goes out as lines of JSON on standard output. When the
input ends in the middle of a parcel, whoever gave it is gone, and the worker stops: nothing is left running.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import queue
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from recombine.engines.limits import limit_cores, limit_memory
from recombine.errors import BadInput, RecombineError, StoreError

# Imported in the functions: limits must be in force before JAX and NumPy count the cores.
if TYPE_CHECKING:
    from recombine.engines.base import Engine
    from recombine.store.store import Store

GRACE_SECONDS = 5.0
"""A worker that shall stop has so long to tidy up."""

LEAST_INTERVAL = 0.1
"""Seconds between two reports of steps."""

ENDS = ("done", "lost", "broken", "refused")
"""The events after which a worker has nothing to do."""

Event = dict[str, Any]
Say = Callable[[Event], None]


class Orders(BaseModel):
    """What a worker is told at its start."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    store: str
    """The folder of the store. Not used where results go to an object store."""
    remote: str | None = None
    """The address of an object store to which the results go."""
    threads: int | None = None
    memory: int | None = None
    """Bytes."""


def do_parcel(text: str | bytes, store: Store, engine: Engine, say: Say) -> Event:
    """Train and measure a parcel into a store. Errors are part of the answer: the worker lives on."""
    from recombine.engines.parcels import Parcel
    from recombine.engines.telling import Telling

    parcel = Parcel.of_text(text)
    try:
        sweep = engine.run(store, parcel.configs, parcel.measurements, Telling(say, LEAST_INTERVAL))
    except BadInput as error:
        kind = "store" if isinstance(error, StoreError) else "input"
        return {"event": "refused", "kind": kind, "message": error.message, "fix": error.fix}
    except RecombineError as error:
        return {"event": "broken", "why": error.message, "fix": error.fix}
    except MemoryError:
        return {"event": "lost", "why": "it was out of memory"}
    except Exception as error:  # noqa: BLE001 - whatever a component raises: the other parcels go on.
        if "RESOURCE_EXHAUSTED" in str(error):
            return {"event": "lost", "why": "it was out of memory"}
        traceback.print_exc()
        return {"event": "broken", "why": f"{type(error).__name__}: {error}", "fix": None}
    done = {
        "measured": sweep.measured,
        "compilations": sweep.compilations,
        "compile_seconds": sweep.compile_seconds,
        "train_seconds": sweep.train_seconds,
        # Whoever gave the parcel must find these too: then both see the same store.
        "stored": [config.run_id for config in parcel.configs if config in store],
        "problems": store.problems,
    }
    return {"event": "done", **done}


@contextlib.contextmanager
def opened(orders: Orders, text: str | bytes) -> Iterator[Store]:
    """The store that a parcel's results go to."""
    from recombine.store.store import Store

    if orders.remote is None:
        # Not made here: a node that does not see the folder must not make one of its own.
        yield Store(orders.store, create=False)
        return
    from recombine.engines.parcels import Parcel
    from recombine.store.remote import Remote, UploadingStore

    with tempfile.TemporaryDirectory(prefix="recombine-") as scratch:
        store = UploadingStore(scratch, Remote(orders.remote))
        store.remote.fetch(store, [config.run_id for config in Parcel.of_text(text).configs])
        yield store


def answer(orders: Orders, text: str | bytes, engine: Engine, say: Say) -> Event:
    """Open the store, do a parcel."""
    try:
        with opened(orders, text) as store:
            return do_parcel(text, store, engine, say)
    except RecombineError as error:
        return {"event": "refused", "kind": "store", "message": error.message, "fix": error.fix}


class Inbox:
    """Parcels as they arrive. Watches for the end of the input while the worker is busy."""

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
            # As Ctrl-C does: what is half written is tidied up. A long call into the compiler does not hear it.
            _thread.interrupt_main()
            time.sleep(GRACE_SECONDS)
            os._exit(130)

    def __iter__(self) -> Iterator[bytes]:
        while (line := self._lines.get()) is not None:
            yield line

    def idle(self) -> None:
        """The parcel is done: the end of the input is now an ordinary end."""
        self._busy.clear()


def main() -> None:
    """Do parcels until there are no more."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    orders = Orders.model_validate_json(sys.argv[1])
    # Nothing that a library prints may mix with the events.
    out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    if orders.memory is not None:
        limit_memory(orders.memory)
    if orders.threads is not None:
        limit_cores(orders.threads)

    def say(event: Event) -> None:
        out.write(json.dumps(event) + "\n")
        out.flush()

    inbox = Inbox()
    # Not before the limits hold.
    from recombine.engines.local import LocalEngine

    engine = LocalEngine()
    try:
        for text in inbox:
            last = answer(orders, text, engine, say)
            inbox.idle()
            say(last)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)


if __name__ == "__main__":
    main()
