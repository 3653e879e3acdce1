"""Runs are stored while the next one trains: most of storing is waiting for the disk."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from recombine.store.store import Store
from recombine.training.train import Outcome, Trainer


class Storing:
    """Stores one run at a time, in the order in which they ended. At most two are in memory.

    What goes wrong is raised when the next run comes, or at the end. Whatever ends the training, the run that is being
    stored is stored.
    """

    def __init__(self, store: Store, trainer: Trainer) -> None:
        self._store, self._trainer = store, trainer
        self._pool = ThreadPoolExecutor(1, "storing")
        self._last: Future[None] | None = None

    def __enter__(self) -> Storing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True)
        # Whoever interrupts wants no other error; any other one does not hide that a run was not stored.
        if error is None or isinstance(error, Exception):
            self._settle()

    def add(self, outcome: Outcome) -> None:
        """Store a run that ended, and forget its checkpoint."""
        self._settle()
        self._last = self._pool.submit(self._one, outcome)

    def _settle(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def _one(self, outcome: Outcome) -> None:
        self._store.commit(outcome)
        self._trainer.forget(outcome.config)
