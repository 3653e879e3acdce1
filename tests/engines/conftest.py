"""What the tests of engines share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Imported in the fixtures, so that JAX starts after tests/conftest.py has said where compiled programs are kept.
if TYPE_CHECKING:
    from recombine.store.store import Store
    from recombine.training.config import RunConfig


@pytest.fixture(scope="session")
def small(tiny: Callable[..., RunConfig]) -> Callable[..., RunConfig]:
    """A small run. Number, seed and rate are arrays of the program: runs that differ in them share it."""
    from recombine.recipes.paper import Paper
    from recombine.spaces.subset import SubsetSpace
    from recombine.supports.random import Random
    from recombine.training.config import Seeds

    def make(number: int = 12, seed: int = 0, learning_rate: float = 0.01, **changes: Any) -> RunConfig:
        fields = {
            "space": SubsetSpace(modules=8, max_active=2),
            "support": Random(number=number, reserve=12),
            "seeds": Seeds.replicate(seed),
            "recipe": Paper(learning_rate=learning_rate, steps=30, tasks=8, samples=4),
        }
        return tiny(**(fields | changes))

    return make


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    from recombine.store.store import Store

    return Store(tmp_path / "store")


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is split as far as it can be, though compiling takes longer than these runs."""
    monkeypatch.setattr("recombine.engines.work_queue.MIN_UNIT_SECONDS", 0.0)


@pytest.fixture
def large_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs of a bucket are in one unit."""
    monkeypatch.setattr("recombine.engines.work_queue.MIN_UNIT_SECONDS", 1000.0)
