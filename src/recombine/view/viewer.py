"""What the viewer knows: its store, folders of results, caches, and what it started."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

from recombine.errors import BadInput, RecombineError, StoreError
from recombine.store.files import NewerFormat
from recombine.store.index import Index
from recombine.store.store import Store, check_marker, is_store, load_store
from recombine.view.jobs import Jobs

log = logging.getLogger(__name__)

MOST_KEPT = 64
"""Answers that are kept because they take long to make: figures, and runs behind replicates."""
NEW_SECONDS, REFRESH_SECONDS = 1.0, 15.0
"""How often all runs are looked at, however many tabs are open: when runs came, and for new measurements of old ones."""


class Viewer:
    """The state that all requests share. It opens the store for reading only: what changes it are commands."""

    def __init__(self, store: Path, results: tuple[Path, ...] = ()) -> None:
        """Make the state.

        Args:
            store: The folder of the store. It need not exist yet.
            results: Folders of exported results.
        """
        self.store_path, self.results = store, results
        self._scratch = tempfile.TemporaryDirectory(prefix="recombine-view-")
        self.scratch = Path(self._scratch.name)
        self.jobs = Jobs(self.scratch)
        self.warning = ""
        self._store: Store | None = None
        self._lock, self._index_lock = threading.RLock(), threading.Lock()
        self._kept: dict[Hashable, Any] = {}
        self._looked, self._names = 0.0, -1
        self.revision = 0
        """Raised whenever the index found something new, changed or gone."""
        self.reading: tuple[int, int] | None = None
        """How many runs the index has read and is to read, while it does so."""

    @property
    def has_store(self) -> bool:
        """Whether there is a store now: it may appear, and vanish."""
        return is_store(self.store_path)

    @property
    def store(self) -> Store:
        """The store, opened once; StoreError if there is none now."""
        with self._lock:
            if not self.has_store:
                self._store = None
                fix = "start a study on the page Start, or see whether the folder was moved"
                raise StoreError(f"There is no store at {self.store_path}.", fix=fix)
            if self._store is None:
                self.warning = ""
                try:
                    check_marker(self.store_path)
                except NewerFormat as error:
                    self.warning = f"{error.message} Runs that this version does not understand are left out."
                except StoreError as error:
                    self.warning = error.message
                self._store = load_store(self.store_path)
                self._looked = 0.0
            return self._store

    def index(self) -> Index:
        """The index of the store as of the last look; the first time, the look itself. `look` is what looks again."""
        index = self.store.index
        if self._looked == 0.0:
            self._look(index)
        return index

    def look(self, names: int) -> None:
        """Look again for new runs, beside the requests: when their number changed, and now and then for measurements.

        Args:
            names: The number of runs in the folder.
        """
        index = self.store.index
        due = time.monotonic() - self._looked >= (NEW_SECONDS if names != self._names else REFRESH_SECONDS)
        if due and not self._index_lock.locked():
            self._names = names
            threading.Thread(target=self._look, args=(index,), daemon=True).start()

    def _look(self, index: Index) -> None:
        with self._index_lock:
            if time.monotonic() - self._looked < NEW_SECONDS and self._looked:
                return  # Another request looked meanwhile.
            try:
                if index.refresh(self._reading) or self._looked == 0.0:
                    self.revision += 1
            except (RecombineError, OSError) as error:
                log.warning("The index cannot be refreshed: %s", error)  # The next request says why.
            self._looked, self.reading = time.monotonic(), None

    def _reading(self, done: int, total: int | None) -> None:
        self.reading = (done, total or done) if total else None

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The answer to `make`, made once for each key."""
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        made = make()
        with self._lock:
            while len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = made
        return made

    def close(self) -> None:
        """Stop what was started, and remove the scratch folder."""
        self.jobs.close()
        self._scratch.cleanup()


def inside(folder: Path, name: str, suffix: str) -> Path:
    """The path of an existing file below a folder; BadInput for names that lead out of it."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or path.suffix != suffix or not path.is_file():
        raise BadInput(f"There is no file {name[:100]!r} here.")
    return path
