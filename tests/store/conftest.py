"""What the tests of the store share: small runs that ended, made by hand, so that nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Imported in the fixtures, so that JAX starts after tests/conftest.py has said where compiled programs are kept.
if TYPE_CHECKING:
    from recombine.probes.scores import Scores
    from recombine.store.store import Store
    from recombine.training.config import RunConfig
    from recombine.training.outcome import Outcome


@pytest.fixture(scope="session")
def small(tiny: Callable[..., RunConfig]) -> Callable[..., RunConfig]:
    """A small run with a common held-out test, by its number of training combinations and its seed."""
    from recombine.spaces.subset import SubsetSpace
    from recombine.supports.random import Random
    from recombine.training.config import Seeds

    def make(number: int = 12, seed: int = 0, **changes: Any) -> RunConfig:
        fields = {
            "space": SubsetSpace(modules=8, max_active=2),
            "support": Random(number=number, reserve=12),
            "seeds": Seeds.replicate(seed),
        }
        return tiny(**(fields | changes))

    return make


@pytest.fixture(scope="session")
def ended(small: Callable[..., RunConfig]) -> Callable[..., Outcome]:
    """A run that ended, with weights unlike those of a new network."""
    import jax

    from recombine.training.outcome import Outcome
    from recombine.training.prepare import Setting

    def make(config: RunConfig | None = None, *, steps: int = 30, shift: float = 0.5, **changes: Any) -> Outcome:
        config = small() if config is None else config
        curves = [
            {"step": step, "loss": 1.0 / step, "score_in": 0.01 * step, "score_held_out": 0.005 * step}
            for step in (10, 20, 30)
        ]
        fields: dict[str, Any] = {
            "config": config,
            "network": jax.tree.map(lambda leaf: leaf + shift, Setting(config).network()),
            "curves": curves,
            "steps": steps,
            "seconds": 1.5,
            "compile_seconds": 0.5,
            "reached": None,
            "failed_at": None,
            "stack_size": 1,
        }
        return Outcome(**(fields | changes))

    return make


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    from recombine.store.store import Store

    return Store(tmp_path / "store")


@pytest.fixture(scope="session")
def small_scores() -> Scores:
    """A quick measurement."""
    from recombine.probes.scores import Scores

    return Scores(combinations=6, draws=2, samples=4)
