"""What the tests of the store share: small runs that ended, made by hand, so that nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import pytest

from recombine.probes.scores import Scores
from recombine.store.store import Store
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting
from recombine.training.train import Outcome


@pytest.fixture
def tiny() -> Callable[..., RunConfig]:
    """The configuration of a small run."""

    def make(number: int = 12, seed: int = 0, **changes: Any) -> RunConfig:
        values = {
            "space": {"kind": "subset", "modules": 8, "max_active": 2},
            "support": {"kind": "random", "number": number, "reserve": 8},
            "family": {"kind": "hyperteacher", "inputs": 4, "hidden": 4, "outputs": 2},
            "model": {"kind": "mlp", "width": 16, "depth": 1},
            "recipe": {"kind": "paper", "steps": 30, "tasks": 8, "samples": 4},
            "seeds": Seeds.replicate(seed),
            "validation_tasks": 8,
            "every": 10,
        }
        return RunConfig.model_validate(values | changes)

    return make


@pytest.fixture
def ended(tiny: Callable[..., RunConfig]) -> Callable[..., Outcome]:
    """A run that ended, with weights unlike those of a new network."""

    def make(
        config: RunConfig | None = None, *, steps: int = 30, shift: float = 0.5, **changes: Any
    ) -> Outcome:
        config = tiny() if config is None else config
        network = jax.tree.map(
            lambda leaf: leaf + shift if eqx.is_array(leaf) else leaf, Setting(config).network()
        )
        curves = [
            {"step": step, "loss": 1.0 / step, "score_in": 0.01 * step, "score_held_out": 0.005 * step}
            for step in (10, 20, 30)
        ]
        values: dict[str, Any] = {
            "config": config,
            "network": network,
            "curves": curves,
            "steps": steps,
            "seconds": 1.5,
            "compile_seconds": 0.5,
            "reached": None,
            "failed_at": None,
            "lanes": 1,
        }
        return Outcome(**(values | changes))

    return make


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture(scope="session")
def small_scores() -> Scores:
    """A quick measurement."""
    return Scores(combinations=6, draws=2, samples=4)
