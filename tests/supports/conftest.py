"""What the tests of supports share."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.base import Sampler


@pytest.fixture
def paper() -> SubsetSpace:
    """The space of the scaling paper: 696 combinations."""
    return SubsetSpace(modules=16, max_active=3)


@pytest.fixture
def toys() -> ProductSpace:
    """A product with unequal factors: 24 combinations of 9 values."""
    return ProductSpace(factors={"colour": 2, "shape": 3, "place": 4})  # type: ignore[arg-type]


@pytest.fixture
def huge() -> SubsetSpace:
    """About 10^41 combinations."""
    return SubsetSpace(modules=1000, max_active=20)


@eqx.filter_jit
def _many(sampler: Sampler, keys: jax.Array) -> jax.Array:
    return jax.vmap(sampler)(keys)


@pytest.fixture
def drawn() -> Callable[..., np.ndarray]:
    """Rows drawn by a compiled and vmapped sampler."""

    def draw(sampler: Sampler, number: int, seed: int = 0) -> np.ndarray:
        return np.asarray(_many(sampler, jax.random.split(jax.random.key(seed), number)))

    return draw


@pytest.fixture
def fit() -> Callable[..., float]:
    """The p value of "the `expected` rows come in these shares" (default: equal); 0 if another row came."""

    def p_value(rows: np.ndarray, expected: np.ndarray, shares: np.ndarray | None = None) -> float:
        numbers = {tuple(row): index for index, row in enumerate(expected.tolist())}
        if any(tuple(row) not in numbers for row in rows.tolist()):
            return 0.0
        counts = np.bincount([numbers[tuple(row)] for row in rows.tolist()], minlength=len(expected))
        return float(stats.chisquare(counts, None if shares is None else shares * len(rows)).pvalue)

    return p_value
