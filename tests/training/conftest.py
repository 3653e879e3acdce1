"""What the tests of training share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from recombine.training.outcome import Outcome
from recombine.training.trainer import Trainer


@pytest.fixture(scope="session")
def trainer() -> Trainer:
    """One trainer for the session: what it has compiled serves many tests."""
    return Trainer()


@pytest.fixture(scope="session")
def same_bits() -> Callable[[Any, Any], bool]:
    """Whether two pytrees have equal arrays, bit for bit."""

    def same(one: Any, other: Any) -> bool:
        pairs = zip(*(jax.tree.leaves(eqx.filter(tree, eqx.is_array)) for tree in (one, other)), strict=True)
        return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)

    return same


@pytest.fixture(scope="session")
def same_run(same_bits: Callable[[Any, Any], bool]) -> Callable[[Outcome, Outcome], bool]:
    """Whether two outcomes are the same run: weights and curves, bit for bit."""

    def same(one: Outcome, other: Outcome) -> bool:
        return (
            same_bits(one.network, other.network)
            and one.curves == other.curves
            and (one.steps, one.reached, one.failed_at) == (other.steps, other.reached, other.failed_at)
        )

    return same
