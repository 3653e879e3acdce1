"""What the tests of spaces share. JAX is imported late, after tests/conftest.py has told it where its cache is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

if TYPE_CHECKING:
    from recombine.spaces.base import Space

Fairness = Callable[[np.ndarray, np.ndarray], float]


@pytest.fixture
def drawn() -> Callable[..., np.ndarray]:
    """Rows of a space, drawn by a compiled and vmapped sampler."""

    import jax

    def draw(space: Space, number: int, seed: int = 0) -> np.ndarray:
        keys = jax.random.split(jax.random.key(seed), number)
        return np.asarray(jax.jit(jax.vmap(space.sample))(keys))

    return draw


@pytest.fixture
def fairness() -> Fairness:
    """The p value of "each of the `expected` rows is equally likely"; 0 if another row came."""

    def p_value(rows: np.ndarray, expected: np.ndarray) -> float:
        numbers = {tuple(row): index for index, row in enumerate(expected.tolist())}
        if any(tuple(row) not in numbers for row in rows.tolist()):
            return 0.0
        counts = np.bincount([numbers[tuple(row)] for row in rows.tolist()], minlength=len(expected))
        return float(stats.chisquare(counts).pvalue)

    return p_value
